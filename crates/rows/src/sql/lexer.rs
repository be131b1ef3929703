//! The tokens of SQL text: nothing is parsed beyond them.

use super::dialect::Dialect;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    /// Its first byte in the text.
    pub(crate) start: usize,
    /// What it is, where the text ends before it does.
    pub(crate) unclosed: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// White space.
    Space,
    /// A comment, up to the end of its line or to its closing delimiter.
    Comment,
    Semicolon,
    QuestionMark,
    /// `:name`.
    Parameter,
    /// `%(name)s`.
    Pyformat,
    /// A name, keyword or number, with what a colon connects to it (`lo:hi`).
    Word,
    /// A string or a quoted name.
    Quoted,
    /// A character of an operator or of punctuation, or several that belong together.
    Other,
}

impl Token<'_> {
    /// Whether it is white space or a comment.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self.kind, TokenKind::Space | TokenKind::Comment)
    }

    /// Whether it is this keyword, in letters of any case.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }
}

/// Splits a text into tokens, of which none is lost.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    sql: &'a str,
    at: usize,
    dialect: Dialect,
    rules: Rules,
}

/// What differs between databases.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// A backslash escapes in strings.
    backslash: bool,
    /// `[name]`.
    brackets: bool,
    /// `` `name` ``.
    backticks: bool,
    /// `$tag$ … $tag$`.
    dollar_quotes: bool,
    nested_comments: bool,
    /// `:name` is a parameter, and a colon connects words (`lo:hi`).
    colons: bool,
    /// `%(name)s` is a parameter.
    pyformat: bool,
}

impl<'a> Lexer<'a> {
    /// The tokens of `sql`. Of an unknown database all quotes are read that any database has.
    pub(crate) fn new(sql: &'a str, dialect: Dialect) -> Lexer<'a> {
        let is_generic = dialect == Dialect::Generic;
        let is = |one: Dialect| dialect == one;
        Lexer {
            sql,
            at: 0,
            dialect,
            rules: Rules {
                backslash: is(Dialect::MySql),
                brackets: is_generic || is(Dialect::Sqlite) || is(Dialect::SqlServer),
                backticks: is_generic || is(Dialect::Sqlite) || is(Dialect::MySql),
                dollar_quotes: is_generic || is(Dialect::Postgres),
                nested_comments: is(Dialect::Postgres) || is(Dialect::SqlServer),
                colons: true,
                pyformat: false,
            },
        }
    }

    /// The tokens of `sql` as a database gets it: it has no names of parameters any more. Of an unknown database only the
    /// quotes of standard SQL are read: nothing is hidden in others.
    pub(crate) fn of_statement(sql: &'a str, dialect: Dialect) -> Lexer<'a> {
        let mut lexer = Lexer::new(sql, dialect);
        lexer.rules.colons = false;
        if dialect == Dialect::Generic {
            lexer.rules.brackets = false;
            lexer.rules.backticks = false;
            lexer.rules.dollar_quotes = false;
        }
        lexer
    }

    /// The same, with `%(name)s` as a parameter or not.
    pub(crate) fn with_pyformat(mut self, pyformat: bool) -> Lexer<'a> {
        self.rules.pyformat = pyformat;
        self
    }

    fn rest(&self) -> &'a str {
        &self.sql[self.at..]
    }

    /// Passes characters while they belong.
    fn pass(&mut self, belongs: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    }

    /// Passes up to and including `end`; whether it was found.
    fn pass_through(&mut self, from: usize, end: &str) -> bool {
        match self.sql[from..].find(end) {
            Some(n) => {
                self.at = from + n + end.len();
                true
            }
            None => {
                self.at = self.sql.len();
                false
            }
        }
    }

    /// From an opening quote of one byte to the closing one: doubled it stands for itself.
    fn quoted(&mut self, close: u8, backslash: bool, what: &'static str) -> Option<&'static str> {
        let bytes = self.sql.as_bytes();
        self.at += 1;
        while let Some(&b) = bytes.get(self.at) {
            self.at += 1;
            if b == close {
                if bytes.get(self.at) != Some(&close) {
                    return None;
                }
                self.at += 1;
            } else if b == b'\\' && backslash {
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
            }
        }
        Some(what)
    }

    fn block_comment(&mut self) -> Option<&'static str> {
        let bytes = self.sql.as_bytes();
        self.at += 2;
        let mut depth = 1;
        while depth > 0 {
            match bytes.get(self.at..self.at + 2) {
                Some(b"*/") => {
                    depth -= 1;
                    self.at += 2;
                }
                Some(b"/*") if self.rules.nested_comments => {
                    depth += 1;
                    self.at += 2;
                }
                // Bytes of the delimiters are never inside a UTF-8 sequence: a step of one byte is right.
                Some(_) => self.at += 1,
                None => {
                    self.at = self.sql.len();
                    return Some("comment");
                }
            }
        }
        None
    }

    /// `$tag$ … $tag$`, or a dollar sign that opens nothing.
    fn dollar(&mut self) -> (TokenKind, Option<&'static str>) {
        let (start, rest) = (self.at, self.rest());
        let tag_end = 1 + rest[1..]
            .find(|c| !is_in_name(c) && c.is_ascii())
            .unwrap_or(rest.len() - 1);
        // `$1` is a parameter of PostgreSQL's.
        let is_tag = rest[tag_end..].starts_with('$')
            && !rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if !is_tag {
            self.at += 1;
            return (TokenKind::Other, None);
        }
        let fence = &rest[..=tag_end];
        let is_closed = self.pass_through(start + fence.len(), fence);
        let unclosed = (!is_closed).then_some("dollar-quoted string");
        (TokenKind::Quoted, unclosed)
    }

