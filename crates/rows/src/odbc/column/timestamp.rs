//! The column kinds for timestamps: `TimestampStruct` has no offset from UTC, and `WithOffset` has
//! one. A column kind describes the bound buffer, and converts its contents to a [`Cell`].

use super::date::date;
use super::spec::{ColumnBinding, Raw, Spec};
use super::time::time;
use crate::cell::{Cell, Timestamp};
use crate::odbc::ffi::c;
use crate::odbc::quirks::Quirks;
use crate::schema::ColumnType;

/// The column kind for timestamps without an offset from UTC. A cell is bound as a
/// `SQL_TIMESTAMP_STRUCT`: year, month, day, hour, minute and second (16 bits each), nanoseconds
/// (32 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimestampStruct {
    digits: u8,
    /// `true` if the values are in UTC, because the session's time zone was set to UTC.
    utc: bool,
    /// `true` if the driver returns the current date for a timestamp that it cannot parse.
    pub(super) filled: bool,
}

/// The column kind for timestamps with an offset from UTC. A cell is bound as a
/// `SQL_SS_TIMESTAMPOFFSET_STRUCT`: the fields of a timestamp, then the hours and the minutes of
/// the offset (16 bits each). The hours and the minutes have the same sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WithOffset {
    digits: u8,
}

impl TimestampStruct {
    pub(crate) fn plan(digits: u8, utc: bool, filled: bool) -> ColumnBinding<Self> {
        let column_type = ColumnType::Timestamp {
            digits,
            with_offset: utc,
        };
        (
            TimestampStruct {
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
        let timestamp = Timestamp {
            date,
            time: time(raw, 6, 12),
            offset_minutes: self.utc.then_some(0),
        };
        Cell::Timestamp(timestamp, self.digits)
    }
}

/// Returns `true` for the two timestamps by which psqlodbc represents `infinity` (9999-12-31
/// 23:59:59) and `-infinity` (-9999-01-01 00:00:00). If a cell really contains one of these
/// timestamps, the result is `true` as well.
#[inline]
pub(super) fn stands_for_infinity(raw: Raw<'_>) -> bool {
    match i16::from_ne_bytes(raw.array(0)) {
        9999 => raw.array::<14>(2) == fields([12, 31, 23, 59, 59]),
        -9999 => raw.array::<14>(2) == fields([1, 1, 0, 0, 0]),
        _ => false,
    }
}

/// Returns the bytes of a `SQL_TIMESTAMP_STRUCT` after its year. `of` contains the month, day,
/// hour, minute and second. The fraction of the second is zero.
fn fields(of: [u16; 5]) -> [u8; 14] {
    let mut bytes = [0; 14];
    for (to, field) in bytes.chunks_exact_mut(2).zip(of) {
        to.copy_from_slice(&field.to_ne_bytes());
    }
    bytes
}

impl WithOffset {
    pub(crate) fn plan(digits: u8, quirks: &Quirks) -> ColumnBinding<Self> {
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
        // The offset of an invalid value stays invalid, so that no sink accepts it.
        let offset = hours.saturating_mul(60).saturating_add(minutes);
        let timestamp = Timestamp {
            date,
            time: time(raw, 6, 12),
            offset_minutes: Some(offset),
        };
        Cell::Timestamp(timestamp, self.digits)
    }
}
