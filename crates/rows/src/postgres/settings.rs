//! The settings of a connection, from keywords to what they mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::surroundings::{self, Environment, PasswordKey};
use super::target::{self, Keywords};
use crate::database::ConnectOptions;
use crate::error::{Error, ErrorKind};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A name or an address of IP, to be looked up, and its port.
    Tcp(String, u16),
    /// The file of a unix socket.
    Unix(PathBuf),
}

/// One server that may be connected to.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// The name that a certificate has to have.
    pub(super) name: String,
    pub(super) address: Address,
    pub(super) password: Option<Vec<u8>>,
}

/// The use of TLS, and the verification of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The binding of the authentication to the TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelBinding {
    Disable,
    Prefer,
    Require,
}

/// The sessions that are accepted, of several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionAttributes {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

/// The settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) mode: SslMode,
    /// True if TLS begins without a request in the PostgreSQL protocol (servers from 17 on).
    pub(super) is_direct: bool,
    /// A file of certificates in PEM, or `system`.
    pub(super) root_certificates: Option<String>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// How a lost network is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keepalives {
    pub(super) is_on: bool,
    pub(super) idle: Option<Duration>,
    pub(super) interval: Option<Duration>,
    pub(super) count: Option<u32>,
    /// How long sent bytes may stay without acknowledgement; `None` leaves it to the system.
    pub(super) user_timeout: Option<Duration>,
}

/// Everything that a connection is made by. No `Debug`: it has passwords.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) application_name: String,
    /// Command-line options of the session.
    pub(super) options: Option<String>,
    pub(super) connect_timeout: Duration,
    pub(super) tls: TlsSettings,
    pub(super) channel_binding: ChannelBinding,
    pub(super) session: SessionAttributes,
    pub(super) keepalives: Keepalives,
    /// True if the hosts are tried in a random order.
    pub(super) balances: bool,
}

fn wrong(keyword: &str, what: &str) -> Error {
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

fn choice<T: Copy>(
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
    /// Reads `target`, a URL without its scheme or a `key=value` string, and what the surroundings add to it.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] with the keyword that is wrong; never with a password.
    pub(super) fn read(
        target: &str,
        options: &ConnectOptions,
        environment: &dyn Environment,
    ) -> Result<Settings, Error> {
        let mut keywords = target::parse(target)?;
        surroundings::complete(&mut keywords, environment)?;
        let of = |key: &str| keywords.get(key).filter(|value| !value.is_empty()).cloned();
        let user = of("user").or_else(|| environment.variable("USER"));
        let user = user.ok_or_else(|| wrong("user", "none is given, and USER is not set"))?;
        let database = of("dbname").unwrap_or_else(|| user.clone());
        let mut hosts = hosts(&keywords)?;
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
                surroundings::password(&keywords, environment, &key)
            });
            host.password = password.map(String::into_bytes);
        }
        if let Some(encoding) = of("client_encoding") {
            let name = encoding.to_ascii_lowercase();
            if !matches!(name.as_str(), "utf8" | "utf-8" | "auto" | "unicode") {
                return Err(wrong("client_encoding", "text is always UTF8"));
            }
        }
        if of("gssencmode").is_some_and(|mode| mode == "require") {
            return Err(wrong("gssencmode", "GSSAPI is not supported"));
        }
        let tls = tls(&keywords, environment)?;
        let seconds = |key| {
            Ok(number::<u64>(&keywords, key)?
                .filter(|n| *n > 0)
                .map(Duration::from_secs))
        };
        let connect_timeout = seconds("connect_timeout")?
            .unwrap_or(Duration::from_secs(u64::from(options.login_timeout_s)));
        let user_timeout = number::<u64>(&keywords, "tcp_user_timeout")?.filter(|ms| *ms > 0);
        Ok(Settings {
            hosts,
            user,
            database,
            application_name: of("application_name")
                .or_else(|| of("fallback_application_name"))
                .unwrap_or_else(|| "onecopy".to_owned()),
            options: of("options"),
            connect_timeout,
            tls,
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
                is_on: choice(&keywords, "keepalives", &[("1", true), ("0", false)], true)?,
                idle: seconds("keepalives_idle")?,
                interval: seconds("keepalives_interval")?,
                count: number(&keywords, "keepalives_count")?,
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

/// The host and port of the password file for a unix socket.
fn password_host(socket: &Path) -> (&str, u16) {
    let name = socket.file_name().and_then(|name| name.to_str());
    let port = name.and_then(|name| name.rsplit('.').next()?.parse().ok());
    ("localhost", port.unwrap_or(5432))
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
            let address = match (address.is_empty(), name.as_str()) {
                (false, _) => Address::Tcp(address, port),
                (true, "") => default_address(port),
                (true, name) if name.starts_with('/') => {
                    Address::Unix(Path::new(name).join(format!(".s.PGSQL.{port}")))
                }
                (true, name) => Address::Tcp(name.to_owned(), port),
            };
            Ok(Host {
                name,
                address,
                password: None,
            })
        })
        .collect()
}

/// The unix socket of a local server, if it exists in a directory of libpq (of Debian or PostgreSQL); else TCP.
fn default_address(port: u16) -> Address {
    let file = format!(".s.PGSQL.{port}");
    let sockets = ["/var/run/postgresql", "/tmp"].map(|dir| Path::new(dir).join(&file));
    let found = sockets.into_iter().find(|path| path.exists());
    found.map_or_else(|| Address::Tcp("localhost".to_owned(), port), Address::Unix)
}

fn tls(keywords: &Keywords, environment: &dyn Environment) -> Result<TlsSettings, Error> {
    let of = |key: &str| keywords.get(key).filter(|value| !value.is_empty()).cloned();
    let in_home = |name: &str| {
        let path = environment.home()?.join(".postgresql").join(name);
        path.exists().then_some(path)
    };
    let root = of("sslrootcert").or_else(|| Some(in_home("root.crt")?.to_str()?.to_owned()));
    // `system` is of no use without a verification of the name.
    let default = match root.as_deref() {
        Some("system") => SslMode::VerifyFull,
        _ => SslMode::Prefer,
    };
    let modes = [
        ("disable", SslMode::Disable),
        ("allow", SslMode::Allow),
        ("prefer", SslMode::Prefer),
        ("require", SslMode::Require),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ];
    let mode = choice(keywords, "sslmode", &modes, default)?;
    let negotiations = [("postgres", false), ("direct", true)];
    let is_direct = choice(keywords, "sslnegotiation", &negotiations, false)?;
    if root.as_deref() == Some("system") && mode != SslMode::VerifyFull {
        return Err(wrong(
            "sslmode",
            "`sslrootcert=system` is used with `verify-full` only",
        ));
    }
    if is_direct && mode < SslMode::Require {
        return Err(wrong(
            "sslmode",
            "`sslnegotiation=direct` needs `require` or more",
        ));
    }
    Ok(TlsSettings {
        mode,
        is_direct,
        root_certificates: root,
        certificate: of("sslcert")
            .map(PathBuf::from)
            .or_else(|| in_home("postgresql.crt")),
        key: of("sslkey")
            .map(PathBuf::from)
            .or_else(|| in_home("postgresql.key")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::surroundings::tests::environment;
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
        assert_eq!(settings.connect_timeout, Duration::from_secs(15));
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
            ("//h?client_encoding=latin1", "client_encoding"),
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
