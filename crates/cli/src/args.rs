//! What the command line can say.

mod bson;
mod serve_files;

use std::path::PathBuf;

use onecopy_text::{Bom, Encoding, Eol, OnMalformed, OnUnencodable};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use bson::{BigIntsArg, Bson2Json, Json2Bson, MalformedText};
pub use serve_files::{LogFormat, ServeFiles};

/// Rows of any ODBC database and of SQLite, to the terminal, to files and over HTTP; text from one encoding to another; files from one machine to
/// another.
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
    /// Serve the files of a folder over HTTP
    ServeFiles(ServeFiles),
    /// Serve a WSGI application (part of the Python package, as `onecopy run`)
    #[command(disable_help_flag = true)]
    Run(Run),
    /// Convert text from one encoding to another
    Transcode(Transcode),
    /// Turn BSON documents into MongoDB Extended JSON
    #[command(name = "bson2json")]
    Bson2Json(Bson2Json),
    /// Turn MongoDB Extended JSON into BSON documents
    #[command(name = "json2bson")]
    Json2Bson(Json2Bson),
    /// Send files and folders to `onecopy receive`
    Send(crate::transfer::args::Send),
    /// Receive files and folders from `onecopy send`
    Receive(crate::transfer::args::Receive),
    /// Tell what this machine has and lacks, and what to install; with DATABASE, whether values come as they are
    Doctor(Doctor),
}

/// `onecopy run`, which the wheel's script runs itself: here it is but told of.
#[derive(Args, Debug)]
pub struct Run {
    /// What `onecopy run` of the Python package takes
    #[arg(num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<std::ffi::OsString>,
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
    /// One document a row, one behind the other
    Bson,
}

/// `onecopy serve`.
#[derive(Args, Debug)]
#[command(after_help = "The file's format: docs/reference/gateway-config.md.")]
pub struct Serve {
    /// The configuration, a TOML file
    pub file: PathBuf,

