//! The arguments of the command line.

mod bson;
mod copy;
mod export;
mod plan;
mod query;
mod rows;
mod serve_files;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use onecopy_text::{Bom, Encoding, Eol, Policy};

pub use bson::{BigIntsArg, Bson2Json, Json2Bson};
pub use copy::Copy;
pub use export::{CompressionArg, Export, ProgressForm, RowForm, Verify};
pub use plan::{Plan, PlanForm};
pub use query::{OutputForm, Query};
pub use serve_files::{LogFormat, ServeFiles};
pub(crate) use values::{policies, seconds};

/// Query ODBC databases, PostgreSQL and SQLite; serve rows and files over HTTP; convert text
/// between encodings; send files to another machine
#[derive(Debug, Parser)]
#[command(
    name = "onecopy",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 ok, 1 failed, 2 usage, 3 cannot connect, 130 stopped."
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one SQL statement and show or write its rows
    Query(Query),
    /// Write the rows of one SQL statement to a file or a folder, with a manifest
    Export(Export),
    /// Insert the rows of one SQL statement into a table of another database
    Copy(Copy),
    /// Compare exported files with their manifest
    Verify(Verify),
    /// Divide the rows of a query into parts, to be read by several processes
    Plan(Plan),
    /// Serve the queries of a configuration file over HTTP
    Serve(Serve),
    /// Serve the files of a folder over HTTP
    ServeFiles(ServeFiles),
    /// Serve a WSGI application (part of the Python package, as `onecopy run`)
    #[command(disable_help_flag = true)]
    Run(OfPython),
    /// Compare onecopy with other libraries on a database (part of the Python package)
    #[command(disable_help_flag = true)]
    Bench(OfPython),
    /// Convert text from one encoding to another
    Transcode(Transcode),
    /// Convert BSON documents to MongoDB Extended JSON
    #[command(name = "bson2json")]
    Bson2Json(Bson2Json),
    /// Convert MongoDB Extended JSON to BSON documents
    #[command(name = "json2bson")]
    Json2Bson(Json2Bson),
    /// Send files and folders to `onecopy receive`
    Send(crate::transfer::args::Send),
    /// Receive files and folders from `onecopy send`
    Receive(crate::transfer::args::Receive),
    /// Report installed and missing drivers and packages; with DATABASE, test that values arrive
    /// unchanged
    Doctor(Doctor),
}

/// The arguments of `onecopy run` and `onecopy bench`. This crate defines these two commands only
/// for the help; the script `onecopy` of the Python package runs them.
#[derive(Args, Debug)]
pub struct OfPython {
    /// The arguments, which are passed to the Python package unchanged
    #[arg(num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<std::ffi::OsString>,
}

/// The policies that `--errors` of `onecopy transcode` accepts, each with its description in the
/// help.
const TRANSCODE_POLICIES: &[(Policy, &str)] = &[
    (Policy::Strict, "Fail, and report byte, line and column"),
    (
        Policy::Replace,
        "Replace malformed text with U+FFFD, and characters that the target lacks with `?`",
    ),
    (Policy::Ignore, "Omit it"),
    (Policy::BackslashReplace, r"Write `\xNN` or `\uNNNN`"),
    (
        Policy::XmlCharRefReplace,
        "Write `&#N;` for characters that the target lacks; fail at malformed text",
    ),
    (
        Policy::SurrogatePass,
        "Keep lone surrogates between UTF-8, UTF-16 and UTF-32",
    ),
];

/// `onecopy serve`.
#[derive(Args, Debug)]
#[command(after_help = "The format of the file is documented in docs/reference/gateway-config.md.")]
pub struct Serve {
    /// The configuration, a TOML file
    pub file: PathBuf,

    /// Address and port to listen on, or unix:PATH; overrides the address in the configuration file
    #[arg(long, value_name = "ADDRESS", env = "ONECOPY_BIND")]
    pub bind: Option<String>,

    /// Port to listen on; overrides the port in the configuration file
    #[arg(long, env = "ONECOPY_PORT", conflicts_with = "bind")]
    pub port: Option<u16>,

    /// Print on stderr, at the end, how many bytes of text were converted and copied
    #[arg(long)]
    pub ledger: bool,

    /// Allow an address that other machines can reach
    #[arg(long)]
    pub public: bool,