    /// A name or number. A colon right after it (`lo:hi`) begins no parameter.
    fn word(&mut self) {
        let in_word = |c| is_in_name(c) || c == '$';
        self.pass(in_word);
        while self.rules.colons && self.rest().starts_with(':') {
            self.pass(|c| c == ':');
            if self.rest().starts_with(is_in_name) {
                self.pass(in_word);
            }
        }
    }

    /// MySQL reads `5--1` as a sum: its comments need white space after the dashes.
    fn is_dash_comment(&self) -> bool {
        let after = self.sql.as_bytes().get(self.at + 2);
        self.dialect != Dialect::MySql
            || after.is_none_or(|b| b.is_ascii_whitespace() || b.is_ascii_control())
    }

    /// MySQL runs the text in `/*! … */`, MariaDB that in `/*M! … */` too.
    fn is_executed(&self) -> bool {
        let rest = self.rest();
        self.dialect == Dialect::MySql && (rest.starts_with("/*!") || rest.starts_with("/*M!"))
    }

    /// `%(name)s`, where it is one. Only the name itself is looked through.
    fn percent(&mut self) -> TokenKind {
        let rest = self.rest();
        let n_name = rest.strip_prefix("%(").map_or(0, |name| {
            let end = name.find(|c| !is_word(c)).unwrap_or(name.len());
            if name[end..].starts_with(")s") {
                end
            } else {
                0
            }
        });
        if n_name > 0 {
            self.at += n_name + 4;
            return TokenKind::Pyformat;
        }
        self.at += if rest.starts_with("%%") { 2 } else { 1 };
        TokenKind::Other
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let start = self.at;
        let rest = self.rest();
        let c = rest.chars().next()?;
        let rules = self.rules;
        let is_postgres = self.dialect == Dialect::Postgres;
        let mut unclosed = None;
        let kind = match c {
            _ if is_space(c) => {
                self.pass(is_space);
                TokenKind::Space
            }
            '\'' => {
                unclosed = self.quoted(b'\'', rules.backslash, "string");
                TokenKind::Quoted
            }
            '"' => {
                unclosed = self.quoted(b'"', rules.backslash, "quoted name");
                TokenKind::Quoted
            }
            '`' if rules.backticks => {
                unclosed = self.quoted(b'`', false, "quoted name");
                TokenKind::Quoted
            }
            '[' if rules.brackets => {
                unclosed = self.quoted(b']', false, "quoted name");
                TokenKind::Quoted
            }
            'e' | 'E' if is_postgres && rest[1..].starts_with('\'') => {
                self.at += 1;
                unclosed = self.quoted(b'\'', true, "string");
                TokenKind::Quoted
            }
            '-' if rest.starts_with("--") && self.is_dash_comment() => {
                self.pass(|c| c != '\n');
                TokenKind::Comment
            }
            '#' if self.dialect == Dialect::MySql => {
                self.pass(|c| c != '\n');
                TokenKind::Comment
            }
            '/' if rest.starts_with("/*") && !self.is_executed() => {
                unclosed = self.block_comment();
                TokenKind::Comment
            }
            // The end of a comment that is executed; `*/*` opens no comment.
            '*' if rest.starts_with("*/") && self.dialect == Dialect::MySql => {
                self.at += 2;
                TokenKind::Other
            }
            '$' if rules.dollar_quotes => {
                let (kind, end) = self.dollar();
                unclosed = end;
                kind
            }
            ':' if rules.colons
                && rest[1..].starts_with(|c: char| c.is_alphabetic() || c == '_') =>
            {
                self.at += 1;
                self.pass(is_word);
                TokenKind::Parameter
            }
            // Colons that are an operator: `::`, `:=`.
            ':' => {
                self.pass(|c| c == ':');
                TokenKind::Other
            }
            '%' if rules.pyformat => self.percent(),
            ';' => {
                self.at += 1;
                TokenKind::Semicolon
            }
            // PostgreSQL's operators with a question mark: `??`, `??|`, `??&`, `@??`.
            '?' if is_postgres && rest.starts_with("??") => {
                self.pass(|c| c == '?');
                TokenKind::Other
            }
            '?' => {
                self.at += 1;
                TokenKind::QuestionMark
            }
            _ if is_in_name(c)
                || (c == '$' && rest.trim_start_matches('$').starts_with(is_in_name)) =>
            {
                self.word();
                TokenKind::Word
            }
            _ => {
                self.at += c.len_utf8();
                TokenKind::Other
            }
        };
        Some(Token {
            kind,
            text: &self.sql[start..self.at],
            start,
            unclosed,
        })
    }
}

/// White space, and the byte order mark that some editors write first.
fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// A letter, digit or `_` of any script: what a parameter's name consists of.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What databases accept in names of their own, and PostgreSQL in the tags of its strings: any character above ASCII too,
/// except blanks.
fn is_in_name(c: char) -> bool {
    is_word(c) || (!c.is_ascii() && !is_space(c))
}
