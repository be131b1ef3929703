//! The `Date` field, made once a second.

use std::time::{Duration, UNIX_EPOCH};

use crate::sys;

/// The current date in the form of RFC 9110 5.6.7, kept by each thread for the second it is true.
pub(crate) struct Date {
    second: u64,
    text: String,
}

impl Date {
    pub(crate) fn new() -> Date {
        Date {
            second: u64::MAX,
            text: String::new(),
        }
    }

    /// The field with its line end.
    pub(crate) fn line(&mut self) -> &str {
        let second = sys::unix_seconds();
        if second != self.second {
            self.second = second;
            let now = UNIX_EPOCH + Duration::from_secs(second);
            self.text = format!("Date: {}\r\n", httpdate::fmt_http_date(now));
        }
        &self.text
    }
}
