//! What is done where text cannot stay as it is.

use super::eol::Eol;
use super::error::{OnMalformed, OnUnencodable};

/// What becomes of a byte order mark at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bom {
    /// As the names of the encodings say: `utf-16`, `utf-32` and `utf-8-sig` have one, which is no part of the text; in
    /// others U+FEFF is a character. So do CPython and iconv.
    #[default]
    ByName,
    /// One is written, whether one was there or not.
    Add,
    /// None is written.
    Strip,
    /// One is written where one was there, if the encoding written is UTF-8, UTF-16 or UTF-32.
    Keep,
}

/// What is done where text cannot stay as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranscodeOptions {
    /// With bytes that are no text.
    pub on_malformed: OnMalformed,
    /// With characters that cannot be written.
    pub on_unencodable: OnUnencodable,
    /// With a byte order mark.
    pub bom: Bom,
    /// With line ends.
    pub eol: Eol,
    /// Whether to count lines, for [`Transcoder::place`](super::Transcoder::place).
    pub counts_lines: bool,
}
