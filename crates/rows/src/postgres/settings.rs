//! `Settings`: the settings of a connection, derived from libpq's keywords.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::auth_methods::Methods;
use super::connect_defaults::{self, Environment, PasswordFile, PasswordKey};
use super::target::{self, Keywords};
use super::tls_settings::TlsSettings;
use crate::database::ConnectOptions;
use crate::error::{Error, ErrorKind};

/// The address of a server, as the connection string contains it: its host name is not resolved
/// yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A host name or IP address, which is resolved when the connection is opened, and a port.
    Tcp(String, u16),
    /// The path of a unix socket; a name that begins with `@` is in the abstract namespace.
    Unix(PathBuf),
}

/// One of the servers that the connection string lists.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// The host name in the server's certificate, which is also sent in the TLS handshake.
    pub(super) name: String,
    pub(super) address: Address,
    pub(super) password: Option<Vec<u8>>,
}

/// The value of the keyword `channel_binding`, which determines whether SCRAM authentication is
/// bound to the TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelBinding {
    Disable,
    Prefer,
    Require,
}

/// The value of libpq's keyword `target_session_attrs`: the kind of server or session that a new
/// connection requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionAttributes {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

/// The TCP settings (keepalives and time limits) that detect a lost network connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keepalives {
    pub(super) is_on: bool,
    pub(super) idle: Option<Duration>,
    pub(super) interval: Option<Duration>,
    pub(super) count: Option<u32>,
    /// The time that sent bytes may stay unacknowledged; `None` for the default of the system.
    pub(super) user_timeout: Option<Duration>,
}

/// All settings of a connection. It does not implement `Debug`, because it contains passwords.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) application_name: String,
    /// The command-line options for the server process of the session (keyword `options`).
    pub(super) options: Option<String>,
    /// The time limit for connecting to each host; `None` if the hosts share `timeout`.
    pub(super) connect_timeout: Option<Duration>,
    /// The time limit for connecting to all hosts together.
    pub(super) timeout: Duration,
    pub(super) tls: TlsSettings,
    pub(super) channel_binding: ChannelBinding,
    pub(super) accepted: Methods,
    /// The name of the system user that must run the server of a unix socket (keyword
    /// `requirepeer`); `None` for any user.
    pub(super) required_peer: Option<String>,
    /// The reason why the password file (`.pgpass`) was ignored; empty if it was not ignored. Error
    /// messages contain this reason.
    pub(super) password_hint: String,
    pub(super) session: SessionAttributes,
    pub(super) keepalives: Keepalives,
    /// `true` if the hosts and their addresses are tried in random order.
    pub(super) balances: bool,
}

const REQUIRE_AUTH: &str =
    "it is a list of password, md5, scram-sha-256 and none, all with or all without `!`";

/// Creates the error for a wrong value of a keyword. `what` describes the valid values.
pub(super) fn wrong(keyword: &str, what: &str) -> Error {
    Error::new(
        ErrorKind::Connect,
        format!("wrong value of `{keyword}`: {what}"),
    )
}

fn number<T: std::str::FromStr>(keywords: &Keywords, keyword: &str) -> Result<Option<T>, Error> {
    let Some(value) = keywords.get(keyword).filter(|v| !v.is_empty()) else {
        return Ok(None);
    };
    let parsed = value.trim().parse().map(Some);
    parsed.map_err(|_| wrong(keyword, "it is not a number in range"))
}

pub(super) fn choice<T: Copy>(
    keywords: &Keywords,
    keyword: &str,
    choices: &[(&str, T)],
    default: T,
) -> Result<T, Error> {
    let Some(value) = keywords.get(keyword).filter(|v| !v.is_empty()) else {
        return Ok(default);
    };
    match choices.iter().find(|(name, _)| name == value) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            Err(wrong(
                keyword,
                &format!("it is one of {}", names.join(", ")),
            ))
        }
    }
}

