//! What the command line can say.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Rows of any ODBC database and of SQLite, to the terminal, to files and over HTTP.
#[derive(Debug, Parser)]
#[command(
    name = "onecopy",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 ok, 1 failed, 2 usage, 3 cannot connect, 130 stopped."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one SQL statement and show or write its rows
    Query(Query),
    /// Serve the queries of a configuration file over HTTP
    Serve(Serve),
    /// Tell what this machine has: versions, driver manager, drivers; with DATABASE, whether it answers
    Doctor(Doctor),
}

/// `onecopy query`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy query sqlite:cities.db 'select * from city limit 5'
  onecopy query sqlite:cities.db 'select * from city where country = :c' --param c=JP
  onecopy query DSN=sales @report.sql --output report.csv
  onecopy query @secret.url 'select * from big' --format ndjson | gzip > big.ndjson.gz

Parameters: for `?` give a value each, for `:name` give name=VALUE. A value that looks like a number is bound as one,
anything else as text; `TYPE:VALUE` says the type (text, int, float, decimal, bool, date, time, timestamp, uuid), and
`null:` is NULL.

A closed pipe (`| head`) is silent and ends with 141. Ctrl-C cancels the query, a second one ends at once; both with 130.")]
pub struct Query {
    /// `sqlite:PATH`, an ODBC connection string, `DSN=NAME`, postgresql://, mysql:// or mssql://; `@FILE` reads it from a
    /// file, which keeps a password out of the list of processes
    pub database: String,

    /// One SQL statement; `@FILE` reads it from a file, `-` from stdin
    pub sql: String,

    /// A parameter, in the order of the `?`, or as name=VALUE for a `:name`; may be given many times
    #[arg(short, long = "param", value_name = "VALUE")]
    pub params: Vec<String>,

    /// The form of the rows [default: a table on a terminal, by the file's ending with --output, else csv]
    #[arg(short, long, value_enum, env = "ONECOPY_FORMAT")]
    pub format: Option<Form>,

    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Show on stderr how much text was converted and copied
    #[arg(long)]
    pub ledger: bool,

    /// Cancel the query after so many seconds
    #[arg(long, value_name = "S", value_parser = seconds, env = "ONECOPY_TIMEOUT")]
    pub timeout: Option<std::time::Duration>,

    /// What to do with malformed text in a cell (a table shows it as U+FFFD in any case)
    #[arg(long, value_enum, value_name = "HOW", default_value = "strict")]
    pub text_errors: TextErrors,

    /// Open the database for reading alone
    #[arg(long)]
    pub read_only: bool,

    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// What is done with malformed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TextErrors {
    /// Fail, and tell column, row and place
    Strict,
    /// Put U+FFFD in its place
    Replace,
}

/// The form rows are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Aligned columns, for people
    Table,
    /// One array of objects
    Json,
    /// One object a line
    Ndjson,
    /// RFC 4180 with a header line
    Csv,
}

/// `onecopy serve`.
#[derive(Args, Debug)]
#[command(after_help = "The file's format: docs/reference/gateway-config.md.")]
pub struct Serve {
    /// The configuration, a TOML file
    pub file: PathBuf,

    /// Address and port to listen at, instead of the file's
    #[arg(long, value_name = "ADDRESS:PORT", env = "ONECOPY_BIND")]
    pub bind: Option<String>,

    /// Port to listen at, instead of the file's
    #[arg(long, env = "ONECOPY_PORT", conflicts_with = "bind")]
    pub port: Option<u16>,

    /// Show on stderr, when it stops, how much text was converted and copied
    #[arg(long)]
    pub ledger: bool,

    /// Allow an address that other machines reach
    #[arg(long)]
    pub public: bool,

    /// Serve in this process alone, even over drivers that may crash it
    #[arg(long)]
    pub unsupervised: bool,

    /// Open each database, prepare each query, tell all problems, and serve nothing
    #[arg(long)]
    pub check: bool,
}

/// `onecopy doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// A database to connect to, as for `query`
    pub database: Option<String>,
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(std::time::Duration::from_secs_f64(seconds))
    } else {
        Err("must be above 0 and at most 86400".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_parser_is_whole() {
        Cli::command().debug_assert();
    }
}
