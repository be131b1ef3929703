//! [`Format`]: the formats of an access log line. Bytes that come from the client are escaped, so
//! that a client can neither start a new line of the log nor end a quoted field.

use std::io::Write;
use std::time::Duration;

use super::time::SecondText;
use super::{Access, Keep};

/// The format of the lines of an access log. The time in a line is in UTC. It is the time at which
/// the last byte of the request's head was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Apache's Common Log Format: `host - - [time] "request line" status bytes`. `bytes` is the
    /// size of the response body, or `-` if the response has no body. If the request head could not
    /// be parsed, the request line is `-`.
    #[default]
    Common,
    /// [`Format::Common`], followed by `"Referer" "User-Agent"`. The server must record these two
    /// header fields of each request only if this format is used; [`Format::keep`] returns which
    /// fields it must record.
    Combined,
    /// One JSON object per line. The member `bytes` is the size of the response with its head. The
    /// member `duration` is in seconds.
    Json,
}

impl Format {
    /// Returns which optional fields of a request the server must record for log lines of this
    /// format. If `query` is `false`, the query string is not recorded.
    #[must_use]
    pub fn keep(self, query: bool) -> Keep {
        Keep {
            query,
            agent: self == Format::Combined,
        }
    }

    /// Appends the line of a request, with a line end. The request ended at `now`, given as the
    /// time since 1970.
    pub(super) fn put(
        self,
        out: &mut Vec<u8>,
        access: &Access<'_>,
        now: Duration,
        texts: &mut SecondText,
    ) {
        let begun = now.saturating_sub(access.duration);
        match self {
            Format::Common => put_common(out, access, begun, texts),
            Format::Combined => {
                put_common(out, access, begun, texts);
                for value in [access.referer, access.user_agent] {
                    out.extend_from_slice(b" \"");
                    put_escaped(out, if value.is_empty() { b"-" } else { value });
                    out.push(b'"');
                }
            }
            Format::Json => put_json(out, access, begun, texts),
        }
        out.push(b'\n');
    }

    /// Appends a log line that reports that `n` log lines were dropped. In the text formats, its
    /// request line is `onecopy dropped n lines`. This text does not end with an HTTP version, as
    /// the line of each real request does, so the two cannot be confused.
    pub(super) fn put_dropped(
        self,
        out: &mut Vec<u8>,
        n: u64,
        now: Duration,
        texts: &mut SecondText,
    ) {
        if self == Format::Json {
            put_json_time(out, now, texts);
            let _ = writeln!(out, ",\"dropped_lines\":{n}}}");
            return;
        }
        out.extend_from_slice(b"- - - [");
        out.extend_from_slice(texts.common(now.as_secs()));
        let _ = write!(out, "] \"onecopy dropped {n} lines\" 0 -");
        if self == Format::Combined {
            out.extend_from_slice(b" \"-\" \"-\"");
        }
        out.push(b'\n');
    }
}

fn put_common(out: &mut Vec<u8>, access: &Access<'_>, begun: Duration, texts: &mut SecondText) {
    let _ = write!(out, "{} - - [", access.host());
    out.extend_from_slice(texts.common(begun.as_secs()));
    out.extend_from_slice(b"] \"");
    if access.method.is_empty() {
        out.push(b'-');
    } else {
        put_escaped(out, access.method.as_bytes());
        out.push(b' ');
        put_escaped(out, access.path.as_bytes());
        if let Some(query) = access.query {
            out.push(b'?');
            put_escaped(out, query.as_bytes());
        }
        out.extend_from_slice(b" ");
        out.extend_from_slice(protocol(access).as_bytes());
    }
    let _ = write!(out, "\" {} ", access.status);
    match access.n_body_bytes {
        0 => out.push(b'-'),
        n => drop(write!(out, "{n}")),
    }
}

fn protocol(access: &Access<'_>) -> &'static str {
    match access.is_http_1_0 {
        true => "HTTP/1.0",
        false => "HTTP/1.1",
    }
}

/// Appends `bytes`, escaped as Apache has done since version 2.0.46: `"` and `\` get a backslash
/// before them, and bytes that are not printable ASCII become `\n`, `\t` or `\xhh`.
fn put_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let plain = |b: &u8| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\');
        let n = rest.iter().position(|b| !plain(b)).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..n]);
        rest = &rest[n..];
        let Some((&first, after)) = rest.split_first() else {
            return;
        };
        rest = after;
        match first {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', first]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => drop(write!(out, "\\x{other:02x}")),
        }
    }
}

fn put_json_time(out: &mut Vec<u8>, time: Duration, texts: &mut SecondText) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(texts.rfc3339(time.as_secs()));
    let _ = write!(out, ".{:03}Z\"", time.subsec_millis());
}

