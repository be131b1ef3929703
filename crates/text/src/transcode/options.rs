//! [`TranscodeOptions`]: the handling of malformed bytes, unencodable characters, byte order marks
//! and line ends.

use super::eol::Eol;
use crate::Policy;

/// The handling of a byte order mark in the input and the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bom {
    /// The name of the encoding determines if a byte order mark is read and written. In `utf-16`,
    /// `utf-32` and `utf-8-sig` the mark is not part of the text. In other encodings, U+FEFF is a
    /// character of the text. CPython and iconv do the same.
    #[default]
    ByName,
    /// A byte order mark is always written. A mark in the input is dropped.
    Add,
    /// A byte order mark is never written. A mark in the input is dropped.
    Strip,
    /// If the input has a byte order mark and the output encoding is UTF-8, UTF-16 or UTF-32, a
    /// byte order mark of the output encoding is written.
    Keep,
}

/// The options of a [`Transcoder`](super::Transcoder).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranscodeOptions {
    /// The handling of bytes that are invalid in the input encoding. [`Policy::XmlCharRefReplace`]
    /// acts as [`Policy::Strict`].
    pub on_malformed: Policy,
    /// The handling of characters that the output encoding lacks.
    pub on_unencodable: Policy,
    /// The handling of a byte order mark at the start of the output.
    pub bom: Bom,
    /// The conversion of line ends.
    pub eol: Eol,
    /// `true` to count lines, so that [`Transcoder::place`](super::Transcoder::place) returns
    /// positions.
    pub counts_lines: bool,
}
