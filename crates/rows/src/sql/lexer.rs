//! `Lexer`: splits SQL text into tokens. It does not parse statements.

use super::dialect::Dialect;

/// A token of SQL text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    /// The offset of the token's first byte in the text.
    pub(crate) start: usize,
    /// For an unterminated string, comment or quoted name: its description for an error message.
    /// `None` for a complete token.
    pub(crate) unclosed: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// White space, or a byte order mark.
    Space,
    /// A comment, up to the end of the line or to the closing delimiter.
    Comment,
    Semicolon,
    QuestionMark,
    /// A parameter of the form `:name`.
    Parameter,
    /// A parameter of the form `%(name)s`.
    Pyformat,
    /// A name, keyword or number. If `:name` parameters are recognised, names joined by colons
    /// (`lo:hi`) are one token.
    Word,
    /// A string in single quotes or dollar quotes, or a quoted name.
    Quoted,
    /// Any other token: one character of an operator or of punctuation, or several (`::`, `??`).
    Other,
}

impl Token<'_> {
    /// Returns `true` if the token is white space or a comment.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self.kind, TokenKind::Space | TokenKind::Comment)
    }

    /// Returns `true` if the token is the keyword `keyword`, in upper or lower case.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(keyword)
    }
}

/// Splits a SQL string into tokens. The concatenation of all tokens is the original string.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    sql: &'a str,
    at: usize,
    dialect: Dialect,
    rules: Rules,
}

/// The lexical rules of a dialect.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// `true` if a backslash is an escape in strings.
    backslash: bool,
    /// `true` if `[name]` is a quoted name.
    brackets: bool,
    /// `true` if `` `name` `` is a quoted name.
    backticks: bool,
    /// `true` if `$tag$ … $tag$` is a string.
    dollar_quotes: bool,
    nested_comments: bool,
    /// `true` if `:name` is a parameter. In this case, a colon directly after a word does not begin
    /// a parameter: `lo:hi` is one word.
    colons: bool,
    /// `true` if `%(name)s` is a parameter.
    pyformat: bool,
}

impl<'a> Lexer<'a> {
    /// Creates a lexer for SQL as an application writes it, in which `:name` is a parameter. For an
    /// unknown database, the quoted names and dollar-quoted strings of all dialects are recognised.
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

    /// Creates a lexer for SQL as a database receives it, in which `:name` is not a parameter. For
    /// an unknown database, only the quotes of standard SQL are recognised. With more kinds of
    /// quotes, the lexer could take a statement for quoted text that this database would execute.
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

    /// Sets whether a `%(name)s` in the text is a parameter.
    pub(crate) fn with_pyformat(mut self, pyformat: bool) -> Lexer<'a> {
        self.rules.pyformat = pyformat;
        self
    }

    fn rest(&self) -> &'a str {
        &self.sql[self.at..]
    }

    /// Advances to the next character for which `belongs` returns `false`, or to the end of the
    /// text.
    fn pass(&mut self, belongs: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    }

    /// Advances past the first occurrence of `end` at or after the byte `from`, or to the end of
    /// the text; returns `true` if `end` was found.
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

    /// Advances from an opening quote past the closing quote `close`. A doubled closing quote is
    /// part of the token, and so is a quote after a backslash if `backslash` is `true`. If the text
    /// ends before the closing quote, returns `what`, the name of the token's kind for an error
    /// message.
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
                // Delimiters are ASCII and never occur inside a UTF-8 sequence, so a step of one
                // byte is correct.
                Some(_) => self.at += 1,
                None => {
                    self.at = self.sql.len();
                    return Some("comment");
                }
            }
        }
        None
    }

    /// Advances over `$tag$ … $tag$`, or over a dollar sign that does not begin a string.
    fn dollar(&mut self) -> (TokenKind, Option<&'static str>) {
        let (start, rest) = (self.at, self.rest());
        let tag_end = 1 + rest[1..]
            .find(|c| !is_in_name(c) && c.is_ascii())
            .unwrap_or(rest.len() - 1);
        // `$1` is a parameter of PostgreSQL, not a tag.
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

    /// Advances over a name or number. A colon directly after the name (`lo:hi`) does not begin a
    /// parameter, so the lexer also advances over the colon and the name after the colon.
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

    /// Returns `true` if `--` begins a comment. MySQL requires white space after the two dashes.
    /// Without white space, as in `5--1`, the dashes are two minus signs.
    fn is_dash_comment(&self) -> bool {
        let after = self.sql.as_bytes().get(self.at + 2);
        self.dialect != Dialect::MySql
            || after.is_none_or(|b| b.is_ascii_whitespace() || b.is_ascii_control())
    }

    /// Returns `true` if the next token begins a comment that the server executes: `/*! … */` in
    /// MySQL and MariaDB, `/*M! … */` in MariaDB.
    fn is_executed(&self) -> bool {
        let rest = self.rest();
        self.dialect == Dialect::MySql && (rest.starts_with("/*!") || rest.starts_with("/*M!"))
    }

    /// Advances over the parameter `%(name)s`, over `%%`, or over a single `%` that begins neither
    /// of the two.
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
            // The end of an executed comment is one token. Otherwise the `/*` in `*/*` would begin
            // a comment.
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
            // These colons do not begin a parameter, for example in `::` and `:=`.
            ':' => {
                self.pass(|c| c == ':');
                TokenKind::Other
            }
            '%' if rules.pyformat => self.percent(),
            ';' => {
                self.at += 1;
                TokenKind::Semicolon
            }
            // These question marks belong to an operator of PostgreSQL: `??`, `??|`, `??&`, `@??`.
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

/// Returns `true` for white space, and for the byte order mark that some editors write at the start
/// of a file.
fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// Returns `true` for a character that a parameter name can contain: a letter or digit of any
/// script, or `_`.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns `true` for the characters that databases accept in names and in the tags of PostgreSQL's
/// dollar quotes; they include all characters above ASCII except white space.
fn is_in_name(c: char) -> bool {
    is_word(c) || (!c.is_ascii() && !is_space(c))
}
