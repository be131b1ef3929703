//! Parses connection URLs and `key=value` strings to keywords of libpq.
//!
//! Source: PostgreSQL's documentation, "Connection Strings".

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use crate::error::{Error, ErrorKind};

/// The accepted keywords of libpq. Some of them have no effect in this client; they are accepted
/// because it is safe to ignore them.
const KEYWORDS: &[&str] = &[
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "options",
    "passfile",
    "password",
    "port",
    "replication",
    "require_auth",
    "requirepeer",
    "service",
    "servicefile",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// Keywords and their values. They must not be printed, because they may contain a password.
pub(super) type Keywords = BTreeMap<String, String>;

fn malformed(what: &str) -> Error {
    Error::new(
        ErrorKind::Connect,
        format!("malformed connection string: {what}"),
    )
}

/// Returns an error for a keyword that is not in [`KEYWORDS`].
pub(super) fn check(keyword: &str) -> Result<(), Error> {
    if KEYWORDS.contains(&keyword) {
        return Ok(());
    }
    let printable: String = keyword.chars().take(40).collect();
    let message = format!(
        "unknown keyword `{}` in the connection string\nknown are {}",
        printable.escape_debug(),
        KEYWORDS.join(", ")
    );
    Err(Error::new(ErrorKind::Connect, message))
}

/// Parses a URL (from `//` on, without its scheme) or a `key=value` string.
///
/// # Errors
/// [`ErrorKind::Connect`] with a description of the error; the message never contains a value of
/// the string.
pub(super) fn parse(target: &str) -> Result<Keywords, Error> {
    let keywords = match target.strip_prefix("//") {
        Some(rest) => parse_url(rest)?,
        None => parse_pairs(target)?,
    };
    for keyword in keywords.keys() {
        check(keyword)?;
    }
    Ok(keywords)
}

fn decode(text: &str) -> Result<String, Error> {
    // As in libpq 17, literal spaces around a component of a URL are ignored, but `%20` is part of
    // it.
    let text = text.trim_matches(' ');
    let is_escape = |at: usize| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit))
    };
    if text.match_indices('%').any(|(at, _)| !is_escape(at)) {
        return Err(malformed("a `%` is not followed by two hexadecimal digits"));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| malformed("an escape is not UTF-8"))?;
    match decoded.contains('\0') {
        true => Err(malformed("a value contains NUL")),
        false => Ok(decoded.into_owned()),
    }
}

fn parse_url(rest: &str) -> Result<Keywords, Error> {
    let mut keywords = Keywords::new();
    let mut set = |key: &str, value: String| keywords.insert(key.to_owned(), value);
    let (user_info, rest) = split_user_info(rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    for (key, value) in [("user", user), ("password", password), ("dbname", database)] {
        if !value.trim_matches(' ').is_empty() {
            set(key, decode(value)?);
        }
    }
    if !hosts.is_empty() {
        let (mut names, mut ports) = (Vec::new(), Vec::new());
        for host in hosts.split(',') {
            let (name, port) = split_port(host)?;
            names.push(decode(name)?);
            ports.push(port);
        }
        if names.iter().any(|name| !name.is_empty()) {
            set("host", names.join(","));
        }
        if ports.iter().any(|port| !port.is_empty()) {
            set("port", ports.join(","));
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| malformed("an option of the URL has no `=`"))?;
        let (key, value) = (decode(key)?, decode(value)?);
        match (key.as_str(), value.as_str()) {
            // JDBC's spelling of `sslmode=require`.
            ("ssl", "true") => set("sslmode", "require".to_owned()),
            _ => set(&key, value),
        };
    }
    Ok(keywords)
}

/// Splits a URL at the `@` after the user and password; returns the text before and after it. The
/// text before is empty if the URL has no user. As in libpq, a `?` before the `@` belongs to the
/// password. Unlike in libpq, a password may contain `@`.
fn split_user_info(rest: &str) -> (&str, &str) {
    let authority = rest.split('/').next().unwrap_or_default();
    let Some(first) = authority.find('@') else {
        return ("", rest);
    };
    let host = authority[first..].split('?').next().unwrap_or_default();
    let at = first + host.rfind('@').unwrap_or_default();
    (&rest[..at], &rest[at + 1..])
}

/// Splits `host:port` into the host and the port; the port is empty if it is missing. An IPv6
/// address is in brackets, which are removed.
fn split_port(text: &str) -> Result<(&str, &str), Error> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, after) = rest
            .split_once(']')
            .ok_or_else(|| malformed("an IPv6 address has no closing bracket"))?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((address, port)),
            None if after.is_empty() => Ok((address, "")),
            None => Err(malformed("only a port may follow an IPv6 address")),
        };
    }
    Ok(text.split_once(':').unwrap_or((text, "")))
}