    /// Serve without a supervisor process, even with drivers that may crash
    #[arg(long)]
    pub unsupervised: bool,

    /// Open each database, prepare each query, report all problems, and exit
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

`-f auto` detects the encoding by a byte order mark, zero bytes (UTF-16, UTF-32), valid ASCII or UTF-8, and
otherwise by letter frequencies, which is a guess. The reason is printed on stderr. A file is read completely
for this, stdin up to 1 MiB.

If the output pipe is closed (`| head`), the command ends silently with exit code 141. Ctrl-C ends it with exit
code 130 and leaves no partial file.")]
pub struct Transcode {
    /// Files to convert, in this order; stdin if no file or `-` is given
    pub files: Vec<PathBuf>,

    /// The encoding of the text, or `auto`
    #[arg(short, long, value_name = "ENCODING", default_value = "auto", value_parser = source)]
    pub from: Source,

    /// The encoding of the output; with the suffix `//IGNORE`, the option implies `-c`
    #[arg(short, long, value_name = "ENCODING", default_value = "utf-8", value_parser = target)]
    pub to: Target,

    /// Write to FILE, which is created only if the output is complete
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["in_place", "check"])]
    pub output: Option<PathBuf>,

    /// Replace each file with its converted text, but only if its conversion succeeds; with SUFFIX,
    /// keep the original file under its name followed by SUFFIX
    #[arg(short, long, value_name = "SUFFIX", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(conflicts_with = "check")]
    pub in_place: Option<String>,

    /// Write no output; report whether all text can be converted
    #[arg(long)]
    pub check: bool,

    /// Omit malformed text and characters that the target encoding lacks; same as `--errors ignore`
    #[arg(short = 'c')]
    pub omit: bool,

    /// The treatment of malformed text, and of characters that the target encoding lacks
    #[arg(
        long,
        value_parser = policies(TRANSCODE_POLICIES),
        value_name = "HOW",
        default_value = "strict",
        conflicts_with = "omit"
    )]
    pub errors: Policy,

    /// Fail if the encoding can only be guessed
    #[arg(long)]
    pub strict: bool,

    /// The byte order mark [default: by the name of the encoding: `utf-16` has one, `utf-16-le` has
    /// none]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub bom: Option<BomArg>,

    /// Convert line ends
    #[arg(long, value_enum, value_name = "WHAT", default_value = "keep")]
    pub eol: EolArg,

    /// Print only errors on stderr
    #[arg(short, visible_short_alias = 's', long)]
    pub quiet: bool,

    /// List the encodings
    #[arg(short, long)]
    pub list: bool,
}

/// The source encoding that `--from` of `onecopy transcode` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The encoding is detected from the text.
    Auto,
    /// The named encoding.
    Named(Encoding),
}

/// The target encoding that `--to` of `onecopy transcode` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The encoding of the output.
    pub encoding: Encoding,
    /// `true` if the argument ends with `//IGNORE`, as with iconv. Characters that the encoding
    /// cannot represent are then omitted.
    pub omit: bool,
}

/// The treatment of a byte order mark (`--bom`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BomArg {
    /// Write a byte order mark
    Add,
    /// Write no byte order mark
    Strip,
    /// Write a byte order mark if the input has one
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

/// The treatment of line ends (`--eol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EolArg {
    /// Convert CRLF to LF
    Lf,
    /// Convert LF to CRLF
    Crlf,
    /// Keep line ends
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

With DATABASE, doctor opens a read-only connection, sends text in many scripts, long values, decimals and
timestamps, and compares the returned values. Passwords are never printed.
Exit codes: 0 no error found, 1 errors found, 3 no connection.")]
pub struct Doctor {
    /// A database to connect to, in a form that `onecopy query` accepts
    pub database: Option<String>,

    /// Write the findings as JSON
    #[arg(long)]
    pub json: bool,
}

fn encoding(name: &str) -> Result<Encoding, String> {
    Encoding::by_name(name).ok_or_else(|| {
        "unknown encoding\n\
         `onecopy transcode -l` lists the known ones; iconv supports others"
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
            return Err("transliteration is not supported\n\
                 see --errors, or use iconv"
                .to_owned());
        }
        _ => return Err("only `//IGNORE` may follow an encoding".to_owned()),
    };
    encoding(name).map(|encoding| Target { encoding, omit })
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
