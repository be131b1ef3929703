//! Whose SQL a database speaks.

/// How a database writes strings, comments and quoted names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Unknown database: standard SQL.
    #[default]
    Generic,
    /// `[name]`, `` `name` ``.
    Sqlite,
    /// `E'\''`, `$tag$…$tag$`, nested comments, `a[1:2]`.
    Postgres,
    /// Backslash escapes in strings, `#` comments, `--` only before white space, `/*! … */` is no comment.
    MySql,
    /// `[name]`, nested comments.
    SqlServer,
}