/// Returns `true` for a character that C's `isspace` accepts.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// Parses `key = value` pairs that are separated by white space. A value with spaces is in single
/// quotes. A backslash escapes the next character.
fn parse_pairs(text: &str) -> Result<Keywords, Error> {
    let mut keywords = Keywords::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| is_space(*c)).is_some() {}
        if chars.peek().is_none() {
            return Ok(keywords);
        }
        let mut key = String::new();
        while let Some(c) = chars.next_if(|c| *c != '=' && !is_space(*c)) {
            key.push(c);
        }
        while chars.next_if(|c| is_space(*c)).is_some() {}
        if chars.next() != Some('=') {
            return Err(malformed("a keyword has no `=` after it"));
        }
        while chars.next_if(|c| is_space(*c)).is_some() {}
        let is_quoted = chars.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match chars.next() {
                Some('\\') => value.extend(chars.next()),
                Some('\'') if is_quoted => break,
                Some(c) if !is_quoted && is_space(c) => break,
                Some('\0') => return Err(malformed("a value contains NUL")),
                Some(c) => value.push(c),
                None if is_quoted => return Err(malformed("a quoted value does not end")),
                None => break,
            }
        }
        keywords.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(target: &str) -> String {
        let keywords = parse(target).unwrap_or_else(|e| panic!("{target}: {e}"));
        let pairs: Vec<String> = keywords.iter().map(|(k, v)| format!("{k}={v}")).collect();
        pairs.join(" ")
    }

    #[test]
    fn urls_are_read_as_libpq_reads_them() {
        for (url, expected) in [
            ("//", ""),
            ("//localhost", "host=localhost"),
            ("//localhost:5433", "host=localhost port=5433"),
            ("//localhost/mydb", "dbname=mydb host=localhost"),
            ("//user@localhost", "host=localhost user=user"),
            (
                "//user:s%40cret@localhost",
                "host=localhost password=s@cret user=user",
            ),
            (
                "//user:a@b@localhost",
                "host=localhost password=a@b user=user",
            ),
            ("//u:p?w@h", "host=h password=p?w user=u"),
            ("//u@h?options=a@b", "host=h options=a@b user=u"),
            (
                "//host1:123,host2:456/somedb?target_session_attrs=any&application_name=my+app",
                "application_name=my+app dbname=somedb host=host1,host2 port=123,456 target_session_attrs=any",
            ),
            ("//h1,h2:5433/d", "dbname=d host=h1,h2 port=,5433"),
            (
                "///mydb?host=localhost&port=5433",
                "dbname=mydb host=localhost port=5433",
            ),
            (
                "//[2001:db8::1234]:5/database",
                "dbname=database host=2001:db8::1234 port=5",
            ),
            ("//%2Fvar%2Flib/dbname", "dbname=dbname host=/var/lib"),
            (
                "//h/d?sslmode=verify-full&ssl=true",
                "dbname=d host=h sslmode=require",
            ),
        ] {
            assert_eq!(pairs(url), expected, "{url}");
        }
    }

    #[test]
    fn pairs_are_read_as_libpq_reads_them() {
        for (text, expected) in [
            ("", ""),
            ("host=localhost port = 5432", "host=localhost port=5432"),
            ("password='it\\'s' user=a\\ b", "password=it's user=a b"),
            ("dbname='' host=/tmp", "dbname= host=/tmp"),
            ("options='-c geqo=off'", "options=-c geqo=off"),
        ] {
            assert_eq!(pairs(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_malformed_is_an_error_without_a_value() {
        for text in [
            "//h?sslmode",
            "//%zz",
            "//%ff",
            "//u:secret%00@h",
            "//[::1",
            "//[::1]x",
            "//h?secret=1x",
            "host",
            "password='secret",
            "colour=red",
        ] {
            let Err(error) = parse(text) else {
                panic!("{text} was accepted")
            };
            assert_eq!(error.kind, ErrorKind::Connect);
            assert!(
                !error.message.contains("red") && !error.message.contains("1x"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_an_error(text in any::<String>()) {
            let _ = parse(&text);
            let _ = parse(&format!("//{text}"));
        }

        #[test]
        fn values_in_quotes_are_read_whole(value in "[^\0]{0,40}") {
            let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
            let keywords = parse(&format!("user=u password='{quoted}'")).unwrap();
            prop_assert_eq!(keywords.get("password"), Some(&value));
        }
    }
}
