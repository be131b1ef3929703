//! The arguments of `onecopy copy`.

use clap::Args;

use super::rows::RowsArgs;

/// `onecopy copy`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy copy sqlite:shop.db 'select * from orders' @secret.url orders
  onecopy copy @from.url 'select id, name from customer where region = :r' @to.url sales.customer --param r=EU
  onecopy copy @from.url 'select id, price from item' sqlite:shop.db item --types price=double

TABLE must exist. Its columns are those of the query, by name, in any order. The rows are inserted in one transaction:
after an error or Ctrl-C, TABLE is as before. A value that TABLE would change (a rounded number, a shorter fraction of
a second, NaN in SQLite) is an error, with its column and row.

Within one database, use `onecopy query DATABASE 'insert into … select …'`.
Parameters are those of `onecopy query`. Exit codes: 0 all rows are in TABLE, 1 none, 2 usage, 3 cannot connect, 130
stopped.")]
pub struct Copy {
    /// The database to read, in a form that `onecopy query` accepts; it is opened read-only
    pub from: String,

    /// One SQL statement, which returns the rows; `@FILE` reads it from a file, `-` from stdin
    pub sql: String,

    /// The database to write, in a form that `onecopy query` accepts; `@FILE` reads it from a file
    pub to: String,

    /// The table to insert into; a dot separates the schema from the name
    pub table: String,

    /// A parameter: VALUE for the next `?`, or name=VALUE for `:name`; may be repeated
    #[arg(
        short,
        long = "param",
        value_name = "VALUE",
        allow_negative_numbers = true
    )]
    pub params: Vec<String>,

    /// The Arrow type to which a column is converted, such as `active=bool`; may be repeated
    #[arg(long, value_name = "COLUMN=TYPE")]
    pub types: Vec<String>,

    /// Allow columns of TABLE that the query does not have: they get their default values
    #[arg(long)]
    pub allow_defaults: bool,

    /// How the rows are read and the progress is reported
    #[command(flatten)]
    pub rows: RowsArgs,
}
