//! `Integer` and `Unsigned`: the column kinds of integers up to 64 bits. The driver writes all of
//! them as 64-bit integers to the bound buffers. Therefore PostgreSQL's unsigned `oid` keeps its
//! value, although the driver describes it as a signed 32-bit integer.

use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// A signed integer, or an unsigned integer of less than 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integer;

/// An unsigned 64-bit integer (MariaDB).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsigned;

impl Integer {
    pub(crate) fn plan(bits: u8, unsigned: bool) -> ColumnBinding<Self> {
        let column_type = ColumnType::Integer { bits, unsigned };
        (Integer, Spec::fixed(c::SBIGINT, 8), column_type)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::I64(i64::from_ne_bytes(raw.array(0)))
    }
}

impl Unsigned {
    pub(crate) fn plan() -> ColumnBinding<Self> {
        let column_type = ColumnType::Integer {
            bits: 64,
            unsigned: true,
        };
        (Unsigned, Spec::fixed(c::UBIGINT, 8), column_type)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        let value = u64::from_ne_bytes(raw.array(0));
        i64::try_from(value).map_or(Cell::U64(value), Cell::I64)
    }
}
