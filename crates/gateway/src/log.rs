//! [`Log`] writes a line for each request and for each failure. The lines contain no query string,
//! parameter, password or SQL.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onecopy_rows::{Error, ErrorKind, Value};
use onecopy_serve::Access;
use onecopy_serve::access::rfc3339;

/// The log: a function that is called with each line, without a line end.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Log {
    /// Creates a log that passes each line to `write`, which must not block for long.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log(Arc::new(write))
    }

    /// Writes a log line with the current time.
    pub fn line(&self, text: &str) {
        // The message of a driver may contain line ends, but an event must be logged in one line.
        let text = text.replace(['\n', '\r'], " | ");
        (self.0)(&format!("{} {text}", now()));
    }

    /// Writes the log line of a request.
    pub(crate) fn access(&self, access: &Access<'_>) {
        let method = if access.method.is_empty() {
            "-"
        } else {
            access.method
        };
        let path = if access.path.is_empty() {
            "-"
        } else {
            access.path
        };
        let rows = access
            .n_rows
            .map_or_else(String::new, |n| format!(" rows={n}"));
        self.line(&format!(
            "{method} {path} {} {}{rows} bytes={} ms={:.1} peer={}",
            access.status,
            access.outcome.name(),
            access.n_bytes,
            access.duration.as_secs_f64() * 1000.0,
            access.host(),
        ));
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

/// Advice that is added to an error caused by malformed text in a cell.
pub(crate) const REPLACE: &str =
    "set `errors = \"replace\"` for this database to read U+FFFD instead";

/// Returns the text of a database error for the log. Messages about values are omitted, because
/// they contain the values. In all other messages, the text parameters of the request are replaced
/// by `…`. With `debug`, the complete message is returned.
pub(crate) fn error_text(error: &Error, parameters: &[Value], debug: bool) -> String {
    let error = &error.clone().or_else_replace(REPLACE);
    let mut text = format!("{:?}", error.kind);
    if !error.sqlstate.is_empty() {
        text.push_str(&format!(" sqlstate={}", error.sqlstate));
    }
    if error.native != 0 {
        text.push_str(&format!(" native={}", error.native));
    }
    if let Some((i, name)) = error.column.as_deref() {
        text.push_str(&format!(" column={i} `{name}`"));
    }
    if let Some(row) = error.row {
        text.push_str(&format!(" row={row}"));
    }
    if debug || !matches!(error.kind, ErrorKind::Data | ErrorKind::Integrity) {
        let mut message = error.message.clone();
        for value in parameters {
            if let Value::Text(v) | Value::Decimal(v) = value
                && !debug
                && !v.is_empty()
            {
                message = message.replace(v.as_str(), "…");
            }
        }
        text.push_str(": ");
        text.push_str(&message);
    }
    text
}

/// Returns the current time in UTC as RFC 3339, with milliseconds.
fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    rfc3339(since.as_secs(), since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_taken_out_of_what_a_driver_says() {
        let said = Error::new(
            ErrorKind::Programming,
            "no function near 'hush-7'\nsee hush-7",
        );
        let values = [Value::Text("hush-7".to_owned()), Value::Text(String::new())];
        let text = error_text(&said, &values, false);
        assert_eq!(text, "Programming: no function near '…'\nsee …");
        let said = Error::new(ErrorKind::Data, "invalid input: 'x'");
        assert_eq!(error_text(&said, &[], false), "Data");
    }

    #[test]
    fn one_event_is_one_line() {
        let lines = Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        Log::new(move |line| sink.lock().unwrap().push(line.to_owned())).line("a\r\nb");
        let lines = lines.lock().unwrap();
        assert!(lines[0].ends_with("Z a |  | b"), "{lines:?}");
    }
}
