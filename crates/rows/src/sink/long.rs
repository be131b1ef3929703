//! A value that comes in parts: what is carried from one part to the next, in any format that puts it between quotes.

use onecopy_text::{ByteSink, Carry, Units, planted};
use onecopy_wire::{WriteError, base64};

use crate::cell::{Cell, LongKind};

/// The value that is under way.
#[derive(Debug)]
pub(super) enum Long {
    /// Text, which may be cut inside a character.
    Text(Carry),
    /// Bytes, as base64.
    Bytes(base64::Carry),
}

impl Default for Long {
    fn default() -> Long {
        Long::of(LongKind::Text)
    }
}

impl Long {
    /// A value of which nothing came yet.
    pub(super) fn of(kind: LongKind) -> Long {
        match kind {
            LongKind::Text => Long::Text(Carry::default()),
            LongKind::Bytes => Long::Bytes(base64::Carry::default()),
        }
    }

    /// Its next part; text as `text` writes it.
    pub(super) fn part<S: ByteSink>(
        &mut self,
        part: Cell<'_>,
        out: &mut S,
        text: impl FnOnce(&mut Carry, Units<'_>, &mut S) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        match (self, part) {
            (Long::Text(carry), Cell::Text(units)) => {
                planted::extra_work_on_text(units);
                text(carry, units, out)
            }
            (Long::Bytes(carry), Cell::Bytes(bytes)) => Ok(carry.part(bytes, out)?),
            _ => unreachable!("parts are of the kind that `long_begin` told"),
        }
    }

    /// What is carried still, text as `text` ends it, and the closing quote.
    pub(super) fn end<S: ByteSink>(
        &mut self,
        out: &mut S,
        text: impl FnOnce(&mut Carry, &mut S) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        match self {
            Long::Text(carry) => text(carry, out)?,
            Long::Bytes(carry) => carry.end(out)?,
        }
        Ok(out.put_byte(b'"')?)
    }
}
