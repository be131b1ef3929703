//! The part of `onecopy doctor` that examines a database: its connection, driver and settings. It
//! also tests whether values arrive unchanged.

use std::time::Instant;

use indicatif::HumanCount;
use onecopy_rows::connect::Connection;
use onecopy_rows::odbc::{self, Portrait, Width};
use onecopy_rows::{ConnectOptions, Format};
use onecopy_rows::{Error, Value};
use onecopy_text::{Chunk, Ledger};
use onecopy_wire::{ChunkSource, Filled};

use super::machine::is_bad_version;
use super::report::{Finding, Level, Report, counted};
use super::test_queries::{self, LONG_CHAR, LONG_CHARS, MANY_CHARS, MANY_ROWS, SCRIPTS};
use crate::failure::with_state;

const DATABASE: &str = "Database";

/// Connects to the database and runs the test queries. Returns `true` if the connection succeeded.
pub(super) fn look(report: &mut Report, target: &str) -> bool {
    let begun = Instant::now();
    let connection = match Connection::open(target, &options()) {
        Ok(connection) => connection,
        Err(error) => {
            let text = with_state(&error);
            let (what, rest) = text.split_once('\n').unwrap_or((&text, ""));
            report.add(Finding::new(DATABASE, Level::Broken, "no connection", what).remedy(rest));
            return false;
        }
    };
    connected(report, &connection, begun);
    text(report, &connection, target);
    long_values(report, &connection);
    exact_values(report, &connection);
    streaming(report, &connection);
    known(report, &connection);
    true
}

/// Returns connect options for a connection that is read-only. Connecting with these options does
/// not create a missing database file.
fn options() -> ConnectOptions {
    ConnectOptions {
        read_only: true,
        create: false,
        ..ConnectOptions::default()
    }
}

/// Returns the names and versions of the driver manager, the driver and the server of an ODBC
/// connection; `None` if the connection does not use ODBC.
fn portrait(connection: &Connection) -> Option<Portrait> {
    match connection {
        Connection::Odbc(c) => Some(c.portrait()),
        _ => None,
    }
}

fn connected(report: &mut Report, connection: &Connection, begun: Instant) {
    let ms = begun.elapsed().as_millis();
    let Some(portrait) = portrait(connection) else {
        report.add(Finding::new(
            DATABASE,
            Level::Ok,
            "connected",
            connection.describe(),
        ));
        return;
    };
    // The driver does not list a keyword whose value is empty.
    let keywords: Vec<String> = portrait
        .keywords
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    report.add(
        Finding::new(
            DATABASE,
            Level::Ok,
            "connected",
            format!("{} in {ms} ms", portrait.database),
        )
        .fact(
            "driver",
            Some(format!("{} ({})", portrait.driver, portrait.known_as)),
        )
        .fact("added", Some(keywords.join(";")).filter(|k| !k.is_empty())),
    );
}

/// Tests the transfer of text to and from the database. With an ODBC driver, both the functions for
/// UTF-8 and the functions for UTF-16 are tested. The connection uses only one of the two sets; the
/// test of the other set shows why it is not used.
fn text(report: &mut Report, connection: &Connection, target: &str) {
    let Some(portrait) = portrait(connection) else {
        let (wrong, refused) = scripts(connection);
        report.add(in_use("text", &wrong, &refused));
        return;
    };
    let (name, other, other_name) = match portrait.width {
        Width::Narrow => (
            "text as UTF-8, in use",
            Width::Wide,
            "text as UTF-16, not used",
        ),
        Width::Wide => (
            "text as UTF-16, in use",
            Width::Narrow,
            "text as UTF-8, not used",
        ),
    };
    let (wrong, refused) = scripts(connection);
    report.add(in_use(name, &wrong, &refused));
    // An error means that the driver does not have the ODBC functions of the other set (UTF-8 or
    // UTF-16), or does not implement them.
    match odbc::Connection::open_in(target, &options(), other).map(Connection::Odbc) {
        Ok(connection) => {
            let (wrong, refused) = scripts(&connection);
            report.add(not_in_use(other_name, &wrong, &refused));
        }
        Err(error) => report.add(Finding::new(
            DATABASE,
            Level::Note,
            other_name,
            format!("the driver refuses it: {}", first_line(&error)),
        )),
    }
}

