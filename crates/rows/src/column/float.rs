//! Floats of 32 and 64 bit.

use super::{Kind, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// 32 bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Real;

/// 64 bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Double;

impl Real {
    pub(crate) fn plan() -> (Kind, Spec, ColumnType) {
        (Real.into(), Spec::fixed(c::FLOAT, 4), ColumnType::Real)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::F32(f32::from_ne_bytes(raw.array(0)))
    }
}

impl Double {
    pub(crate) fn plan() -> (Kind, Spec, ColumnType) {
        (Double.into(), Spec::fixed(c::DOUBLE, 8), ColumnType::Double)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::F64(f64::from_ne_bytes(raw.array(0)))
    }
}
