//! Text, narrow (UTF-8) or wide (UTF-16): the connection's width decides.

use onecopy_text::Units;

use super::spec::{DECLARED_BYTES, Described, OPEN_BYTES, Plan, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::c;
use crate::odbc::quirks::Quirks;
use crate::schema::ColumnType;
use crate::sql::dialect::Dialect;

/// `SQL_C_CHAR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Narrow;

/// `SQL_C_WCHAR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wide;

/// A slot of `terminator` and `bytes`, the declared size, or of a modest size where that is unknown or large.
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

impl Narrow {
    /// A declared character takes up to four bytes of UTF-8.
    pub(crate) fn plan(d: &Described) -> Plan<Self> {
        let bytes = d.size.saturating_mul(4).max(d.octets);
        (Narrow, spec(c::CHAR, bytes, 1), ColumnType::Text)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Text(Units::Utf8(raw.bytes()))
    }
}

impl Wide {
    /// A declared character takes up to two units of UTF-16; SQL Server's declared size counts units.
    pub(crate) fn plan(d: &Described, quirks: &Quirks) -> Plan<Self> {
        let unit_bytes = match quirks.dialect {
            Dialect::SqlServer => 2,
            _ => 4,
        };
        let bytes = d.size.saturating_mul(unit_bytes);
        (Wide, spec(c::WCHAR, bytes, 2), ColumnType::Text)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Text(raw.utf16())
    }
}
