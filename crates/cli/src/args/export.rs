//! The arguments of `onecopy export` and `onecopy verify`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueEnum};
use onecopy_export::plan;
use onecopy_export::{Compression, Format};

use crate::failure::Failure;

use super::rows::RowsArgs;
use super::values::seconds;

/// `onecopy export`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("divided").args(["parts", "plan", "resume"]).multiple(true))]
#[command(after_help = "\
Examples:
  onecopy export sqlite:cities.db 'select * from city' -o cities.parquet
  onecopy export @secret.url 'select * from big' -o big.csv.zst
  onecopy export @secret.url 'select * from big' -o backup/ --format parquet
  onecopy export @secret.url 'select * from big' -o backup/ --format parquet --parts 64 --jobs 4
  onecopy export @secret.url --plan plan.json --part 3/16 -o backup/ --format parquet
  onecopy export @secret.url 'select * from big' -o - --format parquet | aws s3 cp - s3://bucket/big.parquet

The ending of FILE determines the format (.json, .ndjson, .jsonl, .csv, .tsv, .bson, .arrow, .parquet) and the
compression (.gz, .zst). A FILE gets its name when it is complete; FILE.manifest.json is written last, with the number
of rows and bytes, a BLAKE3 hash, the columns and the query, which `onecopy verify FILE` compares. A FOLDER contains
part-00000.parquet and manifest.json. The database is opened read-only.

Files of --parts and --plan are in FOLDER/.onecopy-export until all are complete. After a failure, the same command with
--resume writes those that are missing.

Parameters are those of `onecopy query`. Ctrl-C cancels the query and leaves no file; a second Ctrl-C ends the command
at once. Both end with exit code 130.")]
pub struct Export {
    /// `sqlite:PATH`, an ODBC connection string, `DSN=NAME`, postgresql://, mysql:// or mssql://;
    /// `@FILE` reads it from a file, so that a password is not visible in the process list
    pub database: String,

    /// One SQL statement; `@FILE` reads it from a file, `-` from stdin; with --plan it may be left
    /// out
    #[arg(required_unless_present = "plan")]
    pub sql: Option<String>,

    /// The file or folder to write; it is a folder if it exists as a folder or its name ends with
    /// `/`; `-` is stdout, without a manifest
    #[arg(short, long, value_name = "FILE|FOLDER")]
    pub output: PathBuf,

    /// A parameter: VALUE for the next `?`, or name=VALUE for `:name`; may be repeated
    #[arg(
        short,
        long = "param",
        value_name = "VALUE",
        allow_negative_numbers = true
    )]
    pub params: Vec<String>,

    /// The format; required for a folder, for stdout, and for a FILE whose ending is not that of a
    /// format
    #[arg(short, long, value_enum)]
    pub format: Option<RowForm>,

    /// The compression [default: by the ending of FILE; otherwise zstd for parquet, else none]
    #[arg(short, long, value_enum)]
    pub compression: Option<CompressionArg>,

    /// The Arrow type of a column of an Arrow or Parquet file, such as
    /// `price=decimal128(12, 2)`; may be repeated
    #[arg(long, value_name = "COLUMN=TYPE")]
    pub types: Vec<String>,

    /// Replace the file, or the export in the folder, when the new one is complete
    #[arg(long)]
    pub overwrite: bool,

    /// Divide the rows into N parts, each of which is a file of FOLDER
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "plan")]
    pub parts: Option<usize>,

    /// The columns to divide by, separated by commas [default: the key of the table]
    #[arg(
        short,
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "parts"
    )]
    pub key: Vec<String>,

    /// Export the parts of a plan that `onecopy plan` has written; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,

    /// Export only part I of the N parts of the plan; other processes can export the others
    #[arg(long, value_name = "I/N", requires = "plan")]
    pub part: Option<PartNumber>,

    /// Continue an export of parts that was interrupted; complete parts are kept
    #[arg(long)]
    pub resume: bool,

    /// The number of parts that are read at the same time [default: the number of processors, at
    /// most 8]
    #[arg(short, long, value_name = "N", requires = "divided",
        value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,

    /// With --parts, let each part read the state of the database at its own start, even if the
    /// database supports snapshots (PostgreSQL)
    #[arg(long, requires = "parts")]
    pub no_snapshot: bool,

    /// Compare the number of rows with `count(*)` before the manifest of the parts is written
    #[arg(long, requires = "divided")]
    pub check: bool,

    /// Write no manifest for a FILE
    #[arg(long)]
    pub no_manifest: bool,

    /// How the rows are read and the progress is reported
    #[command(flatten)]
    pub rows: RowsArgs,
}

