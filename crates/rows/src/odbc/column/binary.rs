//! Binary values.

use super::spec::{DECLARED_BYTES, OPEN_BYTES, Plan, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// Bytes as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binary;

impl Binary {
    /// `size` is the declared one, 0 where unknown.
    pub(crate) fn plan(size: usize) -> Plan<Self> {
        let open = size == 0 || size > DECLARED_BYTES;
        let spec = Spec {
            c_type: c::BINARY,
            bytes: if open { OPEN_BYTES } else { size },
            terminator: 0,
            variable: true,
            open,
        };
        (Binary, spec, ColumnType::Binary)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Bytes(raw.bytes())
    }
}
