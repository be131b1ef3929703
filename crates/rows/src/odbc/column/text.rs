//! `NarrowText` (UTF-8) and `WideText` (UTF-16): the column kinds for text, which bind a buffer and
//! convert it to a [`Cell`]. The text width of the connection selects one of them.

use onecopy_text::Units;

use super::spec::{ColumnBinding, DECLARED_BYTES, Described, OPEN_BYTES, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::c;
use crate::odbc::quirks::Quirks;
use crate::schema::ColumnType;
use crate::sql::dialect::Dialect;

/// Text in UTF-8, bound as `SQL_C_CHAR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NarrowText;

/// Text in UTF-16, bound as `SQL_C_WCHAR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WideText;

/// Returns how a text column is bound whose values have at most `bytes` bytes. Each value is
/// followed by a terminator of `terminator` bytes. If the maximum is unknown (`bytes` is 0) or
/// large, the buffer has [`OPEN_BYTES`] bytes per value.
fn spec(c_type: i16, bytes: usize, terminator: usize) -> Spec {
    let open = bytes == 0 || bytes > DECLARED_BYTES;
    Spec {
        c_type,
        bytes: if open { OPEN_BYTES } else { bytes } + terminator,
        terminator,
        variable: true,
        open,
    }
}

impl NarrowText {
    /// Returns how the column is bound. The declared size is a number of characters, each of which
    /// needs up to four bytes of UTF-8.
    pub(crate) fn plan(d: &Described) -> ColumnBinding<Self> {
        let bytes = d.size.saturating_mul(4).max(d.octets);
        (NarrowText, spec(c::CHAR, bytes, 1), ColumnType::Text)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Text(Units::Utf8(raw.bytes()))
    }
}

impl WideText {
    /// Returns the kind, binding and type of a text column. The declared size counts characters,
    /// each of which needs up to two 16-bit units; for SQL Server, it counts 16-bit units.
    pub(crate) fn plan(d: &Described, quirks: &Quirks) -> ColumnBinding<Self> {
        let unit_bytes = match quirks.dialect {
            Dialect::SqlServer => 2,
            _ => 4,
        };
        let bytes = d.size.saturating_mul(unit_bytes);
        (WideText, spec(c::WCHAR, bytes, 2), ColumnType::Text)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Text(raw.utf16())
    }
}