/// `onecopy verify`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy verify cities.parquet
  onecopy verify backup/
  onecopy verify backup/ --database @secret.url

Each file of the manifest is read once: its length, its BLAKE3 hash and its number of rows are compared. In a folder, a
file that the manifest does not list is a difference too. One line per difference is written to stdout.

With --database, the rows of the manifest's query are counted now, and not in the snapshot of the export: rows that
were added or deleted since then are a difference. `onecopy export --check` counts in the snapshot.
Exit codes: 0 no difference, 1 differences, or the manifest cannot be read, 3 cannot connect.")]
pub struct Verify {
    /// A folder or file that `onecopy export` wrote, or a manifest
    #[arg(value_name = "FOLDER|FILE")]
    pub path: PathBuf,

    /// Compare the number of rows with the result of `count(*)` for the manifest's query in this
    /// database
    #[arg(long, value_name = "DATABASE")]
    pub database: Option<String>,

    /// The value of a parameter of the manifest's query, in a form that `onecopy query` accepts;
    /// may be repeated
    #[arg(
        short,
        long = "param",
        value_name = "VALUE",
        allow_negative_numbers = true,
        requires = "database"
    )]
    pub params: Vec<String>,

    /// Cancel the count after this number of seconds
    #[arg(long, value_name = "S", value_parser = seconds, requires = "database")]
    pub time_limit: Option<std::time::Duration>,

    /// Print only errors on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// The value of `--part`: the number of a part, and the total number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartNumber {
    number: usize,
    count: usize,
}

impl FromStr for PartNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<PartNumber, String> {
        let parsed = text.split_once('/').and_then(|(number, count)| {
            let part = PartNumber {
                number: number.parse().ok()?,
                count: count.parse().ok()?,
            };
            (1..=part.count).contains(&part.number).then_some(part)
        });
        parsed
            .ok_or_else(|| "write the number of the part and of all parts, as in `3/16`".to_owned())
    }
}

impl PartNumber {
    /// Returns the number of the part to export. Returns an error if `--part` names another number
    /// of parts than `plan` has.
    pub(crate) fn of(self, plan: &plan::Plan) -> Result<usize, Failure> {
        match plan.parts.len() == self.count {
            true => Ok(self.number),
            false => Err(Failure::Usage(format!(
                "the plan has {} parts, not {}",
                plan.parts.len(),
                self.count
            ))),
        }
    }
}

/// The format of exported rows (`--format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowForm {
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

impl From<RowForm> for Format {
    fn from(arg: RowForm) -> Format {
        match arg {
            RowForm::Json => Format::Json,
            RowForm::Ndjson => Format::Ndjson,
            RowForm::Csv => Format::Csv,
            RowForm::Tsv => Format::Tsv,
            RowForm::Bson => Format::Bson,
            RowForm::Arrow => Format::Arrow,
            RowForm::Parquet => Format::Parquet,
        }
    }
}

/// The compression of exported files (`--compression`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressionArg {
    /// No compression
    None,
    /// gzip (text formats)
    Gzip,
    /// Zstandard, for a text file as a whole, for an Arrow or Parquet file block by block
    Zstd,
}

impl From<CompressionArg> for Compression {
    fn from(arg: CompressionArg) -> Compression {
        match arg {
            CompressionArg::None => Compression::None,
            CompressionArg::Gzip => Compression::Gzip,
            CompressionArg::Zstd => Compression::Zstd,
        }
    }
}

/// The form of progress messages (`--progress`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A line that is redrawn on a terminal, and only the result elsewhere
    Auto,
    /// One JSON object per line: progress twice per second, and the result or the error
    Json,
    /// Only the result
    None,
}
