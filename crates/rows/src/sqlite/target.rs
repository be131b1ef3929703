//! `SqliteTarget`: parses the text after `sqlite:` in a connection string. The documentation of
//! [`super`] lists the forms of this text.

use std::path::Path;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::error::{Error, ErrorKind};

/// The mode in which the file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The file is opened only for reading.
    ReadOnly,
    /// The file is opened for reading and writing; it must exist.
    ReadWrite,
    /// The file is opened for reading and writing; a missing file is created.
    Create,
    /// The database is in memory, without a file.
    Memory,
}

/// A parsed target: the database to open, and how to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SqliteTarget {
    /// The path of the file; `:memory:` for a database in memory.
    pub(super) path: String,
    pub(super) mode: Mode,
    pub(super) immutable: bool,
    /// The time to wait for a lock of another connection; by default 5 s, as in Python's `sqlite3`.
    pub(super) busy_timeout: Duration,
}

/// The path that names a database in memory.
pub(super) const MEMORY: &str = ":memory:";

impl SqliteTarget {
    /// Parses the text after `sqlite:` in a connection string.
    pub(super) fn parse(text: &str, read_only: bool, create: bool) -> Result<SqliteTarget, Error> {
        let (path, options) = text.split_once('?').unwrap_or((text, ""));
        let path = percent_decode_str(path).decode_utf8().map_err(|_| {
            refuse(format!(
                "the path in `sqlite:{text}` is not UTF-8 when percent-decoded"
            ))
        })?;
        if path.contains('\0') {
            return Err(refuse(format!(
                "the path in `sqlite:{text}` contains a NUL"
            )));
        }
        let mut target = SqliteTarget {
            path: resolve(&path, &|p| Path::new(p).exists())?,
            mode: if create {
                Mode::Create
            } else {
                Mode::ReadWrite
            },
            immutable: false,
            busy_timeout: Duration::from_secs(5),
        };
        for option in options.split('&').filter(|o| !o.is_empty()) {
            target.set(option)?;
        }
        if target.path == MEMORY {
            target.mode = Mode::Memory;
        } else if target.path.is_empty() {
            if target.mode != Mode::Memory {
                return Err(refuse(
                    "`sqlite:` names no file\n\
                     write `sqlite:path`, or `sqlite::memory:` for a database in memory",
                ));
            }
        } else if target.mode != Mode::Memory && (read_only || target.immutable) {
            target.mode = Mode::ReadOnly;
        }
        if target.mode == Mode::Memory {
            target.path = MEMORY.to_owned();
        }
        Ok(target)
    }

    fn set(&mut self, option: &str) -> Result<(), Error> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, value) {
            ("mode", "ro") => self.mode = Mode::ReadOnly,
            ("mode", "rw") => self.mode = Mode::ReadWrite,
            ("mode", "rwc") => self.mode = Mode::Create,
            ("mode", "memory") => self.mode = Mode::Memory,
            ("immutable", "1" | "true" | "on") => self.immutable = true,
            ("immutable", "0" | "false" | "off") => self.immutable = false,
            ("busy_timeout_ms", ms) => {
                let ms = ms.parse::<u32>().map_err(|_| {
                    refuse(format!(
                        "`busy_timeout_ms={ms}` is not a whole number of milliseconds"
                    ))
                })?;
                self.busy_timeout = Duration::from_millis(ms.into());
            }
            ("mode" | "immutable", _) => {
                return Err(refuse(format!(
                    "`{option}` has no such value\n\
                     `mode` is ro, rw, rwc or memory; `immutable` is 0 or 1"
                )));
            }
            _ => {
                return Err(refuse(format!(
                    "`{name}` is not an option of a `sqlite:` database\n\
                     the options are mode, immutable and busy_timeout_ms; \
                     a `?` in a file name is written %3F"
                )));
            }
        }
        Ok(())
    }
}

