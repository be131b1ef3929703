//! Detects if a SQL string is a PostgreSQL `COPY` statement that transfers data between a table and
//! the client, and returns the direction of the transfer.

use super::dialect::Dialect;
use super::statements::{first_word, skip_blank, split, tokens};

/// The direction of a `COPY` between a table and the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    /// `COPY … TO STDOUT`: the server sends data.
    ToClient,
    /// `COPY … FROM STDIN`: the client sends data.
    FromClient,
}

/// If `sql` (of PostgreSQL) begins with a COPY between a table and the client, returns its
/// direction. Returns `None` for any other statement, and for a COPY to or from a file or program
/// of the server.
fn direction(sql: &str) -> Option<CopyDirection> {
    if first_word(sql, Dialect::Postgres) != "COPY" {
        return None;
    }
    let mut n_parentheses = 0_usize;
    let mut direction = None;
    for token in tokens(sql, Dialect::Postgres) {
        if let Some(direction) = direction {
            // PostgreSQL accepts each of the two words in both directions.
            let is_client = token.is("STDOUT") || token.is("STDIN");
            return is_client.then_some(direction);
        }
        match token.text {
            "(" => n_parentheses += 1,
            ")" => n_parentheses = n_parentheses.saturating_sub(1),
            _ if n_parentheses > 0 => {}
            _ if token.is("TO") => direction = Some(CopyDirection::ToClient),
            _ if token.is("FROM") => direction = Some(CopyDirection::FromClient),
            _ => {}
        }
    }
    None
}

/// Returns `true` if `sql` (of PostgreSQL) begins with a `COPY` between a table and the client.
pub(crate) fn copies_through_client(sql: &str) -> bool {
    direction(skip_blank(sql, Dialect::Postgres)).is_some()
}

/// The result of [`classify`], which decides whether a SQL string can be executed as a COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyText {
    /// The SQL string is one `COPY` between a table and the client.
    One(CopyDirection),
    /// The SQL string contains several statements.
    Several,
    /// The SQL string contains one statement of another kind, or no statement.
    Other,
}

/// Classifies a SQL string of PostgreSQL that is to be executed as a COPY.
pub(crate) fn classify(sql: &str) -> CopyText {
    match split(sql)[..] {
        [one] => direction(one).map_or(CopyText::Other, CopyText::One),
        [] => CopyText::Other,
        _ => CopyText::Several,
    }
}

#[cfg(test)]
mod tests {
    use super::CopyDirection::{FromClient, ToClient};
    use super::*;

    #[test]
    fn a_copy_through_the_client_is_known_by_its_words() {
        for (sql, expected) in [
            ("copy t to stdout", ToClient),
            ("/* a */ COPY (select 1 from t) TO STDOUT csv", ToClient),
            ("copy t from STDIN", FromClient),
            ("copy t (a, \"from\") to -- here\nstdout", ToClient),
            ("copy stdin from stdin where a in (1)", FromClient),
            ("copy t from stdout", FromClient),
            ("copy \"to\" from stdin", FromClient),
        ] {
            assert_eq!(direction(sql), Some(expected), "{sql}");
        }
        assert!(copies_through_client(";; copy t to stdout"));
        for sql in [
            "copy t to 'stdout'",
            "copy \"stdout\" to '/f'",
            "copy (select $$ to stdout $$) to '/f'",
            "copy t from '/f' where stdin = 1",
            "copy t from program 'stdin'",
            "select stdout from copy",
            "copy t to '/f' -- stdout",
            "copy t to",
            "copy",
            "",
            "select 1; copy t to stdout",
        ] {
            assert!(!copies_through_client(sql), "{sql}");
        }
    }

    #[test]
    fn a_second_statement_is_recognised() {
        for (sql, expected) in [
            (
                " ; /* ; */ copy t to stdout ; -- ;",
                CopyText::One(ToClient),
            ),
            ("copy (select ';') to stdout", CopyText::One(ToClient)),
            ("copy t to stdout; select 1", CopyText::Several),
            (
                "insert into t values (1); copy t from stdin",
                CopyText::Several,
            ),
            ("delete from t", CopyText::Other),
            (" -- nothing", CopyText::Other),
        ] {
            assert_eq!(classify(sql), expected, "{sql}");
        }
    }
}