    /// Address and port to listen at, or unix:PATH, instead of the file's
    #[arg(long, value_name = "ADDRESS", env = "ONECOPY_BIND")]
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

/// `onecopy transcode`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy transcode -f utf-16 report.txt > report-utf8.txt
  onecopy transcode -f latin-1 -t utf-8 --eol lf -i.bak notes/*.txt
  onecopy transcode --check *.csv
  curl -s https://example.org/page | onecopy transcode --strict

`-f auto` goes by byte order mark, zeros (UTF-16, UTF-32), valid ASCII or UTF-8, and last by what letters stand side by side,
which is a guess; the reason is told on stderr. A file is read to its end for that, stdin's first MiB.

A closed pipe (`| head`) is silent and ends with 141. Ctrl-C ends with 130, and leaves no half-written file.")]
pub struct Transcode {
    /// Files to convert, one after the other; `-` or none: stdin
    pub files: Vec<PathBuf>,

    /// The encoding of the text, or `auto`
    #[arg(short, long, value_name = "ENCODING", default_value = "auto", value_parser = source)]
    pub from: Source,

    /// The encoding to write; `//IGNORE` behind it is `-c`
    #[arg(short, long, value_name = "ENCODING", default_value = "utf-8", value_parser = target)]
    pub to: Target,

    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["in_place", "check"])]
    pub output: Option<PathBuf>,

    /// Convert each file in its place, which changes at once or not at all; with SUFFIX the old one stays under its name
    /// and SUFFIX
    #[arg(short, long, value_name = "SUFFIX", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(conflicts_with = "check")]
    pub in_place: Option<String>,

    /// Write nothing: tell whether all could be converted
    #[arg(long)]
    pub check: bool,

    /// Leave out what is no text and what cannot be written: `--on-error ignore`
    #[arg(short = 'c')]
    pub omit: bool,

    /// What to do with what is no text, and with characters that the encoding to write does not have
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "strict",
        conflicts_with = "omit"
    )]
    pub on_error: OnError,

    /// Refuse an encoding that is only a guess
    #[arg(long)]
    pub strict: bool,

    /// The byte order mark [default: as the names of the encodings say; `utf-16` has one, `utf-16-le` has none]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub bom: Option<BomArg>,

    /// Line ends
    #[arg(long, value_enum, value_name = "WHAT", default_value = "keep")]
    pub eol: EolArg,

    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub silent: bool,

    /// List the encodings
    #[arg(short, long)]
    pub list: bool,
}

/// What `--from` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// To be found out.
    Auto,
    /// This.
    Named(Encoding),
}

/// What `--to` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The encoding.
    pub encoding: Encoding,
    /// Whether `//IGNORE` stood behind it.
    pub omit: bool,
}

/// What is done with text that cannot stay as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Fail, and tell byte, line and column
    Strict,
    /// U+FFFD, or `?` for what cannot be written
    Replace,
    /// Leave it out
    Ignore,
    /// `\xNN`, `\uNNNN`
    Backslashreplace,
    /// `&#N;` for what cannot be written; what is no text fails
    Xmlcharrefreplace,
    /// Lone surrogates pass through between UTF-8, UTF-16 and UTF-32
    Surrogatepass,
}

impl OnError {
    /// What that means for both ways.
    #[must_use]
    pub fn policies(self) -> (OnMalformed, OnUnencodable) {
        match self {
            OnError::Strict => (OnMalformed::Strict, OnUnencodable::Strict),
            OnError::Replace => (OnMalformed::Replace, OnUnencodable::Replace),
            OnError::Ignore => (OnMalformed::Ignore, OnUnencodable::Ignore),
            OnError::Backslashreplace => (
                OnMalformed::BackslashReplace,
                OnUnencodable::BackslashReplace,
            ),
            OnError::Xmlcharrefreplace => (OnMalformed::Strict, OnUnencodable::XmlCharRefReplace),
            OnError::Surrogatepass => (OnMalformed::SurrogatePass, OnUnencodable::SurrogatePass),
        }
    }
}

/// What becomes of a byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BomArg {
    /// Write one
    Add,
    /// Write none
    Strip,
    /// Write one where one was
    Keep,
}

impl From<BomArg> for Bom {
    fn from(bom: BomArg) -> Bom {
        match bom {
            BomArg::Add => Bom::Add,
            BomArg::Strip => Bom::Strip,
            BomArg::Keep => Bom::Keep,
        }
    }
}

/// What becomes of line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EolArg {
    /// CRLF becomes LF
    Lf,
    /// LF becomes CRLF
    Crlf,
    /// They stay
    Keep,
}

impl From<EolArg> for Eol {
    fn from(eol: EolArg) -> Eol {
        match eol {
            EolArg::Lf => Eol::Lf,
            EolArg::Crlf => Eol::Crlf,
            EolArg::Keep => Eol::Keep,
        }
    }
}

/// `onecopy doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy doctor
  onecopy doctor sqlite:cities.db
  onecopy doctor @secret.url --json

With DATABASE it connects, reading alone, and sends text of many scripts, long values, decimals and time stamps there and
back. No password is shown. Exit codes: 0 nothing is broken, 1 something is, 3 no connection.")]
pub struct Doctor {
    /// A database to connect to, as for `query`
    pub database: Option<String>,

    /// Write the findings as JSON
    #[arg(long)]
    pub json: bool,
}

fn encoding(name: &str) -> Result<Encoding, String> {
    Encoding::by_name(name).ok_or_else(|| {
        "no encoding that is known here\n\
         `onecopy transcode -l` lists them; for others there is iconv"
            .to_owned()
    })
}

fn source(name: &str) -> Result<Source, String> {
    match name {
        "auto" => Ok(Source::Auto),
        name => encoding(name).map(Source::Named),
    }
}

fn target(name: &str) -> Result<Target, String> {
    let (name, suffix) = name.split_once("//").unwrap_or((name, ""));
    let omit = match suffix.to_ascii_uppercase().as_str() {
        "" => false,
        "IGNORE" => true,
        "TRANSLIT" => {
            return Err("characters are not written in the letters of others here\n\
                 see --on-error, or use iconv"
                .to_owned());
        }
        _ => return Err("only `//IGNORE` is known behind an encoding".to_owned()),
    };
    encoding(name).map(|encoding| Target { encoding, omit })
}

pub(crate) fn seconds(text: &str) -> Result<std::time::Duration, String> {
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
