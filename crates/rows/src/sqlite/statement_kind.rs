//! `StatementKind`: the kind of a SQLite statement, by its first keyword.

use crate::sql::dialect::Dialect;
use crate::sql::statements::skip_blank;

/// Returns the first keyword of `sql`, after white space, comments and semicolons.
fn first_keyword(sql: &str) -> &str {
    let rest = skip_blank(sql, Dialect::Sqlite);
    let end = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    &rest[..end]
}

/// The kind of a statement. It determines how the statement affects the transaction and the row
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementKind {
    /// INSERT or REPLACE, which also set the last row id.
    Insert,
    /// UPDATE, DELETE, or a WITH that writes.
    Change,
    /// ROLLBACK or ROLLBACK TO in SQL.
    Rollback,
    /// VACUUM. With INTO it writes a new file, even if the database is read-only.
    Vacuum,
    /// Any other statement.
    Other,
}

impl StatementKind {
    /// Determines the kind of `sql`. `read_only` is the result of `sqlite3_stmt_readonly`: `true`
    /// if the statement does not write to the database.
    pub(super) fn of(sql: &str, read_only: bool) -> StatementKind {
        let keyword = first_keyword(sql);
        let is = |word: &str| keyword.eq_ignore_ascii_case(word);
        if is("INSERT") || is("REPLACE") {
            StatementKind::Insert
        } else if is("UPDATE") || is("DELETE") || (is("WITH") && !read_only) {
            StatementKind::Change
        } else if is("ROLLBACK") {
            StatementKind::Rollback
        } else if is("VACUUM") {
            StatementKind::Vacuum
        } else {
            StatementKind::Other
        }
    }

    /// Returns `true` if the statement inserts, changes or deletes rows.
    pub(super) fn is_dml(self) -> bool {
        matches!(self, StatementKind::Insert | StatementKind::Change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyword_stands_behind_comments_and_semicolons() {
        for (sql, want) in [
            ("select 1", "select"),
            ("  -- note\n /* a */;; INSERT into t", "INSERT"),
            ("/* open", ""),
            ("-- only", ""),
            ("", ""),
            ("(select 1)", ""),
            ("--\nreplace\tinto", "replace"),
        ] {
            assert_eq!(first_keyword(sql), want, "{sql}");
        }
    }

    #[test]
    fn a_with_counts_as_a_change_only_where_it_writes() {
        let sql = "WITH a AS (SELECT 1) DELETE FROM t";
        assert_eq!(StatementKind::of(sql, false), StatementKind::Change);
        assert_eq!(
            StatementKind::of("with a as (select 1) select 2", true),
            StatementKind::Other
        );
        assert_eq!(
            StatementKind::of("explain insert into t values (1)", true),
            StatementKind::Other
        );
    }
}