impl Settings {
    /// Returns the settings of a connection. `target` is a URL without its scheme, or a `key=value`
    /// string. Settings that `target` does not contain have the defaults from the environment.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] with the name of the wrong keyword; the message contains no password.
    pub(super) fn read(
        target: &str,
        options: &ConnectOptions,
        environment: &dyn Environment,
    ) -> Result<Settings, Error> {
        let mut keywords = target::parse(target)?;
        connect_defaults::complete(&mut keywords, environment)?;
        let of = |key: &str| keywords.get(key).filter(|value| !value.is_empty()).cloned();
        let user = of("user").or_else(|| environment.user());
        let user =
            user.ok_or_else(|| wrong("user", "none is given, and the system's has no name"))?;
        let database = of("dbname").unwrap_or_else(|| user.clone());
        let mut hosts = hosts(&keywords)?;
        let password_file = PasswordFile::read(&keywords, environment);
        for host in &mut hosts {
            let password = of("password").or_else(|| {
                let (name, port) = match &host.address {
                    Address::Tcp(name, port) if host.name.is_empty() => (name.as_str(), *port),
                    Address::Tcp(_, port) => (host.name.as_str(), *port),
                    Address::Unix(path) => password_host(path),
                };
                let key = PasswordKey {
                    host: name,
                    port,
                    database: &database,
                    user: &user,
                };
                password_file.password(&key)
            });
            host.password = password.map(String::into_bytes);
        }
        if of("gssencmode").is_some_and(|mode| mode == "require") {
            return Err(wrong("gssencmode", "GSSAPI is not supported"));
        }
        let replicates = of("replication").map(|value| value.to_ascii_lowercase());
        if replicates.is_some_and(|v| !matches!(v.as_str(), "false" | "off" | "no" | "0")) {
            return Err(wrong("replication", "it is not supported"));
        }
        let accepted = match of("require_auth") {
            None => Methods::default(),
            Some(value) => {
                Methods::parse(&value).ok_or_else(|| wrong("require_auth", REQUIRE_AUTH))?
            }
        };
        let tls = TlsSettings::read(&keywords, environment)?;
        // As in libpq, 0 and negative numbers mean that there is no limit.
        let positive = |key| {
            let found = number::<i64>(&keywords, key)?;
            Ok(found.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0))
        };
        let seconds = |key| Ok(positive(key)?.map(Duration::from_secs));
        let user_timeout = positive("tcp_user_timeout")?;
        Ok(Settings {
            hosts,
            user,
            database,
            application_name: of("application_name")
                .or_else(|| of("fallback_application_name"))
                .unwrap_or_else(|| "onecopy".to_owned()),
            options: of("options"),
            connect_timeout: seconds("connect_timeout")?,
            timeout: Duration::from_secs(u64::from(options.login_timeout_s)),
            tls,
            accepted,
            required_peer: of("requirepeer"),
            password_hint: password_file.hint,
            channel_binding: choice(
                &keywords,
                "channel_binding",
                &[
                    ("disable", ChannelBinding::Disable),
                    ("prefer", ChannelBinding::Prefer),
                    ("require", ChannelBinding::Require),
                ],
                ChannelBinding::Prefer,
            )?,
            session: choice(
                &keywords,
                "target_session_attrs",
                &[
                    ("any", SessionAttributes::Any),
                    ("read-write", SessionAttributes::ReadWrite),
                    ("read-only", SessionAttributes::ReadOnly),
                    ("primary", SessionAttributes::Primary),
                    ("standby", SessionAttributes::Standby),
                    ("prefer-standby", SessionAttributes::PreferStandby),
                ],
                SessionAttributes::Any,
            )?,
            keepalives: Keepalives {
                is_on: number::<i64>(&keywords, "keepalives")? != Some(0),
                idle: seconds("keepalives_idle")?,
                interval: seconds("keepalives_interval")?,
                count: positive("keepalives_count")?.and_then(|n| u32::try_from(n).ok()),
                user_timeout: user_timeout.map(Duration::from_millis),
            },
            balances: choice(
                &keywords,
                "load_balance_hosts",
                &[("disable", false), ("random", true)],
                false,
            )?,
        })
    }
}

/// Returns the host and the port that lines of libpq's password file contain for the unix socket
/// `socket`. The host is the directory of the socket. For libpq's default directory of sockets, the
/// host is `localhost`.
fn password_host(socket: &Path) -> (&str, u16) {
    let name = socket.file_name().and_then(|name| name.to_str());
    let port = name.and_then(|name| name.rsplit('.').next()?.parse().ok());
    let directory = socket.parent().and_then(Path::to_str).unwrap_or_default();
    let host = match SOCKET_DIRECTORIES.contains(&directory) {
        true => "localhost",
        false => directory,
    };
    (host, port.unwrap_or(5432))
}

fn hosts(keywords: &Keywords) -> Result<Vec<Host>, Error> {
    let list = |key: &str| -> Vec<&str> {
        let value = keywords.get(key).map_or("", String::as_str);
        value.split(',').map(str::trim).collect()
    };
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let n = names.len().max(addresses.len());
    let fits = |len: usize| len == n || len == 1;
    if !fits(names.len()) || !fits(addresses.len()) || !fits(ports.len()) {
        return Err(wrong(
            "host",
            "`host`, `hostaddr` and `port` have different numbers of items",
        ));
    }
    let item = |list: &[&str], i: usize| list.get(i).or(list.first()).map_or("", |x| *x).to_owned();
    (0..n)
        .map(|i| {
            let (name, address, port) = (item(&names, i), item(&addresses, i), item(&ports, i));
            let port = match port.as_str() {
                "" => 5432,
                digits => digits
                    .parse::<u16>()
                    .ok()
                    .filter(|port| *port > 0)
                    .ok_or_else(|| wrong("port", "it is a number from 1 to 65535"))?,
            };
            let is_default = name.is_empty() && address.is_empty();
            let address = match (address.is_empty(), name.as_str()) {
                (false, _) => Address::Tcp(address, port),
                (true, "") => default_address(port),
                (true, name) if name.starts_with(['/', '@']) => {
                    Address::Unix(Path::new(name).join(format!(".s.PGSQL.{port}")))
                }
                (true, name) => Address::Tcp(name.to_owned(), port),
            };
            Ok(Host {
                name: match &address {
                    Address::Tcp(host, _) if name.is_empty() && is_default => host.clone(),
                    _ => name,
                },
                address,
                password: None,
            })
        })
        .collect()
}

