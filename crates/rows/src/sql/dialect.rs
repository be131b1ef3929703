//! `Dialect`: the SQL dialect of a database, which decides how the lexer splits a statement into
//! tokens.

/// A database's lexical rules for strings, comments and quoted names, beyond those of standard SQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// An unknown database. SQL that it executes is split by the rules of standard SQL only. The
    /// search for named parameters also recognises the quotes of the other dialects.
    #[default]
    Generic,
    /// SQLite: quoted names `[name]` and `` `name` ``.
    Sqlite,
    /// PostgreSQL: strings `E'\''` and `$tag$…$tag$`, nested comments, slices `a[1:2]`.
    Postgres,
    /// MariaDB and MySQL: backslash escapes in strings, `#` comments, `--` comments only before
    /// white space. The text in `/*! … */` is not a comment, because the server executes it.
    MySql,
    /// SQL Server: quoted names `[name]`, nested comments.
    SqlServer,
}
