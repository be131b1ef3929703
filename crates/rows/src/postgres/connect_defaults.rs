//! The defaults of a connection string: the service file, `PG*` environment variables, and the
//! password file `~/.pgpass`.
//!
//! Source: PostgreSQL's documentation, "Environment Variables", "The Password File", "The
//! Connection Service File".

use std::path::{Path, PathBuf};

use super::target::{Keywords, check};
use crate::error::{Error, ErrorKind};

/// Environment variables, each with the keyword of a connection string that it sets.
const VARIABLES: &[(&str, &str)] = &[
    ("PGAPPNAME", "application_name"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGCONNECT_TIMEOUT", "connect_timeout"),
    ("PGDATABASE", "dbname"),
    ("PGGSSENCMODE", "gssencmode"),
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGLOADBALANCEHOSTS", "load_balance_hosts"),
    ("PGOPTIONS", "options"),
    ("PGPASSFILE", "passfile"),
    ("PGPASSWORD", "password"),
    ("PGPORT", "port"),
    ("PGREQUIREAUTH", "require_auth"),
    ("PGREQUIREPEER", "requirepeer"),
    ("PGSERVICE", "service"),
    ("PGSERVICEFILE", "servicefile"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLCERTMODE", "sslcertmode"),
    ("PGSSLCRL", "sslcrl"),
    ("PGSSLCRLDIR", "sslcrldir"),
    ("PGSSLKEY", "sslkey"),
    ("PGSSLMAXPROTOCOLVERSION", "ssl_max_protocol_version"),
    ("PGSSLMINPROTOCOLVERSION", "ssl_min_protocol_version"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLNEGOTIATION", "sslnegotiation"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLSNI", "sslsni"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
    ("PGUSER", "user"),
];

/// The environment variables, the user and the home directory from which defaults are read. Tests
/// implement this trait with their own values.
pub(super) trait Environment {
    /// Returns the value of an environment variable; `None` if it is empty or not UTF-8.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the name of the system user; `None` if it is unknown.
    fn user(&self) -> Option<String> {
        self.variable("USER")
    }

    /// Returns the home directory of the system user; `None` if it is unknown.
    fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }
}

/// The environment of this process: its variables, its user and the user's home directory.
pub(super) struct OfProcess;

impl Environment for OfProcess {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    /// Returns the name that the system has for the process's user id, as libpq does. If the system
    /// has no name for the id, returns the variable `USER`.
    fn user(&self) -> Option<String> {
        use std::os::unix::fs::MetadataExt;

        let uid = std::fs::metadata("/proc/self").ok().map(|m| m.uid());
        uid.and_then(user_name).or_else(|| self.variable("USER"))
    }
}

/// Returns the name of the user with the id `uid`, from `/etc/passwd`; `None` if it is unknown.
pub(super) fn user_name(uid: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let uid = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(uid.as_str())).then(|| name.to_owned())
    })
}

/// Adds defaults for the keywords that the connection string does not set: from the service file
/// first, then from environment variables.
///
/// # Errors
/// [`ErrorKind::Connect`] if a service is not found, or a service file is malformed.
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

/// Returns the keywords of the section `[service]` in `text`, the contents of the service file
/// `path`. Returns `None` if the file has no such section.
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

/// The host, port, database and user of a connection, which select a line of the password file.
#[derive(Clone, Copy, Debug)]
pub(super) struct PasswordKey<'a> {
    /// The host name, or the directory of the unix socket. If the directory is the default one, this
    /// field is `localhost`.
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// The text of a password file. It does not implement `Debug`, because it contains passwords.
#[derive(Default)]
pub(super) struct PasswordFile {
    text: String,
    /// The reason why the file was ignored, for an error message; otherwise empty.
    pub(super) hint: String,
}

impl PasswordFile {
    /// Reads the file that the keyword `passfile` names, otherwise `~/.pgpass`. As in libpq, a file
    /// that other users can access is ignored; the field `hint` of the result then contains the
    /// reason.
    pub(super) fn read(keywords: &Keywords, environment: &dyn Environment) -> PasswordFile {
        use std::os::unix::fs::PermissionsExt;

        let named = keywords.get("passfile").filter(|path| !path.is_empty());
        let in_home = || Some(environment.home()?.join(".pgpass"));
        let mut file = PasswordFile::default();
        let Some(path) = named.map(PathBuf::from).or_else(in_home) else {
            return file;
        };
        let Ok(metadata) = std::fs::metadata(&path) else {
            return file;
        };
        if !metadata.is_file() {
            file.hint = format!("\n`{}` is left out: it is not a file.", path.display());
        } else if metadata.permissions().mode() & 0o077 != 0 {
            let remedy = "others have access to it; `chmod 600` makes it usable.";
            file.hint = format!("\n`{}` is left out: {remedy}", path.display());
        } else if let Ok(bytes) = std::fs::read(&path) {
            file.text = String::from_utf8_lossy(&bytes).into_owned();
        }
        file
    }

    /// Returns the password of the first line that matches `key`; `None` if no line matches.
    pub(super) fn password(&self, key: &PasswordKey<'_>) -> Option<String> {
        let mut lines = self.text.lines();
        lines.find_map(|line| password_of_line(line, key))
    }
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

/// Splits a line of the password file at its first colon. Returns the text before the colon, with
/// `\:` and `\\` unescaped, and the text after it. The second value is `None` if there is no colon.
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

    /// A directory that is removed at the end of the test.
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
            let file = PasswordFile::read(&keywords, &environment(&[]));
            assert_eq!(file.hint.contains("chmod 600"), file.text.is_empty());
            file.password(&key)
        };
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(of("h", "me"), None, "others can read it");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(of("h", "me").as_deref(), Some("a:b\\c"));
        assert_eq!(of("i", "me").as_deref(), Some("any"));
    }
}