/// The default directories of unix sockets: Debian's, and PostgreSQL's.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Returns the address of a server on this machine. If a default directory contains a unix socket
/// for `port`, the address is this socket, otherwise the TCP address `localhost` with `port`.
fn default_address(port: u16) -> Address {
    let file = format!(".s.PGSQL.{port}");
    let sockets = SOCKET_DIRECTORIES.map(|dir| Path::new(dir).join(&file));
    let found = sockets.into_iter().find(|path| path.exists());
    found.map_or_else(|| Address::Tcp("localhost".to_owned(), port), Address::Unix)
}

#[cfg(test)]
mod tests {
    use super::super::connect_defaults::tests::environment;
    use super::super::tls_settings::SslMode;
    use super::*;

    fn read(target: &str, variables: &[(&str, &str)]) -> Result<Settings, Error> {
        Settings::read(target, &ConnectOptions::default(), &environment(variables))
    }

    fn addresses(target: &str) -> Vec<Address> {
        let settings = read(target, &[("USER", "u")]).unwrap_or_else(|e| panic!("{target}: {e}"));
        settings
            .hosts
            .into_iter()
            .map(|host| host.address)
            .collect()
    }

    #[test]
    fn hosts_ports_and_sockets_are_addresses() {
        let tcp = |name: &str, port| Address::Tcp(name.to_owned(), port);
        assert_eq!(addresses("//h"), [tcp("h", 5432)]);
        assert_eq!(addresses("//a:1,b:2"), [tcp("a", 1), tcp("b", 2)]);
        assert_eq!(addresses("host=a,b port=7"), [tcp("a", 7), tcp("b", 7)]);
        assert_eq!(
            addresses("host=a hostaddr=10.0.0.1"),
            [tcp("10.0.0.1", 5432)]
        );
        assert_eq!(
            addresses("//%2Frun%2Fpg:6/d"),
            [Address::Unix("/run/pg/.s.PGSQL.6".into())]
        );
        assert_eq!(
            addresses("host=@name"),
            [Address::Unix("@name/.s.PGSQL.5432".into())]
        );
    }

    #[test]
    fn what_is_left_out_has_libpqs_defaults() {
        let settings = read("//h", &[("USER", "me"), ("PGAPPNAME", "app")]).unwrap();
        assert_eq!(
            (settings.user.as_str(), settings.database.as_str()),
            ("me", "me")
        );
        assert_eq!(settings.application_name, "app");
        assert_eq!(settings.tls.mode, SslMode::Prefer);
        assert_eq!(settings.session, SessionAttributes::Any);
        assert!(settings.keepalives.is_on && settings.hosts[0].password.is_none());
        assert_eq!(settings.connect_timeout, None);
        assert_eq!(settings.timeout, Duration::from_secs(15));
        let system = read("//h?sslrootcert=system", &[("USER", "me")]).unwrap();
        assert_eq!(system.tls.mode, SslMode::VerifyFull);
    }

    #[test]
    fn wrong_values_name_their_keyword() {
        for (target, keyword) in [
            ("//h:0", "port"),
            ("//h:x", "port"),
            ("//h?sslmode=maybe", "sslmode"),
            ("host=a,b port=1,2,3", "host"),
            ("//h?connect_timeout=soon", "connect_timeout"),
            ("//h?replication=database", "replication"),
            ("//h?require_auth=md5,!none", "require_auth"),
            (
                "//h?ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=TLSv1.2",
                "ssl_max_protocol_version",
            ),
            ("//h?sslnegotiation=direct", "sslmode"),
            ("//h?sslrootcert=system&sslmode=require", "sslmode"),
            ("//h?target_session_attrs=fast", "target_session_attrs"),
        ] {
            let Err(error) = read(target, &[("USER", "u")]) else {
                panic!("{target} was accepted")
            };
            assert!(
                error.message.contains(&format!("`{keyword}`")),
                "{target}: {error}"
            );
        }
        assert!(read("//h", &[]).is_err(), "there is no user");
    }
}
