//! Writes CSV (RFC 4180), with values in the notation that `docs/reference/values.md` specifies.
//!
//! | module | contents |
//! |---|---|
//! | [`quoting`] | determines if a text needs quotes, before it is converted and written |
//!
//! - NULL is an empty field, and the empty string is `""`. Readers that distinguish the two (such
//!   as PostgreSQL's `COPY`) restore both. In a table with one column, NULL is an empty line.
//! - A text is quoted if it contains the delimiter, a quote, CR or LF, or begins or ends with a
//!   space or a tab, which some readers trim from unquoted fields. Numbers, dates, base64, `true`
//!   and `false` never need quotes.
//! - Lines end with LF unless CRLF is requested. RFC 4180 specifies CRLF, but every CSV reader
//!   known to us accepts LF, while `cut`, `sort`, `join` and `read` treat a CR as part of the last
//!   field.
//! - No byte order mark is written, and no value is changed. For example, `=1+1` stays `=1+1`,
//!   although a spreadsheet may evaluate it as a formula.
//! - A value that arrives in parts is always quoted, because its later parts are not known when the
//!   first is written.

pub mod quoting;

use onecopy_text::{ByteSink, Carry, Policy, Put, Units, Window, convert, is_utf8};

use crate::decimal::{self, Decimal};
use crate::error::{NonFinite, WriteError, non_finite};
use crate::inline_text::{SHORT_BYTES, write_uuid};
pub use crate::number::{put_bool, put_i64, put_u64};
use crate::number::{put_float, put_hundredths};

/// The number of bytes of space that must be reserved in a sink before a number, a boolean, a date
/// or a UUID is written to a window.
pub const SCALAR_BYTES: usize = SHORT_BYTES;

/// The bytes at the end of each line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnd {
    /// A line feed (LF).
    #[default]
    Lf,
    /// CR LF, as RFC 4180 specifies.
    CrLf,
}

/// The syntax options of CSV: the delimiter between fields, and the end of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    delimiter: u8,
    line_end: LineEnd,
}

impl Default for Dialect {
    /// Returns the default dialect, with the delimiter `,` and lines that end with LF.
    fn default() -> Self {
        Dialect {
            delimiter: b',',
            line_end: LineEnd::Lf,
        }
    }
}

impl Dialect {
    /// Creates a dialect whose delimiter is `,`, `;`, `|` or a tab.
    ///
    /// # Errors
    /// Returns [`WriteError::UnfitDelimiter`] if the delimiter is another byte, because other bytes
    /// could occur in a number, a date or base64.
    pub fn new(delimiter: u8, line_end: LineEnd) -> Result<Dialect, WriteError> {
        if !matches!(delimiter, b',' | b';' | b'|' | b'\t') {
            return Err(WriteError::UnfitDelimiter(delimiter));
        }
        Ok(Dialect {
            delimiter,
            line_end,
        })
    }

    /// Returns the byte that separates two fields.
    #[inline]
    #[must_use]
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Returns the bytes that end a line.
    #[inline]
    #[must_use]
    pub fn line_end(&self) -> &'static [u8] {
        match self.line_end {
            LineEnd::Lf => b"\n",
            LineEnd::CrLf => b"\r\n",
        }
    }
}

/// Appends the header line, which contains the names of the columns.
///
/// # Errors
/// Returns [`WriteError::SinkFull`] if the sink has no space.
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

/// Appends a text field. Its units are first searched for characters that require quotes. Then the
/// text is converted to UTF-8 and quoted if necessary.
///
/// The conversion is the only copy of the text.
///
/// # Errors
/// Returns [`WriteError::Malformed`] or [`WriteError::SinkFull`]. The sink may then contain a part
/// of the field.
#[inline]
pub fn write_text<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    dialect: &Dialect,
    sink: &mut S,
) -> Result<(), WriteError> {
    if quoting::is_bare(units, dialect.delimiter) {
        convert::to_utf8(units, policy, sink)?;
        return Ok(());
    }
    sink.put_byte(b'"')?;
    match units {
        // The parts between the quotes of a well-formed text are copied.
        Units::Utf8(text) if is_utf8(text) => {
            let mut rest = text;
            while let Some((upto_quote, after)) = quoting::split_in(rest) {
                sink.put(upto_quote)?;
                sink.put_byte(b'"')?;
                rest = after;
            }
            sink.put(rest)?;
        }
        _ => {
            let mut carry = Carry::new();
            write_quoted_part(units, policy, &mut carry, sink)?;
            carry.finish_utf8(policy, sink)?;
        }
    }
    sink.put_byte(b'"')?;
    Ok(())
}

/// Appends a part of a quoted text, with each `"` doubled. The caller writes the enclosing quotes.
/// The caller must pass the same `carry` for all parts of a text, because a part may end inside a
/// character. After the last part, it must call [`Carry::finish_utf8`].
///
/// # Errors
/// Returns the same errors as [`write_text`].
pub fn write_quoted_part<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    carry: &mut Carry,
    sink: &mut S,
) -> Result<(), WriteError> {
    let mut rest = units;
    while let Some((upto_quote, after)) = quoting::split_after_quote(rest) {
        carry.to_utf8(upto_quote, policy, sink)?;
        sink.put_byte(b'"')?;
        rest = after;
    }
    carry.to_utf8(rest, policy, sink)?;
    Ok(())
}

/// Writes the shortest decimal text that is parsed as the same 64-bit float. `policy` determines
/// the text for NaN and the infinities.
///
/// # Errors
/// Returns [`WriteError::NonFinite`] for NaN or an infinity under [`NonFinite::Error`].
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

/// Writes the shortest decimal text that is parsed as the same 32-bit float. `policy` determines
/// the text for NaN and the infinities.
///
/// # Errors
/// Returns the errors of [`put_f64`].
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

/// Writes a UUID in lower-case hexadecimal with hyphens.
#[inline]
pub fn put_uuid<S: ByteSink>(uuid: &[u8; 16], window: &mut Window<'_, S>) {
    window.put_made([0; SHORT_BYTES], |text| {
        let end = write_uuid(text, 0, uuid);
        &text[..end]
    });
}

/// Appends a decimal that is given as text. All its digits are kept. The notation is that of
/// [`crate::json::write_decimal`].
///
/// # Errors
/// Returns [`WriteError::NotADecimal`] if the text is not a decimal. Returns
/// [`WriteError::NonFinite`] for NaN or an infinity under [`NonFinite::Error`]. Returns
/// [`WriteError::SinkFull`] if the sink has no space.
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
