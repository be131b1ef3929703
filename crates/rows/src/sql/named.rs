//! Replaces the named parameters `:name` and `%(name)s` by positional `?`; all other tokens are
//! copied unchanged.

use super::dialect::Dialect;
use super::lexer::{Lexer, TokenKind};
use crate::error::{Error, ErrorKind};

/// A statement whose named parameters were replaced by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The SQL string with a `?` for each parameter.
    pub sql: String,
    /// For each `?`, in order, the name of the parameter that the `?` replaces. A name that is used
    /// twice in the text occurs twice.
    pub names: Vec<String>,
    /// The number of statements in the text: the parts between semicolons that contain more than
    /// white space and comments.
    pub n_statements: usize,
}

/// Replaces each parameter `:name` by `?`.
///
/// A colon begins a parameter if a letter or `_` follows it, and the character before it is not a
/// letter, digit, `_` or colon. `a::text`, `x[1:n]` and `:=` are therefore unchanged.
///
/// # Errors
/// [`ErrorKind::Programming`], with line and column, for an unterminated string, comment or quoted
/// name. The same error for a `?` together with named parameters, because the driver would count
/// that `?` as one more parameter.
pub fn positional(sql: &str, dialect: Dialect) -> Result<Named, Error> {
    translate(sql, dialect, false)
}

/// Replaces `:name` and `%(name)s`, the two named parameter styles of PEP 249, by `?`.
///
/// If the text contains a parameter `%(name)s`, `%%` becomes a percent sign, even inside strings
/// and comments, as in Python's `%` formatting. In any other text, percent signs are unchanged.
///
/// # Errors
/// The errors of [`positional`].
pub fn by_name(sql: &str, dialect: Dialect) -> Result<Named, Error> {
    translate(sql, dialect, true)
}

/// Returns the number of `?` parameters in `sql`, without those in strings, comments and operators;
/// `None` for an unterminated string or comment.
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

/// Replaces each `?` in a statement by the next item of `texts`, to display the statement. A `?`
/// for which no item is left is unchanged, as is a statement with an unterminated string or
/// comment.
#[must_use]
pub fn fill_marks(sql: &str, dialect: Dialect, texts: &[String]) -> String {
    let filled = replace_marks(sql, dialect, |index| texts.get(index).cloned());
    filled.unwrap_or_else(|| sql.to_owned())
}

/// Calls `of` for each `?` in the SQL, with the index of the `?` from 0. If `of` returns a string,
/// the string replaces the `?`. Returns `None` if the SQL has an unterminated string or comment.
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

/// The message for a statement with both `?` and named parameters.
pub(crate) const MIXED: &str =
    "a `?` is mixed with named parameters and would be counted as one more\nuse only names";

/// Creates an error with the line and column (from 1) of the byte `at` of `sql`.
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
