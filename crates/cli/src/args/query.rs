//! The arguments of `onecopy query`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onecopy_export::Format;
use onecopy_text::Policy;

use super::values::{ROW_POLICIES, policies, seconds};

/// `onecopy query`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy query sqlite:cities.db 'select * from city limit 5'
  onecopy query sqlite:cities.db 'select * from city where country = :c' --param c=JP
  onecopy query DSN=sales @report.sql --output report.csv
  onecopy query @secret.url 'select * from big' --format ndjson | gzip > big.ndjson.gz

Parameters: one VALUE for each `?`, or name=VALUE for each `:name`. A JSON number (`-5`, `2.50`, `1e3`) is bound as a
number, any other value as text. `TYPE:VALUE` sets the type (text, int, float, decimal, bool, date, time, timestamp,
uuid); `null:` is NULL.

If the output pipe is closed (`| head`), the command ends silently with exit code 141. Ctrl-C cancels the query; a
second Ctrl-C ends the command at once. Both end with exit code 130.")]
pub struct Query {
    /// `sqlite:PATH`, an ODBC connection string, `DSN=NAME`, postgresql://, mysql:// or mssql://;
    /// `@FILE` reads it from a file, so that a password is not visible in the process list
    pub database: String,

    /// One SQL statement; `@FILE` reads it from a file, `-` from stdin
    pub sql: String,

    /// A parameter: VALUE for the next `?`, or name=VALUE for `:name`; may be repeated
    #[arg(
        short,
        long = "param",
        value_name = "VALUE",
        allow_negative_numbers = true
    )]
    pub params: Vec<String>,

    /// The output format [default: with --output by the ending of the file name; otherwise table on
    /// a terminal, else csv]
    #[arg(short, long, value_enum, env = "ONECOPY_FORMAT")]
    pub format: Option<OutputForm>,

    /// Write to FILE, which is created only if the output is complete; .gz or .zst at the end of
    /// its name compress it
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print on stderr how many bytes of text were converted and copied
    #[arg(long)]
    pub ledger: bool,

    /// Cancel the query after this number of seconds
    #[arg(long, value_name = "S", value_parser = seconds, env = "ONECOPY_TIME_LIMIT")]
    pub time_limit: Option<std::time::Duration>,

    /// The treatment of malformed text in a cell (a table always shows it as U+FFFD)
    #[arg(long, value_parser = policies(ROW_POLICIES), value_name = "HOW", default_value = "strict")]
    pub errors: Policy,

    /// Open the database read-only
    #[arg(long)]
    pub read_only: bool,

    /// Print only errors on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// The output format of rows (`--format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputForm {
    /// Aligned columns for a terminal
    Table,
    /// One array of objects
    Json,
    /// One object per line
    Ndjson,
    /// RFC 4180 with a header line
    Csv,
    /// CSV with tabs between the fields
    Tsv,
    /// One document per row, concatenated
    Bson,
    /// Arrow's IPC file format
    Arrow,
    /// Apache Parquet
    Parquet,
}

impl OutputForm {
    /// Returns the file format of the rows; `None` for [`OutputForm::Table`].
    #[must_use]
    pub fn format(self) -> Option<Format> {
        Some(match self {
            OutputForm::Table => return None,
            OutputForm::Json => Format::Json,
            OutputForm::Ndjson => Format::Ndjson,
            OutputForm::Csv => Format::Csv,
            OutputForm::Tsv => Format::Tsv,
            OutputForm::Bson => Format::Bson,
            OutputForm::Arrow => Format::Arrow,
            OutputForm::Parquet => Format::Parquet,
        })
    }
}