fn put_json(out: &mut Vec<u8>, access: &Access<'_>, begun: Duration, texts: &mut SecondText) {
    put_json_time(out, begun, texts);
    let _ = write!(out, ",\"peer\":\"{}\"", access.host());
    if !access.method.is_empty() {
        out.extend_from_slice(b",\"method\":");
        put_json_string(out, access.method);
        out.extend_from_slice(b",\"path\":");
        put_json_string(out, access.path);
        if let Some(query) = access.query {
            out.extend_from_slice(b",\"query\":");
            put_json_string(out, query);
        }
        let _ = write!(out, ",\"protocol\":\"{}\"", protocol(access));
    }
    let outcome = access.outcome.name();
    let _ = write!(
        out,
        ",\"status\":{},\"outcome\":\"{outcome}\",\"bytes\":{}",
        access.status, access.n_bytes
    );
    if let Some(n_rows) = access.n_rows {
        let _ = write!(out, ",\"rows\":{n_rows}");
    }
    let (seconds, micros) = (access.duration.as_secs(), access.duration.subsec_micros());
    let _ = write!(out, ",\"duration\":{seconds}.{micros:06}}}");
}

/// Appends `text` as a JSON string (RFC 8259). The control characters U+0000 to U+001F and U+007F
/// to U+009F are escaped, so that a line that is printed cannot control the terminal.
fn put_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        if !c.is_control() && !matches!(c, '"' | '\\') {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[plain..at]);
        plain = at + c.len_utf8();
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            c => drop(write!(out, "\\u{:04x}", u32::from(c))),
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Outcome;

    fn access<'a>(method: &'a str, path: &'a str) -> Access<'a> {
        Access {
            method,
            path,
            query: None,
            is_http_1_0: false,
            referer: b"",
            user_agent: b"",
            status: 200,
            n_bytes: 180,
            n_body_bytes: 17,
            n_rows: None,
            duration: Duration::from_micros(1_000_250),
            outcome: Outcome::Done,
            peer: "[2001:db8::1]:4711".parse().ok(),
        }
    }

    fn line(format: Format, access: &Access<'_>) -> String {
        let mut out = Vec::new();
        let now = Duration::from_millis(1_709_251_200_500);
        format.put(&mut out, access, now, &mut SecondText::default());
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line.matches('\n').count(), 1, "{line:?}");
        assert!(
            line.bytes()
                .all(|b| b == b'\n' || (b' '..=b'~').contains(&b))
        );
        line.trim_end().to_owned()
    }

    #[test]
    fn a_line_of_each_form() {
        let mut entry = access("GET", "/a");
        entry.query = Some("x=1");
        entry.user_agent = b"curl/8";
        let common = "2001:db8::1 - - [29/Feb/2024:23:59:59 +0000] \"GET /a?x=1 HTTP/1.1\" 200 17";
        assert_eq!(line(Format::Common, &entry), common);
        assert_eq!(
            line(Format::Combined, &entry),
            format!("{common} \"-\" \"curl/8\"")
        );
        assert_eq!(
            line(Format::Json, &entry),
            r#"{"time":"2024-02-29T23:59:59.499Z","peer":"2001:db8::1","method":"GET","path":"/a","query":"x=1","protocol":"HTTP/1.1","status":200,"outcome":"done","bytes":180,"duration":1.000250}"#
        );
    }

    #[test]
    fn what_could_not_be_read_is_a_dash() {
        let mut entry = access("", "");
        (entry.status, entry.n_body_bytes, entry.outcome) = (400, 0, Outcome::Refused);
        assert!(line(Format::Common, &entry).ends_with("] \"-\" 400 -"));
        assert!(!line(Format::Json, &entry).contains("method"));
    }

    #[test]
    fn no_request_forges_a_line_or_a_field() {
        let evil = "/\" 200 1\n127.0.0.1 - - [x] \"GET / HTTP/1.1\\\r\t\u{1b}[2J\u{7f}\u{9b}é";
        let mut entry = access("GE\"T", evil);
        entry.query = Some(evil);
        entry.referer = b"\xff\" \"forged\n";
        let said = line(Format::Combined, &entry);
        let quotes = said.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(quotes.matches('"').count(), 6, "{said}");
        assert!(said.contains(r#""\xff\" \"forged\n" "-""#), "{said}");
        // `é` is not escaped in JSON, so the output is not checked to be ASCII.
        let mut out = Vec::new();
        Format::Json.put(&mut out, &entry, Duration::ZERO, &mut SecondText::default());
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            (&value["path"], &value["method"]),
            (&evil.into(), &"GE\"T".into())
        );
        assert!(!out[..out.len() - 1].iter().any(|b| b.is_ascii_control()));
    }

    #[test]
    fn lines_that_were_dropped_are_told_of_in_each_form() {
        let said = |format: Format| {
            let mut out = Vec::new();
            format.put_dropped(&mut out, 7, Duration::ZERO, &mut SecondText::default());
            String::from_utf8(out).unwrap()
        };
        let common = "- - - [01/Jan/1970:00:00:00 +0000] \"onecopy dropped 7 lines\" 0 -";
        assert_eq!(said(Format::Common), format!("{common}\n"));
        assert_eq!(said(Format::Combined), format!("{common} \"-\" \"-\"\n"));
        let json = "{\"time\":\"1970-01-01T00:00:00.000Z\",\"dropped_lines\":7}\n";
        assert_eq!(said(Format::Json), json);
    }
}
