//! `DatabaseUrl`: converts `odbc+postgresql://`, `mysql://`, `mariadb://` and `mssql://` URLs (RFC
//! 3986) to connection strings.

use percent_encoding::percent_decode_str;

use super::connection_string::ConnectionString;
use super::quirks::Quirks;
use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;

/// A parsed database URL, percent-decoded. It does not implement `Debug`, because it contains a
/// password.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct DatabaseUrl {
    /// The scheme in lower case, without the suffix `+driver` of SQLAlchemy's URLs.
    pub(crate) scheme: String,
    user: Option<String>,
    password: Option<String>,
    host: String,
    port: Option<u16>,
    database: Option<String>,
    /// The query parameters of the URL, which become keywords for the driver.
    options: Vec<(String, String)>,
}

/// The prefix of a URL, as in `odbc+postgresql://`, that selects an ODBC driver even if this crate
/// has a client of its own for the database.
const ODBC: &str = "odbc+";

/// Returns the scheme of `target` without the prefix [`ODBC`]; `None` if `target` is not a URL.
pub(crate) fn scheme(target: &str) -> Option<&str> {
    let (scheme, _) = target.split_once("://")?;
    let scheme = scheme.strip_prefix(ODBC).unwrap_or(scheme);
    let well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    well_formed.then_some(scheme)
}

impl DatabaseUrl {
    /// Parses a database URL.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`]; the message never contains the URL, which may contain a password.
    pub(crate) fn parse(target: &str) -> Result<DatabaseUrl, Error> {
        let (scheme, rest) = target
            .split_once("://")
            .ok_or_else(|| malformed("it has no `://`"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = match rest.split_once('/') {
            Some((authority, database)) => (authority, Some(database)),
            None => (rest, None),
        };
        let (user_info, host_port) = match authority.rsplit_once('@') {
            Some((user_info, host_port)) => (Some(user_info), host_port),
            None => (None, authority),
        };
        let (user, password) = match user_info.map(|u| u.split_once(':').unwrap_or((u, ""))) {
            Some((user, password)) => (
                Some(decode(user)?),
                (!password.is_empty())
                    .then(|| decode(password))
                    .transpose()?,
            ),
            None => (None, None),
        };
        let (host, port) = split_port(host_port)?;
        let mut options = Vec::new();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let key = decode(key)?;
            // In a connection string, a driver would parse a name with one of these characters as
            // several keywords, or as part of a value.
            if key.trim() != key || key.is_empty() || key.contains([';', '=', '{', '}', '\0']) {
                return Err(malformed("the name of an option is no keyword"));
            }
            options.push((key, decode(&value.replace('+', "%20"))?));
        }
        Ok(DatabaseUrl {
            scheme: scheme
                .strip_prefix(ODBC)
                .unwrap_or(scheme)
                .split('+')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase(),
            user,
            password,
            host: decode(host)?,
            port,
            database: database.filter(|d| !d.is_empty()).map(decode).transpose()?,
            options,
        })
    }

    /// Returns the connection string for the ODBC driver `driver` (a path or name) with these
    /// `quirks`.
    pub(crate) fn connection_string(&self, driver: &str, quirks: &Quirks) -> ConnectionString {
        let mut s = ConnectionString::default();
        s.set("Driver", driver);
        let host = if self.host.is_empty() {
            "localhost"
        } else {
            &self.host
        };
        match (quirks.dialect, self.port) {
            // Microsoft's drivers expect the port after a comma; FreeTDS has a keyword for it.
            (Dialect::SqlServer, Some(port)) if quirks.name != "FreeTDS" => {
                s.set("Server", &format!("{host},{port}"));
            }
            (Dialect::SqlServer, None) if quirks.name == "FreeTDS" => {
                s.set("Server", host);
                s.set("Port", "1433");
            }
            (_, Some(port)) => {
                s.set("Server", host);
                s.set("Port", &port.to_string());
            }
            (Dialect::Postgres, None) => {
                s.set("Server", host);
                s.set("Port", "5432");
            }
            (_, None) => s.set("Server", host),
        }
        if let Some(database) = &self.database {
            s.set("Database", database);
        }
        if let Some(user) = &self.user {
            s.set("Uid", user);
        }
        if let Some(password) = &self.password {
            s.set("Pwd", password);
        }
        for (key, value) in &self.options {
            s.set(key, value);
        }
        s
    }
}

fn split_port(host_port: &str) -> Result<(&str, Option<u16>), Error> {
    let (host, port) = match host_port.strip_prefix('[') {
        Some(v6) => {
            let (host, rest) = v6
                .split_once(']')
                .ok_or_else(|| malformed("`[` has no `]`"))?;
            (host, rest.strip_prefix(':'))
        }
        None => match host_port.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (host_port, None),
        },
    };
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(
            port.parse()
                .map_err(|_| malformed("its port is not a number from 0 to 65535"))?,
        ),
    };
    Ok((host, port))
}

fn decode(text: &str) -> Result<String, Error> {
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| malformed("a percent-encoded part is not UTF-8"))
}

fn malformed(why: &str) -> Error {
    Error::new(
        ErrorKind::Connect,
        format!(
            "malformed database URL: {why}\nWrite it as `odbc+postgresql://user:password@host:port/database`; \
             percent-encode `@ : / ? #` in a user or password."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::odbc::quirks::known;

    fn rendered(url: &str, driver: &str) -> String {
        let url = DatabaseUrl::parse(url).unwrap();
        url.connection_string(driver, known(driver).unwrap())
            .to_driver()
    }

    #[test]
    fn a_postgresql_url_becomes_a_connection_string() {
        assert_eq!(
            rendered(
                "postgresql://ann:p%40s%3Bs@db.example:6432/sales?sslmode=require",
                "psqlodbcw.so"
            ),
            "Driver=psqlodbcw.so;Server=db.example;Port=6432;Database=sales;Uid=ann;Pwd={p@s;s};sslmode=require"
        );
    }

    #[test]
    fn sql_server_ports_go_as_each_driver_wants_them() {
        assert_eq!(
            rendered("mssql://h:1444/d", "libmsodbcsql.so"),
            "Driver=libmsodbcsql.so;Server=h,1444;Database=d"
        );
        assert_eq!(
            rendered("mssql://h:1444/d", "libtdsodbc.so"),
            "Driver=libtdsodbc.so;Server=h;Port=1444;Database=d"
        );
        assert_eq!(
            rendered("mysql://[::1]:3307/d", "libmaodbc.so"),
            "Driver=libmaodbc.so;Server=::1;Port=3307;Database=d"
        );
    }

    #[test]
    fn a_malformed_url_is_refused_without_showing_it() {
        let error = DatabaseUrl::parse("postgresql://u:hunter2@h:no/d")
            .err()
            .unwrap();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(!error.message.contains("hunter2"));
    }

    #[test]
    fn an_option_whose_name_is_no_keyword_is_refused() {
        for option in ["a%3Db=c", "a;Uid=x", "%7Ba=b", "%00=1", "=x", "%20=x"] {
            let error = DatabaseUrl::parse(&format!("mysql://h/d?{option}"));
            let message = error.err().unwrap().message;
            assert!(message.contains("is no keyword"), "{option}: {message}");
        }
    }

    #[test]
    fn only_urls_have_a_scheme() {
        assert_eq!(scheme("postgresql://h/d"), Some("postgresql"));
        assert_eq!(scheme("odbc+postgresql://h/d"), Some("postgresql"));
        assert_eq!(scheme("Driver=x;Url=http://y"), None);
        assert_eq!(scheme("DSN=x"), None);
    }
}
