//! Binds parameter values to a SQLite statement, by position.
//!
//! SQLite has no decimals. A decimal is bound as the integer or float that equals it exactly; if no
//! such number exists, the decimal is refused. SQLite has no dates, times or UUIDs, so these values
//! are bound as text, dates and times in ISO 8601. The fraction of a second has 0 or 6 digits as in
//! Python's `sqlite3`, or 9 digits if the value needs them. A space separates date and time, as in
//! the output of SQLite's `datetime()`, and an offset is written as `+02:00`. Booleans are bound as
//! 0 and 1.

use std::ffi::c_int;

use libsqlite3_sys as ffi;

use crate::cell::Time;
use crate::plain_text::{date_text, n_digits, time_text, timestamp_text, uuid_text};
use crate::value::Value;

/// Determines who owns the bytes of a text or binary value that is bound to a parameter: SQLite or
/// the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// SQLite copies the bytes, because the caller drops the value before it fetches the rows.
    Copied,
    /// The caller owns the bytes until the statement is reset and its bindings are cleared.
    Borrowed,
}

/// Binds `value` to parameter `index` (from 1); returns the result code.
///
/// # Safety
/// The caller must pass a prepared statement that was reset and that only this thread uses. With
/// [`Keep::Borrowed`], `value` must outlive the binding.
pub(super) unsafe fn bind(
    stmt: *mut ffi::sqlite3_stmt,
    index: c_int,
    value: &Value,
    keep: Keep,
) -> c_int {
    // SAFETY: stmt was reset and only this thread uses it, as the caller vouches; a wrong index is
    // an error code; pointers and lengths are those of live slices, which SQLite copies or the
    // caller keeps.
    unsafe {
        match value {
            Value::Null => ffi::sqlite3_bind_null(stmt, index),
            Value::Bool(b) => ffi::sqlite3_bind_int64(stmt, index, i64::from(*b)),
            Value::I64(i) => ffi::sqlite3_bind_int64(stmt, index, *i),
            Value::F64(f) => ffi::sqlite3_bind_double(stmt, index, *f),
            Value::Decimal(s) | Value::Text(s) | Value::Cast(s, _) => {
                bind_text(stmt, index, s, keep)
            }
            Value::Bytes(b) => {
                let destructor = destructor(keep);
                ffi::sqlite3_bind_blob64(stmt, index, b.as_ptr().cast(), b.len() as u64, destructor)
            }
            Value::Date(_) | Value::Time(_) | Value::Timestamp(_) | Value::Uuid(_) => {
                bind_text(stmt, index, &text_of(value), Keep::Copied)
            }
            // Parameters of SQLite have no types, so the declaration is ignored.
            Value::Declared(inner, _) => bind(stmt, index, inner, keep),
        }
    }
}

/// Binds text to parameter `index` (from 1); returns the result code.
///
/// # Safety
/// The requirements are the same as for [`bind`].
unsafe fn bind_text(stmt: *mut ffi::sqlite3_stmt, index: c_int, s: &str, keep: Keep) -> c_int {
    // SAFETY: as in `bind`.
    unsafe {
        ffi::sqlite3_bind_text64(
            stmt,
            index,
            s.as_ptr().cast(),
            s.len() as u64,
            destructor(keep),
            ffi::SQLITE_UTF8 as u8,
        )
    }
}

fn destructor(keep: Keep) -> ffi::sqlite3_destructor_type {
    match keep {
        Keep::Copied => ffi::SQLITE_TRANSIENT(),
        Keep::Borrowed => ffi::SQLITE_STATIC(),
    }
}

/// Returns the text that is bound for a value of a type that SQLite lacks, such as a date.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Decimal(s) | Value::Text(s) | Value::Cast(s, _) => s.clone(),
        Value::Date(d) => date_text(*d),
        Value::Time(t) => time_text(*t, digits(*t)),
        Value::Timestamp(t) => timestamp_text(*t, digits(t.time)),
        Value::Uuid(u) => uuid_text(u),
        Value::Declared(inner, _) => text_of(inner),
        other => format!("{other:?}"),
    }
}

/// Returns the number of digits that the fraction of a second has in the text that is bound for
/// `t`. The number is 0 or 6, as in the text that Python's `sqlite3` binds, or 9 for nanoseconds.
fn digits(t: Time) -> u8 {
    match n_digits(t) {
        0 => 0,
        1..=6 => 6,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Date, Timestamp};

    fn time(nanosecond: u32) -> Time {
        Time {
            hour: 1,
            minute: 2,
            second: 3,
            nanosecond,
        }
    }

    #[test]
    fn times_have_the_digits_they_need() {
        let text = |nanosecond| text_of(&Value::Time(time(nanosecond)));
        assert_eq!(text(0), "01:02:03");
        assert_eq!(text(40_000_000), "01:02:03.040000");
        assert_eq!(text(1000), "01:02:03.000001");
        assert_eq!(text(1), "01:02:03.000000001");
    }

    #[test]
    fn timestamps_and_uuids_have_their_iso_form() {
        let date = Date {
            year: 987,
            month: 6,
            day: 5,
        };
        let mut t = Timestamp {
            date,
            time: time(0),
            offset_minutes: None,
        };
        assert_eq!(text_of(&Value::Timestamp(t)), "0987-06-05 01:02:03");
        t.offset_minutes = Some(-210);
        assert_eq!(text_of(&Value::Timestamp(t)), "0987-06-05 01:02:03-03:30");
        let date = Date {
            year: -44,
            month: 3,
            day: 15,
        };
        assert_eq!(text_of(&Value::Date(date)), "-0044-03-15");
        let uuid: [u8; 16] = std::array::from_fn(|i| i as u8 * 17);
        assert_eq!(
            text_of(&Value::Uuid(uuid)),
            "00112233-4455-6677-8899-aabbccddeeff"
        );
    }
}
