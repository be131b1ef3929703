//! `:name` and `%(name)s` in SQL to positional `?`, by a lexer that knows where SQL text is not SQL: strings, comments, quoted names.
//!
//! Nothing is parsed beyond that: a token is either copied as it stands, or is a parameter and becomes `?`. What differs
//! between databases (does a backslash escape a quote? does `[` quote a name?) is a [`Dialect`].

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};

impl Dialect {
    fn brackets_quote(self) -> bool {
        matches!(
            self,
            Dialect::Generic | Dialect::Sqlite | Dialect::SqlServer
        )
    }

    fn backticks_quote(self) -> bool {
        !matches!(self, Dialect::Postgres | Dialect::SqlServer)
    }

    fn dollar_quotes(self) -> bool {
        matches!(self, Dialect::Generic | Dialect::Postgres)
    }

    fn nested_comments(self) -> bool {
        matches!(self, Dialect::Postgres | Dialect::SqlServer)
    }
}

/// A statement whose named parameters became positional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The SQL with `?` for each parameter.
    pub sql: String,
    /// The name behind each `?`, in order; a name used twice stands twice.
    pub names: Vec<String>,
    /// How many statements the text holds: parts between `;` with more than white space and comments in them.
    pub n_statements: usize,
}

/// Translates `:name` to `?`.
///
/// A colon starts a parameter where a letter or `_` follows it and neither a letter, a digit, `_` nor another colon stands
/// right before it: so `a::text`, `x[1:n]` and `:=` stay as they are.
///
/// # Errors
/// [`ErrorKind::Programming`], with line and column: a string, comment or quoted name that does not end; a `?` beside named
/// parameters (the driver would count it as one more).
pub fn positional(sql: &str, dialect: Dialect) -> Result<Named, Error> {
    translate(sql, dialect, false)
}

/// Translates `:name`, and `%(name)s` as well: the two named styles of PEP 249.
///
/// Where a `%(name)s` stands, `%%` is a percent sign, inside of strings and comments too, as Python's own formatting has it;
/// without one, percent signs are left alone.
///
/// # Errors
/// As [`positional`].
pub fn by_name(sql: &str, dialect: Dialect) -> Result<Named, Error> {
    translate(sql, dialect, true)
}

/// How many `?` are parameters; `None` where the text does not end as it should.
#[must_use]
pub fn count_marks(sql: &str, dialect: Dialect) -> Option<usize> {
    let mut lexer = Lexer {
        sql,
        at: 0,
        dialect,
        pyformat: false,
    };
    let mut n = 0;
    while let Some((_, token)) = lexer.next_token().ok()? {
        n += usize::from(token == Token::QuestionMark);
    }
    Some(n)
}

/// Returns the text with some `?` replaced, by their number (from 0).
pub(crate) fn replace_marks(
    sql: &str,
    dialect: Dialect,
    of: impl Fn(usize) -> Option<String>,
) -> Option<String> {
    let mut lexer = Lexer {
        sql,
        at: 0,
        dialect,
        pyformat: false,
    };
    let (mut replaced, mut n) = (String::with_capacity(sql.len() + 64), 0);
    while let Some((start, token)) = lexer.next_token().ok()? {
        let is_mark = token == Token::QuestionMark;
        match is_mark.then(|| of(n)).flatten() {
            Some(words) => replaced.push_str(&words),
            None => replaced.push_str(&sql[start..lexer.at]),
        }
        n += usize::from(is_mark);
    }
    Some(replaced)
}

fn translate(sql: &str, dialect: Dialect, pyformat: bool) -> Result<Named, Error> {
    let mut lexer = Lexer {
        sql,
        at: 0,
        dialect,
        pyformat,
    };
    let mut out = Named {
        sql: String::with_capacity(sql.len()),
        names: Vec::new(),
        n_statements: 0,
    };
    let mut question_mark = None;
    let mut is_formatted = false;
    let mut in_statement = false;
    while let Some((start, token)) = lexer.next_token()? {
        match token {
            Token::Parameter => {
                out.names.push(sql[start + 1..lexer.at].to_owned());
                out.sql.push('?');
            }
            Token::Pyformat => {
                out.names.push(sql[start + 2..lexer.at - 2].to_owned());
                out.sql.push('?');
                is_formatted = true;
            }
            _ => out.sql.push_str(&sql[start..lexer.at]),
        }
        match token {
            Token::Space => {}
            Token::Semicolon => in_statement = false,
            _ if in_statement => {}
            _ => {
                in_statement = true;
                out.n_statements += 1;
            }
        }
        if token == Token::QuestionMark {
            question_mark.get_or_insert(start);
        }
    }
    if is_formatted {
        out.sql = out.sql.replace("%%", "%");
    }
    match question_mark {
        Some(at) if !out.names.is_empty() => Err(error_at(
            sql,
            at,
            &format!("{MIXED}; an operator of PostgreSQL that contains `?` is written with `??`"),
        )),
        _ => Ok(out),
    }
}

