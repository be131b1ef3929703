//! `Binary`: the column kind (the bound buffer, and its conversion to a [`Cell`]) for binary
//! values.

use super::spec::{ColumnBinding, DECLARED_BYTES, OPEN_BYTES, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// A binary value, whose bytes are returned unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binary;

impl Binary {
    /// Returns the kind, binding and type of a binary column; `size` is the declared size in bytes,
    /// 0 if it is unknown.
    pub(crate) fn plan(size: usize) -> ColumnBinding<Self> {
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
