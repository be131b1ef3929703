//! The CSV writer (RFC 4180), by DESIGN's value table.
//!
//! | module | what it holds |
//! |---|---|
//! | [`scan`] | whether a text needs quotes, seen in its own units before anything is written |
//!
//! - NULL is an empty field, the empty string is `""`: readers that know the difference can tell them apart
//!   (PostgreSQL's `COPY` does). In a table of one column a NULL is an empty line.
//! - A text is quoted where it holds the delimiter, a quote, CR or LF, and where it begins or ends with a space or a
//!   tab, which some readers trim from bare fields. Numbers, dates, base64, `true` and `false` never need quotes.
//! - Lines end with LF unless asked for CRLF. RFC 4180 says CRLF, but each CSV reader we know takes LF, while `cut`,
//!   `sort`, `join` and `read` keep a CR as part of the last field.
//! - No byte order mark, and no value is changed: `=1+1` stays `=1+1`, though a spreadsheet may compute it.
//! - A value that comes in parts is quoted, since its need is not known when it begins.

pub mod scan;

use onecopy_text::{ByteSink, Carry, Policy, Put, Units, Window, convert};

use crate::decimal::{self, Decimal};
use crate::error::{NonFinite, WriteError, non_finite};
pub use crate::number::{put_bool, put_i64, put_u64};
use crate::number::{put_float, put_hundredths};
use crate::short::{SHORT_BYTES, write_uuid};

/// Bytes that a window needs for a number, a boolean, a date or a UUID.
pub const SCALAR_BYTES: usize = SHORT_BYTES;

/// How lines end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnd {
    /// LF.
    #[default]
    Lf,
    /// CR LF, as RFC 4180 has it.
    CrLf,
}

/// What parts fields and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    delimiter: u8,
    line_end: LineEnd,
}

impl Default for Dialect {
    /// A comma and LF.
    fn default() -> Self {
        Dialect {
            delimiter: b',',
            line_end: LineEnd::Lf,
        }
    }
}

impl Dialect {
    /// A dialect with this delimiter, one of `,` `;` `|` or a tab.
    ///
    /// # Errors
    /// [`WriteError::UnfitDelimiter`] for any other: it could stand in a number, a date or base64.
    pub fn new(delimiter: u8, line_end: LineEnd) -> Result<Dialect, WriteError> {
        if !matches!(delimiter, b',' | b';' | b'|' | b'\t') {
            return Err(WriteError::UnfitDelimiter(delimiter));
        }
        Ok(Dialect {
            delimiter,
            line_end,
        })
    }

    /// The byte between two fields.
    #[inline]
    #[must_use]
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// The bytes behind a line.
    #[inline]
    #[must_use]
    pub fn line_end(&self) -> &'static [u8] {
        match self.line_end {
            LineEnd::Lf => b"\n",
            LineEnd::CrLf => b"\r\n",
        }
    }
}

/// Appends the header line.
///
/// # Errors
/// [`WriteError::SinkFull`].
pub fn write_header<'n, S: ByteSink>(
    names: impl IntoIterator<Item = &'n str>,
    dialect: &Dialect,
    sink: &mut S,
) -> Result<(), WriteError> {
    for (i, name) in names.into_iter().enumerate() {
        if i > 0 {
            sink.put_byte(dialect.delimiter)?;
        }
        write_text(Units::Utf8(name.as_bytes()), Policy::Strict, dialect, sink)?;
    }
    Ok(sink.put(dialect.line_end())?)
}

/// Appends a text field: its units are scanned for what needs quotes, then converted once.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// [`WriteError::Malformed`], [`WriteError::SinkFull`]; the sink may then hold a part.
#[inline]
pub fn write_text<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    dialect: &Dialect,
    sink: &mut S,
) -> Result<(), WriteError> {
    if scan::is_bare(units, dialect.delimiter) {
        convert::to_utf8(units, policy, sink)?;
        return Ok(());
    }
    sink.put_byte(b'"')?;
    let mut carry = Carry::new();
    write_quoted_part(units, policy, &mut carry, sink)?;
    carry.finish_utf8(policy, sink)?;
    sink.put_byte(b'"')?;
    Ok(())
}

/// Appends a piece of text that stands between quotes: each `"` is doubled. The quotes around it are the caller's, and so
/// is the carry: a piece may end inside a character, and after the last one comes [`Carry::finish_utf8`].
///
/// # Errors
/// As [`write_text`].
pub fn write_quoted_part<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    carry: &mut Carry,
    sink: &mut S,
) -> Result<(), WriteError> {
    let mut rest = units;
    while let Some((upto_quote, behind)) = scan::split_after_quote(rest) {
        carry.to_utf8(upto_quote, policy, sink)?;
        sink.put_byte(b'"')?;
        rest = behind;
    }
    carry.to_utf8(rest, policy, sink)?;
    Ok(())
}

/// Puts the shortest decimal that reads back as the same 64-bit float.
///
/// # Errors
/// [`WriteError::NonFinite`] where `policy` says so.
#[inline]
pub fn put_f64<S: ByteSink>(
    value: f64,
    policy: NonFinite,
    window: &mut Window<'_, S>,
) -> Result<(), WriteError> {
    if put_hundredths(value, window) {
        return Ok(());
    }
    put_float(value, window, |name, w| put_non_finite(name, policy, w))
}

/// Puts the shortest decimal that reads back as the same 32-bit float.
///
/// # Errors
/// As [`put_f64`].
#[inline]
pub fn put_f32<S: ByteSink>(
    value: f32,
    policy: NonFinite,
    window: &mut Window<'_, S>,
) -> Result<(), WriteError> {
    put_float(value, window, |name, w| put_non_finite(name, policy, w))
}

#[cold]
fn put_non_finite<S: ByteSink>(
    name: &'static str,
    policy: NonFinite,
    window: &mut Window<'_, S>,
) -> Result<(), WriteError> {
    if let Some(name) = non_finite(name, policy)? {
        window.put(name.as_bytes());
    }
    Ok(())
}

/// Puts a UUID, lower-case with hyphens.
#[inline]
pub fn put_uuid<S: ByteSink>(uuid: &[u8; 16], window: &mut Window<'_, S>) {
    window.put_made([0; SHORT_BYTES], |text| {
        let end = write_uuid(text, 0, uuid);
        &text[..end]
    });
}

/// Appends a decimal with all its digits, in the form that JSON has too ([`crate::json::write_decimal`]).
///
/// # Errors
/// [`WriteError::NotADecimal`]; [`WriteError::NonFinite`] where `policy` says so; [`WriteError::SinkFull`].
pub fn write_decimal<S: ByteSink>(
    digits: &[u8],
    policy: NonFinite,
    sink: &mut S,
) -> Result<(), WriteError> {
    if let Ok(Decimal::NonFinite(name)) = decimal::read(digits) {
        return put_non_finite(name, policy, &mut sink.window(SCALAR_BYTES)?);
    }
    crate::json::write_decimal(digits, policy, sink)
}
