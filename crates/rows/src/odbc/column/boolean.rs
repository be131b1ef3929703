//! `Boolean`: the column kind (the bound buffer, and its conversion to a [`Cell`]) for booleans and
//! single bits (`SQL_BIT`).

use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// A boolean, bound as `SQL_C_BIT`: one byte, 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Boolean;

impl Boolean {
    pub(crate) fn plan() -> ColumnBinding<Self> {
        (Boolean, Spec::fixed(c::BIT, 1), ColumnType::Bool)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Bool(raw.array::<1>(0)[0] != 0)
    }
}
