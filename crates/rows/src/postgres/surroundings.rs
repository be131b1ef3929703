//! Defaults of a connection string: the service file, `PG*` variables, `~/.pgpass`.
//!
//! Source: PostgreSQL's documentation, "Environment Variables", "The Password File", "The Connection Service File".

use std::path::{Path, PathBuf};

use super::target::{Keywords, check};
use crate::error::{Error, ErrorKind};

/// Variables and the keywords that they set.
const VARIABLES: &[(&str, &str)] = &[
    ("PGAPPNAME", "application_name"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGCONNECT_TIMEOUT", "connect_timeout"),
    ("PGDATABASE", "dbname"),
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGLOADBALANCEHOSTS", "load_balance_hosts"),
    ("PGOPTIONS", "options"),
    ("PGPASSFILE", "passfile"),
    ("PGPASSWORD", "password"),
    ("PGPORT", "port"),
    ("PGSERVICE", "service"),
    ("PGSERVICEFILE", "servicefile"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLNEGOTIATION", "sslnegotiation"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
    ("PGUSER", "user"),
];

/// The process's environment, or that of a test.
pub(super) trait Environment {
    /// The value of a variable, unless it is empty or not UTF-8.
    fn variable(&self, name: &str) -> Option<String>;

    /// The user's directory.
    fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }
}

/// The environment of this process.
pub(super) struct OfProcess;

impl Environment for OfProcess {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }
}

/// Adds what `keywords` leave open. Where a keyword is given in several places, the connection
/// string has precedence over the service, and the service over the environment.
///
/// # Errors
/// [`ErrorKind::Connect`] for a service that is not found, or a service file that is malformed.
pub(super) fn complete(
    keywords: &mut Keywords,
    environment: &dyn Environment,
) -> Result<(), Error> {
    let of_environment = |keyword: &str| {
        let variable = VARIABLES.iter().find(|(_, of)| *of == keyword);
        variable.and_then(|(name, _)| environment.variable(name))
    };
    let named =
        |keywords: &Keywords, key: &str| keywords.get(key).cloned().or_else(|| of_environment(key));
    if let Some(service) = named(keywords, "service") {
        let file = named(keywords, "servicefile").map(PathBuf::from);
        for (key, value) in read_service(&service, file, environment)? {
            keywords.entry(key).or_insert(value);
        }
    }
    for (name, keyword) in VARIABLES {
        if let Some(value) = environment.variable(name) {
            keywords.entry((*keyword).to_owned()).or_insert(value);
        }
    }
    Ok(())
}

fn read_service(
    service: &str,
    file: Option<PathBuf>,
    environment: &dyn Environment,
) -> Result<Keywords, Error> {
    let of_user = file.or_else(|| Some(environment.home()?.join(".pg_service.conf")));
    let of_system = environment
        .variable("PGSYSCONFDIR")
        .map_or_else(|| PathBuf::from("/etc/postgresql-common"), PathBuf::from)
        .join("pg_service.conf");
    for path in of_user.into_iter().chain([of_system]) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if let Some(found) = service_of(&text, service, &path)? {
            return Ok(found);
        }
    }
    let message = format!("the service `{service}` is in no service file that can be read");
    Err(Error::new(ErrorKind::Connect, message))
}

/// The keywords of a service in the text of a service file.
fn service_of(text: &str, service: &str, path: &Path) -> Result<Option<Keywords>, Error> {
    let mut found: Option<Keywords> = None;
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let malformed = |what: &str| {
            let place = format!("line {number} of the service file `{}`", path.display());
            Error::new(ErrorKind::Connect, format!("{place}: {what}"))
        };
        if let Some(name) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            is_inside = name.strip_suffix(']') == Some(service);
            if is_inside {
                found = Some(Keywords::new());
            }
        } else if let Some(keywords) = found.as_mut().filter(|_| is_inside) {
            let (key, value) = line
                .split_once('=')
                .ok_or_else(|| malformed("it has no `=`"))?;
            if matches!(key.trim(), "service" | "servicefile") {
                return Err(malformed("a service cannot name another one"));
            }
            check(key.trim())?;
            keywords.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    Ok(found)
}