/// Returns two lists of the scripts (such as Greek) whose test text fails. The first list contains
/// the scripts whose text arrives changed, each with the received text. The second list contains
/// the scripts whose text the database rejects, each with the error message.
fn scripts(connection: &Connection) -> (Vec<String>, Vec<String>) {
    let dialect = connection.dialect();
    let (mut wrong, mut refused) = (Vec::new(), Vec::new());
    for (script, sample) in SCRIPTS {
        let literal = test_queries::quoted(dialect, sample);
        let ways = [
            (
                "from the database",
                format!("SELECT {}", test_queries::made(dialect, sample)),
                None,
                *sample,
            ),
            (
                "in SQL",
                test_queries::arrived(dialect, sample, &literal),
                None,
                "1",
            ),
            (
                "as a parameter",
                test_queries::arrived(dialect, sample, "?"),
                Some(Value::Text((*sample).into())),
                "1",
            ),
        ];
        for (way, sql, parameter, expected) in ways {
            match one_value(connection, &sql, parameter) {
                Ok(value) if value == expected => {}
                Ok(_) => wrong.push(format!("{script} {way}")),
                Err(error) => refused.push(format!("{script} {way} ({})", first_line(&error))),
            }
        }
    }
    (wrong, refused)
}

fn in_use(name: &str, wrong: &[String], refused: &[String]) -> Finding {
    let remedy = "choose a driver that carries Unicode, and a database whose encoding is UTF-8";
    if !wrong.is_empty() {
        let says = format!("not whole: {}", some_of(wrong));
        return Finding::new(DATABASE, Level::Broken, name, says).remedy(remedy);
    }
    if !refused.is_empty() {
        let says = format!("the database refuses some: {}", some_of(refused));
        return Finding::new(DATABASE, Level::Warning, name, says).remedy(remedy);
    }
    Finding::new(DATABASE, Level::Ok, name, whole())
}

fn not_in_use(name: &str, wrong: &[String], refused: &[String]) -> Finding {
    let says = match (wrong.is_empty(), refused.is_empty()) {
        (false, _) => format!("would lose text: {}", some_of(wrong)),
        (true, false) => format!("the driver refuses it: {}", some_of(&refused[..1])),
        (true, true) => format!("{}, at a higher price", whole()),
    };
    Finding::new(DATABASE, Level::Note, name, says)
}

fn whole() -> String {
    format!(
        "{} there and back, in SQL and as parameters",
        counted(SCRIPTS.len(), "script")
    )
}

fn some_of(all: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut out = all
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if all.len() > SHOWN {
        out.push_str(&format!(", and {} more", all.len() - SHOWN));
    }
    out
}

/// Tests that a value longer than any buffer of the driver arrives unchanged, both from the
/// database and as a parameter of a statement.
fn long_values(report: &mut Report, connection: &Connection) {
    let dialect = connection.dialect();
    let text = LONG_CHAR.to_string().repeat(LONG_CHARS);
    let (Some(sql), Some(length)) = (
        test_queries::long(dialect),
        test_queries::length_of_parameter(dialect),
    ) else {
        return;
    };
    let subject = format!("text of {} characters", HumanCount(LONG_CHARS as u64));
    let level = |is_whole: bool| if is_whole { Level::Ok } else { Level::Broken };
    report.add(match one_value(connection, &sql, None) {
        Ok(value) => {
            let is_whole = value == text;
            let says = match is_whole {
                true => "read whole".to_owned(),
                false => format!("{} arrive", counted(value.chars().count(), "character")),
            };
            Finding::new(DATABASE, level(is_whole), &subject, says)
        }
        Err(error) => failed_query(&subject, &error),
    });
    let subject = format!("{subject} as a parameter");
    report.add(
        match one_value(connection, length, Some(Value::Text(text))) {
            Ok(value) => {
                let is_whole = value == LONG_CHARS.to_string();
                let says = match is_whole {
                    true => "sent whole".to_owned(),
                    false => format!("{value} characters arrive"),
                };
                Finding::new(DATABASE, level(is_whole), &subject, says)
            }
            Err(error) => failed_query(&subject, &error),
        },
    );
}

fn exact_values(report: &mut Report, connection: &Connection) {
    for exact in test_queries::exact_values(connection.dialect()) {
        report.add(match one_value(connection, exact.sql, None) {
            Ok(value) if value == exact.field => {
                Finding::new(DATABASE, Level::Ok, exact.name, exact.field)
            }
            Ok(value) => Finding::new(
                DATABASE,
                Level::Broken,
                exact.name,
                format!("`{value}` arrives for `{}`", exact.field),
            )
            .remedy("the driver changes it: select such a column as text, or use another driver"),
            Err(error) => failed_query(exact.name, &error),
        });
    }
}

