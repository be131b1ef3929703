//! The arguments of `onecopy plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::seconds;

/// `onecopy plan`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy plan sqlite:shop.db 'select * from orders' --parts 8
  onecopy plan @secret.url 'select * from orders where paid' --parts 16 --key customer_id
  onecopy plan @secret.url 'select o.id, c.name from orders o join customer c using (customer_id) where {part}' \\
      --parts 16 --key o.id --output plan.json --hold

Without --key, the key of the table is used: its primary key, a unique index without NULL, or its physical addresses
(PostgreSQL's `ctid`, SQLite's `rowid`). This requires a statement `select COLUMNS from TABLE [where …]`. In any other
statement, `{part}` is the place of the condition; without `{part}` the statement becomes a derived table.

The plan contains the SQL and its parameters, but not DATABASE. Ctrl-C ends --hold with exit code 0.")]
pub struct Plan {
    /// A database, in a form that `onecopy query` accepts
    pub database: String,

    /// One query, in which the condition of a part replaces `{part}` if present; `@FILE` reads it
    /// from a file, `-` from stdin
    pub sql: String,

    /// The number of parts; one more is added for rows with NULL in the key
    #[arg(short = 'n', long, value_name = "N")]
    pub parts: usize,

    /// The columns to divide by, separated by commas [default: the key of the table]
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub key: Vec<String>,

    /// A parameter, in a form that `onecopy query` accepts; may be repeated
    #[arg(
        short,
        long = "param",
        value_name = "VALUE",
        allow_negative_numbers = true
    )]
    pub params: Vec<String>,

    /// The output format [default: table on a terminal, else json]
    #[arg(short, long, value_enum)]
    pub format: Option<PlanForm>,

    /// Write to FILE, which is created only if the plan is complete
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Export a snapshot that all parts read (PostgreSQL), and keep it until Ctrl-C or SIGTERM
    #[arg(long)]
    pub hold: bool,

    /// The number of rows that are sampled from a large table in order to estimate the parts
    #[arg(long, value_name = "N")]
    pub sample_rows: Option<u64>,

    /// Cancel the planning, or end `--hold`, after this number of seconds
    #[arg(long, value_name = "S", value_parser = seconds, env = "ONECOPY_TIME_LIMIT")]
    pub time_limit: Option<std::time::Duration>,

    /// Print only errors on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// The output format of a plan (`--format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlanForm {
    /// A table for people
    Table,
    /// The plan as JSON
    Json,
}
