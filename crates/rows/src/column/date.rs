//! Dates.

use super::{Kind, Raw, Spec};
use crate::cell::{self, Cell};
use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// `SQL_DATE_STRUCT`: year (signed), month, day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date;

impl Date {
    pub(crate) fn plan() -> (Kind, Spec, ColumnType) {
        (Date.into(), Spec::fixed(c::TYPE_DATE, 6), ColumnType::Date)
    }

    /// MariaDB's `0000-00-00` and dates with a zero month or day are no dates: NULL, as its native clients give them.
    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        date(raw).map_or(Cell::Null, Cell::Date)
    }
}

/// The date at the start of any of ODBC's structs; `None` where month or day is zero.
#[inline]
pub(super) fn date(raw: Raw<'_>) -> Option<cell::Date> {
    let date = cell::Date {
        year: i32::from(i16::from_ne_bytes(raw.array(0))),
        month: raw.u16(2) as u8,
        day: raw.u16(4) as u8,
    };
    (date.month != 0 && date.day != 0).then_some(date)
}
