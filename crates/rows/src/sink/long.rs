//! `OpenLongValue`: the state of a long value that is written in parts, in formats that enclose the
//! value in quotes.

use onecopy_text::{ByteSink, Carry, Units, planted};
use onecopy_wire::{WriteError, base64};

use crate::cell::{Cell, LongKind};

/// A long value whose last part was not written yet.
#[derive(Debug)]
pub(super) enum OpenLongValue {
    /// Text. If the last part ended inside a character, the field contains the first units of this
    /// character.
    Text(Carry),
    /// Binary data that is written as base64. Base64 encodes groups of three bytes, so up to two
    /// bytes of a part are stored until the next part arrives.
    Bytes(base64::Carry),
}

impl Default for OpenLongValue {
    fn default() -> OpenLongValue {
        OpenLongValue::of(LongKind::Text)
    }
}

impl OpenLongValue {
    /// Creates the state before the first part of a value.
    pub(super) fn of(kind: LongKind) -> OpenLongValue {
        match kind {
            LongKind::Text => OpenLongValue::Text(Carry::default()),
            LongKind::Bytes => OpenLongValue::Bytes(base64::Carry::default()),
        }
    }

    /// Writes the next part of a long value. For a part of a text value, calls `text`, which writes
    /// the part in the output format.
    pub(super) fn part<S: ByteSink>(
        &mut self,
        part: Cell<'_>,
        out: &mut S,
        text: impl FnOnce(&mut Carry, Units<'_>, &mut S) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        match (self, part) {
            (OpenLongValue::Text(carry), Cell::Text(units)) => {
                planted::extra_work_on_text(units);
                text(carry, units, out)
            }
            (OpenLongValue::Bytes(carry), Cell::Bytes(bytes)) => Ok(carry.part(bytes, out)?),
            _ => unreachable!("parts have the kind that `long_begin` was called with"),
        }
    }

    /// Ends a value: writes the incomplete bytes that the last part ended with, and the closing
    /// quote. If the value is text, calls `text` to write the incomplete bytes.
    pub(super) fn end<S: ByteSink>(
        &mut self,
        out: &mut S,
        text: impl FnOnce(&mut Carry, &mut S) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        match self {
            OpenLongValue::Text(carry) => text(carry, out)?,
            OpenLongValue::Bytes(carry) => carry.end(out)?,
        }
        Ok(out.put_byte(b'"')?)
    }
}