/// The message for a statement with `?` and with names.
pub(crate) const MIXED: &str =
    "a `?` is mixed with named parameters and would be counted as one more\nuse only names";

/// What the lexer tells apart; all but parameters are copied as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// White space or a comment.
    Space,
    Semicolon,
    QuestionMark,
    /// `:name`.
    Parameter,
    /// `%(name)s`.
    Pyformat,
    /// A word, a string, a quoted name, a number, an operator.
    Other,
}

struct Lexer<'a> {
    sql: &'a str,
    at: usize,
    dialect: Dialect,
    /// Whether `%(name)s` is a parameter.
    pyformat: bool,
}

/// A letter, digit or `_` of any script: what can stand in a name.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What databases take into names of their own, and PostgreSQL into the tags of its strings: any character above ASCII too, but
/// blanks, which stand between words to those who have written them.
fn in_name(c: char) -> bool {
    is_word(c) || (!c.is_ascii() && !c.is_whitespace())
}

/// What can start a name.
fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

impl Lexer<'_> {
    /// The next token's start and kind; `self.at` is its end.
    fn next_token(&mut self) -> Result<Option<(usize, Token)>, Error> {
        let start = self.at;
        let rest = &self.sql[start..];
        let Some(c) = rest.chars().next() else {
            return Ok(None);
        };
        let backslash = self.dialect == Dialect::MySql;
        let token = match c {
            _ if c.is_whitespace() => self.run(char::is_whitespace, Token::Space),
            '\'' => self.quoted('\'', backslash, "string")?,
            '"' => self.quoted('"', backslash, "quoted name")?,
            '`' if self.dialect.backticks_quote() => self.quoted('`', false, "quoted name")?,
            '[' if self.dialect.brackets_quote() => self.quoted(']', false, "quoted name")?,
            '-' if rest.starts_with("--") && self.is_dash_comment(rest) => self.line_comment(),
            '#' if self.dialect == Dialect::MySql => self.line_comment(),
            '/' if rest.starts_with("/*") && !self.is_executed(rest) => self.block_comment()?,
            // The end of one that is executed; `*/*` opens no comment.
            '*' if rest.starts_with("*/") && self.dialect == Dialect::MySql => {
                self.at += 2;
                Token::Other
            }
            '$' if self.dialect.dollar_quotes() => self.dollar()?,
            ':' => self.colon(rest),
            '%' if self.pyformat => self.percent(rest),
            ';' => self.one(c, Token::Semicolon),
            // PostgreSQL's operators with a question mark: `??`, `??|`, `??&`, `@??`.
            '?' if rest.starts_with("??") && self.dialect == Dialect::Postgres => {
                self.run(|c| c == '?', Token::Other)
            }
            '?' => self.one(c, Token::QuestionMark),
            'e' | 'E' if self.dialect == Dialect::Postgres && rest[1..].starts_with('\'') => {
                self.at += 1;
                self.quoted('\'', true, "string")?
            }
            // A word swallows what may stand inside it: `a$b$` opens no dollar quote, `ide'` is no escape string, and a
            // colon right after it (`lo:hi`) is no parameter.
            _ if in_name(c) => {
                self.word();
                while self.sql[self.at..].starts_with(':') {
                    self.run(|c| c == ':', Token::Other);
                    if self.sql[self.at..].starts_with(in_name) {
                        self.word();
                    }
                }
                Token::Other
            }
            _ => self.one(c, Token::Other),
        };
        Ok(Some((start, token)))
    }

    fn one(&mut self, c: char, token: Token) -> Token {
        self.at += c.len_utf8();
        token
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool, token: Token) -> Token {
        let rest = &self.sql[self.at..];
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        token
    }

    /// A name or number; dollar signs inside it are its own.
    fn word(&mut self) -> Token {
        self.run(|c| in_name(c) || c == '$', Token::Other)
    }

    /// MySQL reads `5--1` as a sum: its comments need white space after the dashes.
    fn is_dash_comment(&self, rest: &str) -> bool {
        self.dialect != Dialect::MySql
            || rest[2..]
                .chars()
                .next()
                .is_none_or(|c| c.is_whitespace() || c.is_control())
    }

    /// MySQL runs what stands in `/*! … */`, MariaDB in `/*M! … */` too.
    fn is_executed(&self, rest: &str) -> bool {
        self.dialect == Dialect::MySql && (rest.starts_with("/*!") || rest.starts_with("/*M!"))
    }

    fn line_comment(&mut self) -> Token {
        self.run(|c| c != '\n', Token::Space)
    }

    fn block_comment(&mut self) -> Result<Token, Error> {
        let start = self.at;
        let bytes = self.sql.as_bytes();
        self.at += 2;
        let mut depth = 1;
        while depth > 0 {
            match bytes.get(self.at..self.at + 2) {
                Some(b"*/") => {
                    depth -= 1;
                    self.at += 2;
                }
                Some(b"/*") if self.dialect.nested_comments() => {
                    depth += 1;
                    self.at += 2;
                }
                // Bytes of the two delimiters never stand inside a UTF-8 sequence, so a step of one byte is right.
                Some(_) => self.at += 1,
                None => return Err(error_at(self.sql, start, "this comment does not end")),
            }
        }
        Ok(Token::Space)
    }

    /// From an opening quote to the closing one: doubled it stands for itself, and so does what a backslash escapes.
    fn quoted(&mut self, close: char, backslash: bool, what: &str) -> Result<Token, Error> {
        let start = self.at;
        let mut chars = self.sql[start..].char_indices().skip(1).peekable();
        while let Some((i, c)) = chars.next() {
            if c == close {
                if chars.next_if(|&(_, c)| c == close).is_none() {
                    self.at = start + i + 1;
                    return Ok(Token::Other);
                }
            } else if c == '\\' && backslash {
                chars.next();
            }
        }
        let message = format!("this {what} does not end");
        Err(error_at(self.sql, start, &message))
    }

    /// `$tag$ … $tag$`, or a dollar sign that opens nothing.
    fn dollar(&mut self) -> Result<Token, Error> {
        let start = self.at;
        let rest = &self.sql[start..];
        let in_tag = |c: char| in_name(c) || !c.is_ascii();
        let tag_end = 1 + rest[1..].find(|c| !in_tag(c)).unwrap_or(rest.len() - 1);
        let tag = &rest[1..tag_end];
        if !rest[tag_end..].starts_with('$') || tag.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(self.one('$', Token::Other));
        }
        let fence = &rest[..=tag_end];
        match rest[fence.len()..].find(fence) {
            Some(i) => {
                self.at = start + fence.len() + i + fence.len();
                Ok(Token::Other)
            }
            None => Err(error_at(
                self.sql,
                start,
                "this dollar-quoted string does not end",
            )),
        }
    }

    /// `%(name)s`, where it is one.
    fn percent(&mut self, rest: &str) -> Token {
        // Only the name itself is looked through: a text of `%(` alone is read once.
        let n_name = rest.strip_prefix("%(").map_or(0, |name| {
            let end = name.find(|c| !is_word(c)).unwrap_or(name.len());
            if name[end..].starts_with(")s") {
                end
            } else {
                0
            }
        });
        match n_name {
            1.. => {
                self.at += n_name + 4;
                Token::Pyformat
            }
            _ if rest.starts_with("%%") => {
                self.at += 2;
                Token::Other
            }
            _ => self.one('%', Token::Other),
        }
    }

    /// `:name`, or colons that are an operator (`::`, `:=`).
    fn colon(&mut self, rest: &str) -> Token {
        if rest[1..].starts_with(is_word_start) {
            self.at += 1;
            self.run(is_word, Token::Parameter)
        } else {
            self.run(|c| c == ':', Token::Other)
        }
    }
}

/// An error that says where in `sql` (line and column from 1).
fn error_at(sql: &str, at: usize, message: &str) -> Error {
    let before = &sql[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    Error::new(
        ErrorKind::Programming,
        format!("line {line}, column {column} of the SQL: {message}"),
    )
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
