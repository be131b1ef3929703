//! [`HttpDate`]: the `Date` field of responses, formatted once per second.

use std::time::{Duration, UNIX_EPOCH};

use crate::sys;

/// The current date in the format of RFC 9110, section 5.6.7. Each thread keeps its own formatted
/// text, and formats it again only when the second changes.
pub(crate) struct HttpDate {
    second: u64,
    text: String,
}

impl HttpDate {
    pub(crate) fn new() -> HttpDate {
        HttpDate {
            second: u64::MAX,
            text: String::new(),
        }
    }

    /// Returns the line of the `Date` field, including CR LF.
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
