//! [`host_is_loopback`]: a check of the `Host` field that protects a local server against DNS
//! rebinding.

use std::net::Ipv4Addr;

/// Returns `true` if `host`, the value of a `Host` field, names a loopback address with the port
/// `bound_port`.
///
/// This check protects against DNS rebinding. In such an attack, the host name of a web page
/// resolves to 127.0.0.1, so that requests of the page reach a local server. The `Host` field of
/// these requests still has the host name of the page. The function accepts `localhost`,
/// 127.0.0.0/8 and `[::1]`. The port must equal `bound_port`; it may be absent only if `bound_port`
/// is 80.
#[must_use]
pub fn host_is_loopback(host: &[u8], bound_port: u16) -> bool {
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some(("::1", "")) => ("::1", None),
            Some(("::1", port)) => match port.strip_prefix(':') {
                Some(port) => ("::1", Some(port)),
                None => return false,
            },
            _ => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let port_fits = match port {
        None => bound_port == 80,
        Some(p) => p.bytes().all(|b| b.is_ascii_digit()) && p.parse() == Ok(bound_port),
    };
    let is_loopback = name == "::1"
        || name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
    port_fits && is_loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_at_the_bound_port_are_taken() {
        for host in [
            "127.0.0.1:8000",
            "localhost:8000",
            "LocalHost:8000",
            "[::1]:8000",
            "127.8.9.1:8000",
        ] {
            assert!(host_is_loopback(host.as_bytes(), 8000), "{host}");
        }
        assert!(host_is_loopback(b"localhost", 80));
        assert!(host_is_loopback(b"[::1]", 80));
    }

    #[test]
    fn other_names_and_ports_are_refused() {
        for host in [
            "",
            "localhost",
            "localhost:",
            "localhost:8001",
            "localhost:+8000",
            "localhost.:8000",
            "evil.example:8000",
            "127.0.0.1.evil.example:8000",
            "localhost.evil.example:8000",
            "[::2]:8000",
            "[::1]8000",
            "[::1",
            "::1:8000",
            "0.0.0.0:8000",
            "127.1:8000",
            "10.0.0.1:8000",
            "127.0.0.1:8000:8000",
            "user@127.0.0.1:8000",
        ] {
            assert!(!host_is_loopback(host.as_bytes(), 8000), "{host}");
        }
        assert!(!host_is_loopback(b"localhost\xff:8000", 8000));
    }
}
