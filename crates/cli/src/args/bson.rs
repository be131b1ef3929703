//! The arguments of `onecopy bson2json` and `onecopy json2bson`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onecopy_text::Policy;
use onecopy_wire::bson::extended::BigInts;

use super::values::{ROW_POLICIES, policies};

/// `onecopy bson2json`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy bson2json dump/shop/item.bson | head
  onecopy bson2json item.bson --canonical -o item.ndjson
  zcat item.bson.gz | onecopy bson2json --array > item.json

INPUT contains concatenated documents, as mongodump and `onecopy query --format bson` write them. The output is
MongoDB Extended JSON v2, relaxed by default. Only one document at a time is in memory. If INPUT is not valid BSON,
the documents before the error are written to stdout, without the end of an array; the file of --output is not
created.

If the output pipe is closed (`| head`), the command ends silently with exit code 141. Ctrl-C ends it with exit
code 130 and leaves no partial file.")]
pub struct Bson2Json {
    /// The file of BSON documents to convert; stdin if it is `-` or omitted
    pub input: Option<PathBuf>,

    /// Write to FILE, which is created only if the output is complete
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write the type of each number, as in {"$numberInt":"1"}
    #[arg(long)]
    pub canonical: bool,

    /// Write one array instead of one line per document
    #[arg(long)]
    pub array: bool,

    /// The treatment of malformed text
    #[arg(long, value_parser = policies(ROW_POLICIES), value_name = "HOW", default_value = "strict")]
    pub errors: Policy,

    /// Largest permitted size of a document
    #[arg(long, value_name = "BYTES", default_value_t = MOST_BYTES, value_parser = size())]
    pub max_bytes: u64,

    /// Print only errors on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// `onecopy json2bson`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy json2bson item.ndjson -o item.bson
  curl -s https://example.org/items.json | onecopy json2bson > items.bson

INPUT is one object per line (NDJSON), concatenated objects, or one array of objects; type wrappers of MongoDB
Extended JSON v2 become values of their types. The output is concatenated documents, as mongorestore reads them.
Only one document at a time is in memory. If INPUT is invalid, the documents before the error are written to stdout;
the file of --output is not created.

If the output pipe is closed (`| head`), the command ends silently with exit code 141. Ctrl-C ends it with exit
code 130 and leaves no partial file.")]
pub struct Json2Bson {
    /// The file of JSON text to convert, in UTF-8; stdin if it is `-` or omitted
    pub input: Option<PathBuf>,

    /// Write to FILE, which is created only if the output is complete
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The treatment of integers of more than 64 bits
    #[arg(long, value_enum, value_name = "WHAT", default_value = "float")]
    pub big_ints: BigIntsArg,

    /// Largest permitted size of a document
    #[arg(long, value_name = "BYTES", default_value_t = MOST_BYTES, value_parser = size())]
    pub max_bytes: u64,

    /// Print only errors on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// The largest size in bytes that BSON permits for a document.
const MOST_BYTES: u64 = onecopy_wire::bson::MOST_BYTES as u64;

fn size() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(..=MOST_BYTES)
}

/// The treatment of integers of more than 64 bits (`--big-ints`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BigIntsArg {
    /// Write the nearest double
    Float,
    /// Fail
    Error,
}

impl From<BigIntsArg> for BigInts {
    fn from(arg: BigIntsArg) -> BigInts {
        match arg {
            BigIntsArg::Float => BigInts::Float,
            BigIntsArg::Error => BigInts::Error,
        }
    }
}