fn failed_query(subject: &str, error: &Error) -> Finding {
    let says = format!("the query failed: {}", first_line(error));
    Finding::new(DATABASE, Level::Warning, subject, says)
}

/// Tests whether the driver streams rows or reads all of them into memory first. The test measures
/// how much the memory of the process grows until the first rows of a large result are returned.
fn streaming(report: &mut Report, connection: &Connection) {
    let payload = (MANY_ROWS * MANY_CHARS) as u64;
    let (Some(sql), Some(before)) = (test_queries::many(connection.dialect()), resident_bytes())
    else {
        return;
    };
    let subject = format!("a result of {} MB", payload / 1_000_000);
    let first = connection
        .execute(&sql, &[])
        .and_then(|statement| statement.into_chunks(Format::Csv, &Ledger::off()))
        .map(|mut rows| {
            let mut chunk = Chunk::with_capacity(16 << 10);
            let filled = rows.fill(&mut chunk).map(drop).map_err(|e| e.to_string());
            (filled, resident_bytes().unwrap_or(before))
        });
    report.add(match first {
        Err(error) => failed_query(&subject, &error),
        Ok((Err(words), _)) => Finding::new(
            DATABASE,
            Level::Warning,
            subject,
            format!("the query failed: {words}"),
        ),
        Ok((Ok(()), after)) => {
            let grown = after.saturating_sub(before);
            match grown < payload / 2 {
                true => Finding::new(
                    DATABASE,
                    Level::Ok,
                    subject,
                    format!(
                        "streamed: {:.1} MB more memory at its first rows",
                        grown as f64 / 1e6
                    ),
                ),
                false => Finding::new(
                    DATABASE,
                    Level::Note,
                    subject,
                    format!(
                        "held in memory whole before its first row: {:.1} MB more",
                        grown as f64 / 1e6
                    ),
                )
                .remedy("read large tables in parts, by a key: `where id > ? order by id limit …`"),
            }
        }
    });
}

/// Returns the resident memory of this process in bytes; `None` if the system does not report it
/// (Linux: proc_pid_status(5)).
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Reports the known faults of the connection's driver in its installed version, and the warnings
/// in `Connection::notices`.
fn known(report: &mut Report, connection: &Connection) {
    let faults = portrait(connection).map(|p| p.faults).unwrap_or_default();
    for fault in faults {
        let level = match is_bad_version(&fault) {
            true => Level::Warning,
            false => Level::Note,
        };
        let subject = match fault.versions.is_empty() {
            true => "this driver".to_owned(),
            false => format!("version {} of this driver", fault.versions),
        };
        report.add(Finding::new(DATABASE, level, subject, fault.what).remedy(fault.remedy));
    }
    for notice in connection.notices() {
        let (what, remedy) = notice.split_once('\n').unwrap_or((&notice, ""));
        report.add(Finding::new(DATABASE, Level::Note, what, "").remedy(remedy));
    }
}

/// Runs a query whose result has one row and one column; returns the value as CSV text.
fn one_value(
    connection: &Connection,
    sql: &str,
    parameter: Option<Value>,
) -> Result<String, Error> {
    let parameters: Vec<Value> = parameter.into_iter().collect();
    let statement = connection.execute(sql, &parameters)?;
    let mut rows = statement.into_chunks(Format::Csv, &Ledger::off())?;
    let mut all = Vec::new();
    let mut chunk = Chunk::with_capacity(64 << 10);
    loop {
        chunk.clear();
        let filled = rows.fill(&mut chunk).map_err(|e| {
            let cause = e.source.downcast_ref::<Error>().cloned();
            cause.unwrap_or_else(|| Error::new(onecopy_rows::ErrorKind::Data, e.to_string()))
        })?;
        all.extend_from_slice(&chunk);
        if filled == Filled::Done {
            break;
        }
    }
    // The statement has only read, and its transaction is rolled back.
    drop(rows);
    connection.rollback()?;
    let text = String::from_utf8_lossy(&all);
    // The output consists of two lines: the column name, and the value.
    let field = text.split_once('\n').map_or("", |(_, rows)| rows);
    let field = field.strip_suffix('\n').unwrap_or(field);
    let field = field.strip_suffix('\r').unwrap_or(field);
    Ok(
        match field.strip_prefix('"').and_then(|f| f.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => field.to_owned(),
        },
    )
}

fn first_line(error: &Error) -> String {
    let text = with_state(error);
    text.lines().next().unwrap_or_default().to_owned()
}
