//! Binds parameter values to a SQLite statement, by position.
//!
//! SQLite has no decimals. A decimal is bound as a number if a number is exactly equal; otherwise
//! it is refused. SQLite has no dates, times or UUIDs. They are bound as text in ISO 8601. The
//! fraction has as many digits as the value needs (0, 6 or 9, as in Python's `sqlite3`). A space
//! separates date and time, as in SQLite's own form, and an offset has the form `+02:00`. Booleans
//! are bound as 0 and 1.

use std::ffi::c_int;

use libsqlite3_sys as ffi;

use crate::cell::{Date, Time, Timestamp};
use crate::value::Value;

/// The owner of the bytes of a text or binary value while it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// SQLite copies the bytes, because rows are fetched after the value was dropped.
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
            Value::Date(d) => bind_text(stmt, index, &iso_date(d), Keep::Copied),
            Value::Time(t) => bind_text(stmt, index, &iso_time(t), Keep::Copied),
            Value::Timestamp(t) => bind_text(stmt, index, &iso_timestamp(t), Keep::Copied),
            Value::Uuid(u) => bind_text(stmt, index, &uuid_text(u), Keep::Copied),
            // Parameters of SQLite have no types, so the declaration is ignored.
            Value::Declared(inner, _) => bind(stmt, index, inner, keep),
        }
    }
}

/// Binds a text to parameter `index` (from 1); returns the result code.
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

fn iso_date(d: &Date) -> String {
    if d.year < 0 {
        format!("-{:04}-{:02}-{:02}", d.year.unsigned_abs(), d.month, d.day)
    } else {
        format!("{:04}-{:02}-{:02}", d.year, d.month, d.day)
    }
}

fn iso_time(t: &Time) -> String {
    let mut s = format!("{:02}:{:02}:{:02}", t.hour, t.minute, t.second);
    let ns = t.nanosecond;
    if !ns.is_multiple_of(1000) {
        s.push_str(&format!(".{ns:09}"));
    } else if ns != 0 {
        s.push_str(&format!(".{:06}", ns / 1000));
    }
    s
}

fn iso_timestamp(t: &Timestamp) -> String {
    let mut s = format!("{} {}", iso_date(&t.date), iso_time(&t.time));
    if let Some(offset) = t.offset_minutes {
        let sign = if offset < 0 { '-' } else { '+' };
        let minutes = offset.unsigned_abs();
        s.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
    }
    s
}

fn uuid_text(u: &[u8; 16]) -> String {
    let hex: String = u.iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Returns the text by which a value of a type that SQLite does not have is bound.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Decimal(s) | Value::Text(s) | Value::Cast(s, _) => s.clone(),
        Value::Date(d) => iso_date(d),
        Value::Time(t) => iso_time(t),
        Value::Timestamp(t) => iso_timestamp(t),
        Value::Uuid(u) => uuid_text(u),
        Value::Declared(inner, _) => text_of(inner),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(iso_time(&time(0)), "01:02:03");
        assert_eq!(iso_time(&time(40_000_000)), "01:02:03.040000");
        assert_eq!(iso_time(&time(1000)), "01:02:03.000001");
        assert_eq!(iso_time(&time(1)), "01:02:03.000000001");
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
        assert_eq!(iso_timestamp(&t), "0987-06-05 01:02:03");
        t.offset_minutes = Some(-210);
        assert_eq!(iso_timestamp(&t), "0987-06-05 01:02:03-03:30");
        assert_eq!(
            iso_date(&Date {
                year: -44,
                month: 3,
                day: 15
            }),
            "-0044-03-15"
        );
        let uuid: [u8; 16] = std::array::from_fn(|i| i as u8 * 17);
        assert_eq!(uuid_text(&uuid), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