/// The fields by which a line of the password file is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct PasswordKey<'a> {
    /// A host's name, or `localhost` for the directory of a unix socket that is the default one.
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// The password of the first line that fits, in the file of the keyword `passfile` or in `~/.pgpass`.
///
/// As libpq does, a file that others can read is left out.
pub(super) fn password(
    keywords: &Keywords,
    environment: &dyn Environment,
    key: &PasswordKey<'_>,
) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;

    let path = match keywords.get("passfile").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => environment.home()?.join(".pgpass"),
    };
    let metadata = std::fs::metadata(&path).ok()?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o077 != 0 {
        return None;
    }
    let text = std::fs::read_to_string(&path).ok()?;
    text.lines().find_map(|line| password_of_line(line, key))
}

fn password_of_line(line: &str, key: &PasswordKey<'_>) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let port = key.port.to_string();
    let mut rest = line;
    for wanted in [key.host, &port, key.database, key.user] {
        let (field, after) = field(rest);
        if field != "*" && field != wanted {
            return None;
        }
        rest = after?;
    }
    Some(field(rest).0)
}

/// The text up to the next colon, with `\:` and `\\` as one character, and what follows the colon.
fn field(text: &str) -> (String, Option<&str>) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            ':' => return (value, Some(&text[at + 1..])),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, None)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// A directory that is removed at the end of its test.
    struct Directory(PathBuf);

    impl Directory {
        fn new() -> Directory {
            static N: AtomicU32 = AtomicU32::new(0);
            let name = format!("onecopy-{}-{}", std::process::id(), N.fetch_add(1, Relaxed));
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    pub(in super::super) struct OfTest(pub(in super::super) HashMap<String, String>);

    impl Environment for OfTest {
        fn variable(&self, name: &str) -> Option<String> {
            self.0.get(name).cloned()
        }
    }

    pub(in super::super) fn environment(pairs: &[(&str, &str)]) -> OfTest {
        OfTest(
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn variables_fill_what_the_string_and_the_service_leave_open() {
        let dir = Directory::new();
        let text = "# services\n[other]\nport=1\n[mine]\nhost=service-host\nuser = su \n\n[more]\nport=2\n";
        std::fs::write(dir.0.join(".pg_service.conf"), text).unwrap();
        let home = dir.0.to_str().unwrap();
        let env = environment(&[
            ("HOME", home),
            ("PGHOST", "env"),
            ("PGPORT", "7"),
            ("PGSERVICE", "mine"),
        ]);
        let mut keywords = Keywords::from([("user".to_owned(), "me".to_owned())]);
        complete(&mut keywords, &env).unwrap();
        let of = |key: &str| keywords.get(key).map(String::as_str);
        assert_eq!(of("user"), Some("me"));
        assert_eq!(of("host"), Some("service-host"));
        assert_eq!(of("port"), Some("7"));
    }

    #[test]
    fn a_service_that_is_missing_or_malformed_is_an_error() {
        let env = environment(&[("PGSERVICE", "none"), ("PGSYSCONFDIR", "/nonexistent")]);
        assert!(complete(&mut Keywords::new(), &env).is_err());
        for text in ["[s]\nhost", "[s]\nservice=t", "[s]\ncolour=red"] {
            assert!(service_of(text, "s", Path::new("f")).is_err(), "{text}");
        }
        assert!(
            service_of("[t]\nhost\n", "s", Path::new("f"))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn the_password_is_that_of_the_first_line_that_fits() {
        let dir = Directory::new();
        let path = dir.0.join("pass");
        let text = "# c\nh:5432:other:me:no\nh:5432:d:me:a\\:b\\\\c\n*:*:*:*:any\n";
        std::fs::write(&path, text).unwrap();
        let keywords = Keywords::from([("passfile".to_owned(), path.to_str().unwrap().to_owned())]);
        let of = |host, user| {
            let key = PasswordKey {
                host,
                port: 5432,
                database: "d",
                user,
            };
            password(&keywords, &environment(&[]), &key)
        };
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(of("h", "me"), None, "others can read it");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(of("h", "me").as_deref(), Some("a:b\\c"));
        assert_eq!(of("i", "me").as_deref(), Some("any"));
    }
}
