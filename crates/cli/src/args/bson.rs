//! What `onecopy bson2json` and `onecopy json2bson` can be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use onecopy_text::Policy;
use onecopy_wire::bson::extended::BigInts;

/// `onecopy bson2json`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy bson2json dump/shop/item.bson | head
  onecopy bson2json item.bson --canonical -o item.ndjson
  zcat item.bson.gz | onecopy bson2json --array > item.json

INPUT has documents one behind the other, as mongodump and `onecopy query --format bson` write them. The text is MongoDB Extended
JSON v2, relaxed unless asked. A document at a time is in memory. Where INPUT is no BSON, what came before is written to
stdout, an array is left open, and no file appears.

A closed pipe (`| head`) is silent and ends with 141. Ctrl-C ends with 130, and leaves no half-written file.")]
pub struct Bson2Json {
    /// The documents; `-` or none: stdin
    pub input: Option<PathBuf>,

    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Keep the type of each number: {"$numberInt":"1"}
    #[arg(long)]
    pub canonical: bool,

    /// Write one array, not a line for each document
    #[arg(long)]
    pub array: bool,

    /// What to do with malformed text
    #[arg(long, value_enum, value_name = "HOW", default_value = "strict")]
    pub text_errors: MalformedText,

    /// Refuse a longer document
    #[arg(long, value_name = "BYTES", default_value_t = MOST_BYTES, value_parser = size())]
    pub max_size: u64,

    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// `onecopy json2bson`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy json2bson item.ndjson -o item.bson
  curl -s https://example.org/items.json | onecopy json2bson > items.bson

INPUT is one object a line (NDJSON), objects one behind the other, or one array of objects; type wrappers of MongoDB Extended JSON
v2 become values of their types. Documents stand one behind the other in what is written, as mongorestore takes them. A
document at a time is in memory. Where INPUT is wrong, what came before is written to stdout, and no file appears.

A closed pipe (`| head`) is silent and ends with 141. Ctrl-C ends with 130, and leaves no half-written file.")]
pub struct Json2Bson {
    /// The text, in UTF-8; `-` or none: stdin
    pub input: Option<PathBuf>,

    /// Write to a file, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// What becomes of integers of more than 64 bits
    #[arg(long, value_enum, value_name = "WHAT", default_value = "double")]
    pub big_ints: BigIntsArg,

    /// Refuse a longer document
    #[arg(long, value_name = "BYTES", default_value_t = MOST_BYTES, value_parser = size())]
    pub max_size: u64,

    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// The longest document that BSON has.
const MOST_BYTES: u64 = onecopy_wire::bson::MOST_BYTES as u64;

fn size() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(..=MOST_BYTES)
}

/// What becomes of integers of more than 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BigIntsArg {
    /// The nearest double
    Double,
    /// They are refused
    Error,
}

impl From<BigIntsArg> for BigInts {
    fn from(arg: BigIntsArg) -> BigInts {
        match arg {
            BigIntsArg::Double => BigInts::Double,
            BigIntsArg::Error => BigInts::Error,
        }
    }
}

/// What is done with malformed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MalformedText {
    /// Fail, and tell the byte
    Strict,
    /// Put U+FFFD in its place
    Replace,
}

impl From<MalformedText> for Policy {
    fn from(arg: MalformedText) -> Policy {
        match arg {
            MalformedText::Strict => Policy::Strict,
            MalformedText::Replace => Policy::Replace,
        }
    }
}
