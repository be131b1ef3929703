//! The metrics as text in the exposition format 0.0.4 of Prometheus. All names and labels are
//! constants, so no text has to be escaped.

use std::fmt::Write;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::word::{self, BUCKETS_US, CLASSES, REFUSALS};
use crate::access::Outcome;

/// Returns the metrics as text for Prometheus. A counter is the sum over all `slots`. A gauge is
/// the sum over the slots whose server is running; for these slots, the `bool` is `true`.
pub(super) fn of<'a>(slots: impl Iterator<Item = (&'a [AtomicU64], bool)>) -> String {
    let mut sum = [0_u64; word::N];
    let mut n_live = 0;
    for (words, lives) in slots {
        n_live += u64::from(lives);
        let n = if lives { word::N } else { word::GAUGES };
        for (sum, word) in sum.iter_mut().zip(&words[..n]) {
            *sum = sum.wrapping_add(word.load(Relaxed));
        }
    }
    let mut text = ExpositionText(String::with_capacity(4096));
    text.write(&sum, n_live);
    text.0
}

struct ExpositionText(String);

impl ExpositionText {
    fn write(&mut self, sum: &[u64; word::N], n_live: u64) {
        self.family(
            "http_requests_total",
            "counter",
            "Requests answered, refused or cut, by class of the status sent and by how they ended.",
        );
        for (class, name) in CLASSES.iter().enumerate() {
            for outcome in Outcome::ALL {
                let n = sum[word::REQUESTS + class * Outcome::ALL.len() + outcome as usize];
                // The text has a time series only for the pairs of status and outcome that have
                // occurred, and for one pair that is always written. All 42 pairs for each server
                // would be too many.
                if n > 0 || (*name, outcome) == ("2xx", Outcome::Done) {
                    let outcome = outcome.name();
                    self.line(
                        "http_requests_total",
                        &format!("status=\"{name}\",outcome=\"{outcome}\""),
                        n,
                    );
                }
            }
        }
        self.durations(sum);
        for (name, help, at) in [
            (
                "http_sent_bytes_total",
                "Bytes handed to the kernel for clients.",
                word::SENT,
            ),
            (
                "http_received_bytes_total",
                "Bytes read from clients.",
                word::RECEIVED,
            ),
            (
                "http_rows_total",
                "Rows that row streams have made for answers.",
                word::ROWS,
            ),
            (
                "http_connections_accepted_total",
                "Connections taken from the kernel's queue.",
                word::ACCEPTED,
            ),
        ] {
            self.single(name, "counter", help, sum[at]);
        }
        self.family(
            "http_connections_refused_total",
            "counter",
            "Accepted connections that were not served: past the limit with a 503 (busy) or without (dropped), or failed.",
        );
        for (at, reason) in REFUSALS.iter().enumerate() {
            self.line(
                "http_connections_refused_total",
                &format!("reason=\"{reason}\""),
                sum[word::REFUSED + at],
            );
        }
        for (name, help, at) in [
            (
                "http_accept_pauses_total",
                "Times that no connection was accepted for a while, since descriptors or memory had run out.",
                word::ACCEPT_PAUSES,
            ),
            (
                "access_log_dropped_lines_total",
                "Lines of the access log that were dropped, since its file did not keep up.",
                word::LOG_DROPPED,
            ),
        ] {
            self.single(name, "counter", help, sum[at]);
        }
        for (name, help, n) in [
            (
                "http_connections",
                "Connections that are open.",
                sum[word::CONNECTIONS],
            ),
            (
                "http_handlers_running",
                "Requests that the application is handling.",
                sum[word::HANDLERS],
            ),
            (
                "http_requests_waiting",
                "Requests that wait for a thread of the application.",
                sum[word::WAITING],
            ),
            (
                "http_row_streams",
                "Row streams that are open.",
                sum[word::STREAMS],
            ),
            (
                "http_servers",
                "Servers that are counted here and live.",
                n_live,
            ),
        ] {
            self.single(name, "gauge", help, n);
        }
    }

    fn durations(&mut self, sum: &[u64; word::N]) {
        let name = "http_request_duration_seconds";
        self.family(
            name,
            "histogram",
            "From the whole head of a request to the last byte of its answer.",
        );
        let mut n = 0;
        for (at, end_us) in BUCKETS_US.iter().enumerate() {
            n += sum[word::BUCKETS + at];
            let labels = format!("le=\"{}\"", seconds(*end_us));
            self.line(&format!("{name}_bucket"), &labels, n);
        }
        n += sum[word::BUCKETS + BUCKETS_US.len()];
        self.line(&format!("{name}_bucket"), "le=\"+Inf\"", n);
        self.line(&format!("{name}_sum"), "", seconds(sum[word::DURATION_US]));
        self.line(&format!("{name}_count"), "", n);
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, n: u64) {
        self.family(name, kind, help);
        self.line(name, "", n);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP onecopy_{name} {help}");
        let _ = writeln!(self.0, "# TYPE onecopy_{name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.0, "onecopy_{name} {value}"),
            labels => writeln!(self.0, "onecopy_{name}{{{labels}}} {value}"),
        };
    }
}

/// Formats microseconds as seconds with as few digits as possible, such as `0.0001`, `2.5` or `60`.
fn seconds(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
    if part == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{part:06}");
    text.trim_end_matches('0').to_owned()
}
