//! Text, narrow (UTF-8) or wide (UTF-16): the connection's width decides.

use onecopy_text::Units;

use super::{DECLARED_BYTES, Described, Kind, OPEN_BYTES, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::c;
use crate::odbc::quirks::{Dialect, Quirks, Width};
use crate::schema::ColumnType;

/// `SQL_C_CHAR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Narrow;

/// `SQL_C_WCHAR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wide;

/// A slot that holds the declared size, or a modest one where that is unknown or large.
pub(crate) fn plan(d: &Described, width: Width, quirks: &Quirks) -> (Kind, Spec, ColumnType) {
    // A declared character takes up to four bytes of UTF-8 and up to two units of UTF-16, except where the declared size
    // counts units already.
    let wide = match quirks.dialect {
        Dialect::SqlServer => 2,
        _ => 4,
    };
    let (terminator, c_type, bytes) = match width {
        Width::Narrow => (1, c::CHAR, d.size.saturating_mul(4).max(d.octets)),
        Width::Wide => (2, c::WCHAR, d.size.saturating_mul(wide)),
    };
    let open = bytes == 0 || bytes > DECLARED_BYTES;
    let bytes = if open { OPEN_BYTES } else { bytes } + terminator;
    let spec = Spec {
        c_type,
        bytes,
        terminator,
        variable: true,
        open,
    };
    let kind = match width {
        Width::Narrow => Narrow.into(),
        Width::Wide => Wide.into(),
    };
    (kind, spec, ColumnType::Text)
}

impl Narrow {
    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Text(Units::Utf8(raw.bytes()))
    }
}

impl Wide {
    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Text(raw.utf16())
    }
}