/// Converts the path in a connection string to the path of the database file. The documentation of
/// [`super`] lists the permitted forms. `exists` returns `true` if its argument is the path of an
/// existing file.
fn resolve(path: &str, exists: &dyn Fn(&str) -> bool) -> Result<String, Error> {
    let slashes = path.bytes().take_while(|b| *b == b'/').count();
    let rest = &path[slashes..];
    if rest.is_empty() && slashes == 2 || rest == MEMORY {
        return Ok(MEMORY.to_owned());
    }
    Ok(match slashes {
        0 | 2 => rest.to_owned(),
        3 => {
            let absolute = format!("/{rest}");
            match (exists(&absolute), exists(rest)) {
                (true, false) => absolute,
                (false, true) => rest.to_owned(),
                (found, _) => {
                    return Err(refuse(format!(
                        "`sqlite:///{rest}` may mean `{absolute}` or `{rest}`, and {} \
                         exist\nwrite `sqlite:{absolute}` or `sqlite:{rest}`",
                        if found { "both" } else { "neither does" }
                    )));
                }
            }
        }
        _ => format!("/{rest}"),
    })
}

fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Connect, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> String {
        SqliteTarget::parse(text, false, true).unwrap().path
    }

    #[test]
    fn common_forms_name_the_same_file() {
        assert_eq!(path("cities.db"), "cities.db");
        assert_eq!(path("//data/cities.db"), "data/cities.db");
        assert_eq!(path("/var/lib/c.db"), "/var/lib/c.db");
        assert_eq!(path("////var/lib/c.db"), "/var/lib/c.db");
        assert_eq!(path("a%20b%3Fc.db?mode=rw"), "a b?c.db");
        for memory in [
            ":memory:",
            "//",
            "//:memory:",
            "///:memory:",
            "x?mode=memory",
            "?mode=memory",
        ] {
            let target = SqliteTarget::parse(memory, true, true).unwrap();
            assert_eq!(
                (target.path.as_str(), target.mode),
                (MEMORY, Mode::Memory),
                "{memory}"
            );
        }
    }

    #[test]
    fn three_slashes_mean_the_file_that_exists() {
        let only = |name: &'static str| move |p: &str| p == name;
        assert_eq!(resolve("///a.db", &only("a.db")).unwrap(), "a.db");
        assert_eq!(resolve("///a.db", &only("/a.db")).unwrap(), "/a.db");
        let neither = resolve("///a.db", &|_| false).unwrap_err();
        assert_eq!(neither.kind, ErrorKind::Connect);
        assert!(neither.message.contains("sqlite:/a.db"), "{neither}");
        assert!(
            resolve("///a.db", &|_| true)
                .unwrap_err()
                .message
                .contains("both")
        );
    }

    #[test]
    fn options_are_read_and_unknown_ones_named() {
        let target = SqliteTarget::parse("a.db?mode=rw&busy_timeout_ms=20", false, true).unwrap();
        assert_eq!(target.mode, Mode::ReadWrite);
        assert_eq!(target.busy_timeout, Duration::from_millis(20));
        assert_eq!(
            SqliteTarget::parse("a.db?mode=rwc", true, true)
                .unwrap()
                .mode,
            Mode::ReadOnly
        );
        assert_eq!(
            SqliteTarget::parse("a.db?immutable=1", false, true)
                .unwrap()
                .mode,
            Mode::ReadOnly
        );
        assert_eq!(
            SqliteTarget::parse("a.db", false, false).unwrap().mode,
            Mode::ReadWrite
        );
        assert_eq!(
            SqliteTarget::parse("a.db?mode=rwc", false, false)
                .unwrap()
                .mode,
            Mode::Create
        );
        for (text, named) in [
            ("a.db?mode=x", "mode=x"),
            ("a.db?cache=shared", "cache"),
            ("a.db?busy_timeout_ms=-1", "busy_timeout_ms=-1"),
            ("", "names no file"),
            ("a%00b", "NUL"),
            ("a%ff", "UTF-8"),
        ] {
            let error = SqliteTarget::parse(text, false, true).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Connect);
            assert!(error.message.contains(named), "{error}");
        }
    }
}
