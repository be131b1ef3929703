//! Timestamps, with and without an offset from UTC.

use super::date::date;
use super::spec::{Plan, Raw, Spec};
use super::time::time;
use crate::cell::{self, Cell};
use crate::odbc::ffi::c;
use crate::odbc::quirks::Quirks;
use crate::schema::ColumnType;

/// `SQL_TIMESTAMP_STRUCT`: year, month, day, hour, minute, second (16 bit each), nanoseconds (32 bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timestamp {
    digits: u8,
    /// The values are in UTC, by the session's time zone.
    utc: bool,
    /// The driver fills what it cannot read with today's date.
    pub(super) filled: bool,
}

/// `SQL_SS_TIMESTAMPOFFSET_STRUCT`: as above, then hours and minutes of the offset, both of one sign (16 bit each).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WithOffset {
    digits: u8,
}

impl Timestamp {
    pub(crate) fn plan(digits: u8, utc: bool, filled: bool) -> Plan<Self> {
        let column_type = ColumnType::Timestamp {
            digits,
            with_offset: utc,
        };
        (
            Timestamp {
                digits,
                utc,
                filled,
            },
            Spec::fixed(c::TYPE_TIMESTAMP, 16),
            column_type,
        )
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        let Some(date) = date(raw) else {
            return Cell::Null;
        };
        let timestamp = cell::Timestamp {
            date,
            time: time(raw, 6, 12),
            offset_minutes: self.utc.then_some(0),
        };
        Cell::Timestamp(timestamp, self.digits)
    }
}

/// Whether this is what psqlodbc puts for `infinity` (9999-12-31 23:59:59) or `-infinity` (-9999-01-01 00:00:00); a moment of
/// that time looks the same.
#[inline]
pub(super) fn stands_for_infinity(raw: Raw<'_>) -> bool {
    match i16::from_ne_bytes(raw.array(0)) {
        9999 => raw.array::<14>(2) == fields([12, 31, 23, 59, 59]),
        -9999 => raw.array::<14>(2) == fields([1, 1, 0, 0, 0]),
        _ => false,
    }
}

/// Month to second as the struct has them, and no fraction.
fn fields(of: [u16; 5]) -> [u8; 14] {
    let mut bytes = [0; 14];
    for (to, field) in bytes.chunks_exact_mut(2).zip(of) {
        to.copy_from_slice(&field.to_ne_bytes());
    }
    bytes
}

impl WithOffset {
    pub(crate) fn plan(digits: u8, quirks: &Quirks) -> Plan<Self> {
        let c_type = if quirks.ss_as_binary {
            c::BINARY
        } else {
            c::SS_TIMESTAMPOFFSET
        };
        let column_type = ColumnType::Timestamp {
            digits,
            with_offset: true,
        };
        (WithOffset { digits }, Spec::fixed(c_type, 20), column_type)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        let Some(date) = date(raw) else {
            return Cell::Null;
        };
        let [hours, minutes] = [16, 18].map(|at| i16::from_ne_bytes(raw.array(at)));
        // An invalid offset stays invalid: no sink accepts it.
        let offset = hours.saturating_mul(60).saturating_add(minutes);
        let timestamp = cell::Timestamp {
            date,
            time: time(raw, 6, 12),
            offset_minutes: Some(offset),
        };
        Cell::Timestamp(timestamp, self.digits)
    }
}
