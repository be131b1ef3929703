//! What SQLite's statements are, by their first keyword.

use crate::sql::dialect::Dialect;
use crate::sql::statements::skip_blank;

/// The first keyword of `sql` (ASCII letters), past white space, comments and semicolons.
fn first_keyword(sql: &str) -> &str {
    let rest = skip_blank(sql, Dialect::Sqlite);
    let end = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    &rest[..end]
}

/// What a statement is, as far as transactions and counts are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// INSERT or REPLACE: gives a row id too.
    Insert,
    /// UPDATE, DELETE, or a WITH that writes.
    Change,
    /// ROLLBACK written out (also ROLLBACK TO).
    Rollback,
    /// VACUUM, which with INTO writes a file of its own even where the database is read-only.
    Vacuum,
    /// Anything else.
    Other,
}

impl Kind {
    /// Of `sql`, which SQLite says only reads or not.
    pub(super) fn of(sql: &str, read_only: bool) -> Kind {
        let keyword = first_keyword(sql);
        let is = |word: &str| keyword.eq_ignore_ascii_case(word);
        if is("INSERT") || is("REPLACE") {
            Kind::Insert
        } else if is("UPDATE") || is("DELETE") || (is("WITH") && !read_only) {
            Kind::Change
        } else if is("ROLLBACK") {
            Kind::Rollback
        } else if is("VACUUM") {
            Kind::Vacuum
        } else {
            Kind::Other
        }
    }

    /// Whether it inserts, changes or deletes rows.
    pub(super) fn is_dml(self) -> bool {
        matches!(self, Kind::Insert | Kind::Change)
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
        assert_eq!(Kind::of(sql, false), Kind::Change);
        assert_eq!(Kind::of("with a as (select 1) select 2", true), Kind::Other);
        assert_eq!(
            Kind::of("explain insert into t values (1)", true),
            Kind::Other
        );
    }
}
