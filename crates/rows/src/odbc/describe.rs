//! Describes the columns of a result, with `SQLDescribeCol` and `SQLColAttribute`.

use std::sync::atomic::Ordering;

use super::ffi::{self, Handle, sql};
use super::quirks::Width;
use super::shared::SharedConnection;
use super::unit::written;
use crate::odbc::column::Described;

/// Describes column `index` (from 0) of an executed or prepared statement; `None` if the driver
/// reports no description.
pub(crate) fn column(
    shared: &SharedConnection,
    statement: Handle,
    index: usize,
) -> Option<Described> {
    let number = u16::try_from(index + 1).ok()?;
    let mut d = Described::default();
    let (mut name_len, mut nullable) = (0i16, 0i16);
    let mut size: ffi::ULen = 0;
    let mut rc = ffi::SUCCESS;
    d.name = match shared.width {
        Width::Narrow => written::<u8, 1024>(|name| {
            // SAFETY: a live statement; every out pointer is to a live local of the type and size
            // of the reference.
            rc = unsafe {
                (shared.manager.call.describe_col)(
                    statement,
                    number,
                    name,
                    1024,
                    &raw mut name_len,
                    &raw mut d.sql_type,
                    &raw mut size,
                    &raw mut d.digits,
                    &raw mut nullable,
                )
            };
        }),
        Width::Wide => written::<u16, 1024>(|name| {
            // SAFETY: a live statement; every out pointer is a live local of the size given, in
            // characters.
            rc = unsafe {
                (shared.manager.call.describe_col_w)(
                    statement,
                    number,
                    name,
                    1024,
                    &raw mut name_len,
                    &raw mut d.sql_type,
                    &raw mut size,
                    &raw mut d.digits,
                    &raw mut nullable,
                )
            };
        }),
    };
    if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
        return None;
    }
    d.size = size;
    d.nullable = match nullable {
        ffi::NO_NULLS => Some(false),
        ffi::NULLABLE => Some(true),
        _ => None,
    };
    d.type_name = type_name(shared, statement, number);
    if shared.quirks.miscounts == Some(&*d.type_name) {
        shared.has_miscounted.store(true, Ordering::Relaxed);
    }
    match d.sql_type {
        sql::TINYINT | sql::SMALLINT | sql::INTEGER | sql::BIGINT => {
            d.unsigned = number_attribute(shared, statement, number, ffi::DESC_UNSIGNED) == 1;
        }
        sql::CHAR | sql::VARCHAR | sql::LONGVARCHAR | sql::BINARY | sql::VARBINARY => {
            d.octets = usize::try_from(number_attribute(
                shared,
                statement,
                number,
                ffi::DESC_OCTET_LENGTH,
            ))
            .unwrap_or(0);
        }
        _ => {}
    }
    Some(d)
}

fn number_attribute(
    shared: &SharedConnection,
    statement: Handle,
    number: u16,
    attribute: u16,
) -> isize {
    let mut value: ffi::Len = 0;
    // SAFETY: a live statement; a numeric attribute writes only `value`.
    unsafe {
        (shared.manager.call.col_attribute)(
            statement,
            number,
            attribute,
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
            &raw mut value,
        )
    };
    value
}

fn type_name(shared: &SharedConnection, statement: Handle, number: u16) -> String {
    let mut length = 0i16;
    match shared.width {
        Width::Narrow => written::<u8, 256>(|name| {
            // SAFETY: a live statement; the buffer has the size given, and one unit more.
            unsafe {
                (shared.manager.call.col_attribute)(
                    statement,
                    number,
                    ffi::DESC_TYPE_NAME,
                    name.cast(),
                    255,
                    &raw mut length,
                    std::ptr::null_mut(),
                )
            };
        }),
        Width::Wide => written::<u16, 256>(|name| {
            // SAFETY: a live statement; the buffer has the size given, and one unit more:
            // SQLColAttributeW counts bytes.
            unsafe {
                (shared.manager.call.col_attribute_w)(
                    statement,
                    number,
                    ffi::DESC_TYPE_NAME,
                    name.cast(),
                    510,
                    &raw mut length,
                    std::ptr::null_mut(),
                )
            };
        }),
    }
}
