//! [`TranscodeOptions`]: options for malformed bytes, unencodable characters, byte order marks and
//! line ends.

use super::eol::Eol;
use crate::Policy;

/// The handling of byte order marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bom {
    /// As in CPython and iconv, the name of the encoding decides. In `utf-16`, `utf-32` and
    /// `utf-8-sig`, a mark is read and written. In other encodings, U+FEFF is a character.
    #[default]
    ByName,
    /// A mark is always written. A mark in the input is dropped.
    Add,
    /// A mark is never written. A mark in the input is dropped.
    Strip,
    /// A mark in the input is written in the output encoding, if this is UTF-8, UTF-16 or UTF-32.
    Keep,
}

/// The options of a [`Transcoder`](super::Transcoder).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranscodeOptions {
    /// The handling of invalid bytes. [`Policy::XmlCharRefReplace`] acts as [`Policy::Strict`].
    pub on_malformed: Policy,
    /// The handling of characters that the output encoding does not have.
    pub on_unencodable: Policy,
    /// The handling of byte order marks.
    pub bom: Bom,
    /// The conversion of line ends.
    pub eol: Eol,
    /// `true` to count lines for [`Transcoder::place`](super::Transcoder::place).
    pub counts_lines: bool,
}
