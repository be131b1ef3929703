//! [`write_value`] writes values that are already JSON text, such as the cells of a JSON column.
//! The text is validated and written unchanged, except that line ends become spaces.

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{ByteSink, Units};

use super::read::events::EventResult;
use super::read::{Escaped, JsonEvents, Limits, Text, Utf8, read_all};
use crate::error::WriteError;

/// An event handler that accepts every event. It is used to validate a text without reading its
/// values.
struct Checked;

impl JsonEvents for Checked {
    #[inline(always)]
    fn null(&mut self) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn boolean(&mut self, _: bool) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn int(&mut self, _: i64) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn big_int(&mut self, _: &[u8]) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn float(&mut self, _: f64, _: Units<'_>) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn string(&mut self, _: Text<'_>) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn escaped_string(&mut self, _: Escaped<'_>) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn key(&mut self, _: Text<'_>) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn escaped_key(&mut self, _: Escaped<'_>) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn begin_array(&mut self) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn end_array(&mut self) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn begin_object(&mut self) -> EventResult {
        Ok(())
    }
    #[inline(always)]
    fn end_object(&mut self) -> EventResult {
        Ok(())
    }
}

struct Check<'a>(&'a [u8]);

impl Work for Check<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> bool {
        read_all::<Utf8, K, _>(kernels, self.0, Limits::default(), &mut Checked).is_ok()
    }
}

/// Returns `true` if `text` is exactly one JSON value in valid UTF-8, nested at most 1,000 levels
/// deep.
#[must_use]
pub fn is_value(text: &[u8]) -> bool {
    with_kernels(Check(text)) && std::str::from_utf8(text).is_ok()
}

/// Appends a value that is already JSON text. Line ends in the text are replaced by spaces, so that
/// the value stays on one line.
///
/// # Errors
/// Returns [`WriteError::NotJson`] if the text is not valid JSON; nothing is written then. Returns
/// [`WriteError::SinkFull`] if the sink has no space.
pub fn write_value<S: ByteSink>(text: &[u8], sink: &mut S) -> Result<(), WriteError> {
    if !is_value(text) {
        return Err(WriteError::NotJson);
    }
    // Strings in valid JSON contain no line ends, so every line end is between tokens.
    for (i, part) in text.split(|b| matches!(b, b'\n' | b'\r')).enumerate() {
        if i > 0 {
            sink.put_byte(b' ')?;
        }
        sink.put(part)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_as_it_is_on_one_line() {
        for (text, expected) in [
            ("{\"a\": [1.50, null]}", "{\"a\": [1.50, null]}"),
            ("[1,\r\n 2]", "[1,   2]"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("\"\\u00e9\"", "\"\\u00e9\""),
        ] {
            let mut out = Vec::new();
            write_value(text.as_bytes(), &mut out).unwrap();
            assert_eq!(out, expected.as_bytes());
        }
    }

    #[test]
    fn what_is_not_valid_json_is_refused() {
        for text in [
            &b""[..],
            b"{",
            b"[1,]",
            b"nul",
            b"\"\xff\"",
            b"1 2",
            b"\"a\nb\"",
        ] {
            let mut out = Vec::new();
            assert_eq!(write_value(text, &mut out), Err(WriteError::NotJson));
            assert!(out.is_empty());
        }
    }
}
