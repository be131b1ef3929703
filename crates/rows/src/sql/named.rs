//! `:name` and `%(name)s` in SQL to positional `?`: a token is either copied, or is a parameter and becomes `?`.

use super::dialect::Dialect;
use super::lexer::{Lexer, TokenKind};
use crate::error::{Error, ErrorKind};

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
    let mut n = 0;
    for token in Lexer::new(sql, dialect) {
        if token.unclosed.is_some() {
            return None;
        }
        n += usize::from(token.kind == TokenKind::QuestionMark);
    }
    Some(n)
}

/// Returns the text with some `?` replaced, by their number (from 0).
pub(crate) fn replace_marks(
    sql: &str,
    dialect: Dialect,
    of: impl Fn(usize) -> Option<String>,
) -> Option<String> {
    let (mut replaced, mut n) = (String::with_capacity(sql.len() + 64), 0);
    for token in Lexer::new(sql, dialect) {
        if token.unclosed.is_some() {
            return None;
        }
        let is_mark = token.kind == TokenKind::QuestionMark;
        match is_mark.then(|| of(n)).flatten() {
            Some(words) => replaced.push_str(&words),
            None => replaced.push_str(token.text),
        }
        n += usize::from(is_mark);
    }
    Some(replaced)
}

fn translate(sql: &str, dialect: Dialect, pyformat: bool) -> Result<Named, Error> {
    let mut out = Named {
        sql: String::with_capacity(sql.len()),
        names: Vec::new(),
        n_statements: 0,
    };
    let mut question_mark = None;
    let mut is_formatted = false;
    let mut in_statement = false;
    for token in Lexer::new(sql, dialect).with_pyformat(pyformat) {
        if let Some(what) = token.unclosed {
            let message = format!("this {what} does not end");
            return Err(error_at(sql, token.start, &message));
        }
        match token.kind {
            TokenKind::Parameter => {
                out.names.push(token.text[1..].to_owned());
                out.sql.push('?');
            }
            TokenKind::Pyformat => {
                let name = &token.text[2..token.text.len() - 2];
                out.names.push(name.to_owned());
                out.sql.push('?');
                is_formatted = true;
            }
            _ => out.sql.push_str(token.text),
        }
        match token.kind {
            _ if token.is_blank() => {}
            TokenKind::Semicolon => in_statement = false,
            _ if in_statement => {}
            _ => {
                in_statement = true;
                out.n_statements += 1;
            }
        }
        if token.kind == TokenKind::QuestionMark {
            question_mark.get_or_insert(token.start);
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
