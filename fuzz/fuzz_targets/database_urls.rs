//! Database URLs, and the part after `sqlite:`.
//!
//! A URL that is composed of parts has these parts after parsing. Any text is refused or becomes a
//! connection string that can be parsed. Neither errors nor shown texts contain the password.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::parts;
use onecopy_rows::odbc::fuzzing::{ConnectionString, database_url};
use onecopy_rows::sqlite::fuzzing::target;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

const DRIVERS: [&str; 4] = ["psqlodbcw.so", "libmaodbc.so", "libmsodbcsql.so", "libtdsodbc.so"];

struct Input<'a> {
    raw: &'a str,
    user: &'a str,
    password: &'a str,
    host: &'a str,
    port: Option<u16>,
    database: &'a str,
    option: (&'a str, &'a str),
    read_only: bool,
    create: bool,
}

fuzz_target!(|text: &str| {
    let [raw, user, password, host, database, key, value] = parts(text);
    let n = text.len();
    let driver = DRIVERS[n % DRIVERS.len()];
    let input = Input {
        raw,
        user,
        password,
        host,
        port: (n % 3 > 0).then_some((n * 4099) as u16),
        database,
        option: (key, value),
        read_only: n % 5 > 2,
        create: n % 7 > 3,
    };
    any_text(input.raw, driver);
    put_together(&input, driver);
    sqlite(&input);
});

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn any_text(text: &str, driver: &str) {
    let string = match database_url(text, driver) {
        Ok(string) => string,
        Err(error) => {
            // The message is one of a few fixed texts and contains no part of the URL.
            assert!(error.message.starts_with("malformed database URL: "));
            assert!(error.message.len() < 250);
            return;
        }
    };
    let again = ConnectionString::parse(&string.to_driver());
    for keyword in ["Driver", "Server", "Port", "Database", "Uid", "Pwd"] {
        assert_eq!(again.get(keyword), string.get(keyword), "{keyword}");
    }
    // Another part of the URL, such as the name of the database, may contain the same text.
    let is_elsewhere = |password: &str| {
        let others = ["Driver", "Server", "Port", "Database", "Uid"];
        others.iter().any(|keyword| string.get(keyword).is_some_and(|value| value.contains(password)))
    };
    let password = string.get("Pwd").filter(|p| !p.is_empty() && !p.contains('*') && !is_elsewhere(p));
    if let Some(password) = password {
        assert!(!string.redacted().contains(password));
    }
}

fn put_together(input: &Input<'_>, driver: &str) {
    let mut url = format!(
        "postgresql://{}:{}@{}",
        encode(input.user),
        encode(input.password),
        encode(input.host)
    );
    if let Some(port) = input.port {
        url.push_str(&format!(":{port}"));
    }
    // The prefix prevents that the option replaces a keyword of the URL's parts.
    let (key, value) = (format!("x{}", input.option.0), input.option.1);
    url.push_str(&format!("/{}?{}={}", encode(input.database), encode(&key), encode(value)));
    if key.trim() != key || key.contains([';', '=', '{', '}', '\0']) {
        assert!(database_url(&url, driver).is_err());
        return;
    }
    let string = database_url(&url, driver).expect("well-formed");
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let get = |keyword: &str| string.get(keyword).map(str::to_owned);
    assert_eq!(get("Driver").as_deref(), Some(driver));
    assert_eq!(get("Uid").as_deref(), Some(input.user));
    assert_eq!(get("Pwd"), some(input.password));
    assert_eq!(get("Database"), some(input.database));
    assert_eq!(get(&key).as_deref(), Some(value));
    let host = some(input.host).unwrap_or_else(|| "localhost".to_owned());
    match (driver, input.port) {
        ("libmsodbcsql.so", Some(port)) => assert_eq!(get("Server"), Some(format!("{host},{port}"))),
        (_, Some(port)) => {
            assert_eq!((get("Server"), get("Port")), (Some(host), Some(port.to_string())));
        }
        _ => assert_eq!(get("Server"), Some(host)),
    }
}

fn sqlite(input: &Input<'_>) {
    let (text, read_only, create) = (input.raw, input.read_only, input.create);
    if let Ok(seen) = target(text, read_only, create) {
        assert!(!(read_only && seen.writes), "{text:?} is opened for writing");
        assert!(seen.writes || !seen.creates);
        assert!(create || !seen.creates || text.contains("mode=rwc"));
        assert!(!seen.path.is_empty() && !seen.path.contains('\0'));
    }
    // A file name that is percent-encoded refers to that file.
    let name = input.host;
    if !name.is_empty() && !name.starts_with('/') && !name.contains('\0') && name != ":memory:" {
        let seen = target(&encode(name), read_only, create).expect("a file");
        assert_eq!((seen.path.as_str(), seen.writes), (name, !read_only));
    }
}
