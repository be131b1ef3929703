//! Probes a driver at its first connect. A round trip determines the text width (UTF-8 or UTF-16)
//! for this driver and locale. For SQL Server, a second probe checks that each result belongs to
//! its statement.
//!
//! In the first probe, the server creates a non-ASCII text from code points, compares it with a
//! literal of the same text in the SQL, and returns it. The text that was sent and the text that
//! was received are thus tested separately. Otherwise a wrong conversion could be hidden by a
//! second one that reverses it.

use std::collections::HashMap;
use std::sync::Mutex;

use onecopy_wire::lock::lock;

use onecopy_text::{Policy, Units, naive};

use super::connection::Connection;
use super::quirks::Width;
use crate::cell::{Cell, LongKind};
use crate::database::DatabaseConnection;
use crate::error::{Error, ErrorKind};
use crate::source::{Block, Budget, Fetched, RowSink, Source};
use crate::sql::dialect::Dialect;

/// The sample text: characters of Latin-1, of CJK and outside the BMP, with 2, 3 and 4 bytes in
/// UTF-8.
const SAMPLE: &str = "é日😀";

/// The results of the probes of the drivers' preferred text width, keyed by driver, version and
/// locale. A result is `true` if text arrives unchanged in the preferred width.
static FOUND: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);

/// Returns a query that contains the sample text as a literal. The result has two columns: the
/// sample text as the server creates it from code points, and 1 if the literal equals that text.
fn statement(dialect: Dialect) -> String {
    let made = match dialect {
        Dialect::Postgres => "chr(233) || chr(26085) || chr(128512)",
        Dialect::MySql => "CONVERT(X'C3A9E697A5F09F9880' USING utf8mb4)",
        Dialect::SqlServer => "NCHAR(233) + NCHAR(26085) + NCHAR(55357) + NCHAR(56832)",
        Dialect::Sqlite => "char(233, 26085, 128512)",
        Dialect::Generic => return format!("SELECT '{SAMPLE}', 1"),
    };
    let sent = match dialect {
        Dialect::SqlServer => format!("N'{SAMPLE}'"),
        // Without this collation, MariaDB may treat two different supplementary characters as
        // equal.
        Dialect::MySql => format!("BINARY CONVERT('{SAMPLE}' USING utf8mb4)"),
        _ => format!("'{SAMPLE}'"),
    };
    let made_to_compare = if dialect == Dialect::MySql {
        "X'C3A9E697A5F09F9880'"
    } else {
        made
    };
    format!("SELECT {made}, CASE WHEN {made_to_compare} = {sent} THEN 1 ELSE 0 END")
}

/// Probes the driver's preferred text width (UTF-8 or UTF-16). Returns the other width if text
/// arrives changed in the preferred width and the driver supports the other width. Returns `None`
/// if the current width is to be kept.
pub(crate) fn better_width(connection: &Connection) -> Option<Width> {
    let shared = &connection.shared;
    if !shared.quirks.other_width || shared.width != shared.quirks.width {
        return None;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|v| std::env::var(v).ok().filter(|l| !l.is_empty()))
        .unwrap_or_default();
    let key = format!(
        "{} {} {locale}",
        shared.facts.driver, shared.facts.driver_version
    );
    let known = lock(&FOUND).get_or_insert_default().get(&key).copied();
    let right = match known {
        Some(right) => right,
        None => {
            let right = check(connection)?;
            lock(&FOUND).get_or_insert_default().insert(key, right);
            right
        }
    };
    (!right).then(|| shared.width.other())
}

/// Returns `true` if [`SAMPLE`] arrives unchanged in both directions, to the server and from it;
/// `None` if the database cannot execute the statement.
fn check(connection: &Connection) -> Option<bool> {
    let row = first_row(connection, &statement(connection.shared.quirks.dialect)).ok()?;
    let [made, sent] = row.as_slice() else {
        return None;
    };
    // A value other than 0 and 1 gives no information about the width. A fake server of a test
    // returns such a value, or a server whose encoding does not have these characters.
    match sent.as_str() {
        "1" => Some(made == SAMPLE),
        "0" => Some(false),
        _ => None,
    }
}

/// Numbers that no server returns by chance. Each statement of [`answers_belong`] selects another
/// of these numbers.
const MARKS: [&str; 4] = ["730921", "730922", "730923", "730924"];

/// The results of [`answers_belong`], keyed by driver name, version and server. The value is `true`
/// if the driver returned the result of the right statement each time.
static CHECKED: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);

/// Returns an error if a driver for SQL Server returns the rows of a statement other than the one
/// that was executed. The connection must be in autocommit mode.
///
/// Microsoft's driver in Rust 0.3.0 has this fault on Babelfish with autocommit off.
///
/// # Errors
/// [`ErrorKind::Connect`], or the error of the database.
pub(crate) fn check_answers(connection: &Connection) -> Result<(), Error> {
    let facts = &connection.shared.facts;
    if connection.shared.quirks.dialect != Dialect::SqlServer {
        return Ok(());
    }
    let key = format!(
        "{} {} {}",
        facts.driver_label, facts.dbms, facts.dbms_version
    );
    let known = lock(&CHECKED).get_or_insert_default().get(&key).copied();
    let is_right = match known {
        Some(is_right) => is_right,
        None => {
            let is_right = answers_belong(connection)?;
            lock(&CHECKED).get_or_insert_default().insert(key, is_right);
            is_right
        }
    };
    if is_right {
        return Ok(());
    }
    let message = format!(
        "the driver returns the rows of another statement in a transaction on {} {}\n\
         Use Microsoft's ODBC Driver 18 or FreeTDS for this server.",
        facts.dbms, facts.dbms_version
    );
    let error = Error::new(ErrorKind::Connect, message);
    Err(error.of_driver(Some(&facts.driver_label)))
}

/// Executes two statements outside a transaction, and two in a transaction. Returns `true` if each
/// returned result belongs to the executed statement. A test's fake server returns an unknown
/// result for a statement outside a transaction. In this case the function also returns `true`,
/// because the result gives no information about the driver.
fn answers_belong(connection: &Connection) -> Result<bool, Error> {
    let (outside, inside) = MARKS.split_at(2);
    for mark in outside {
        match answer(connection, mark)? {
            Answer::Own => {}
            Answer::OfAnother => return Ok(false),
            Answer::Unknown => return Ok(true),
        }
    }
    if !connection.shared.facts.transactions {
        return Ok(true);
    }
    // `Connection::set_autocommit` refuses to set autocommit on a read-only connection; this
    // function does not.
    connection.shared.enter()?.set_autocommit(false)?;
    for mark in inside {
        if answer(connection, mark)? != Answer::Own {
            return Ok(false);
        }
    }
    connection.rollback()?;
    connection.shared.enter()?.set_autocommit(true)?;
    Ok(true)
}

/// The statement that a returned result belongs to: the executed statement, another statement of
/// [`answers_belong`], or an unknown one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Own,
    OfAnother,
    Unknown,
}

fn answer(connection: &Connection, mark: &str) -> Result<Answer, Error> {
    let row = first_row(connection, &format!("SELECT {mark}"))?;
    Ok(match row.first().map(String::as_str) {
        Some(given) if given == mark => Answer::Own,
        Some(given) if MARKS.contains(&given) => Answer::OfAnother,
        _ => Answer::Unknown,
    })
}

/// Executes `sql` and returns the values of its first row, as text.
fn first_row(connection: &Connection, sql: &str) -> Result<Vec<String>, Error> {
    let mut statement = connection.execute(sql, &[])?;
    let budget = Budget {
        block_bytes: 4096,
        block_rows: 1,
    };
    let mut row = Texts(Vec::new());
    if let Fetched::Rows(_) = statement.fetch(budget)? {
        match statement.block().emit(0, &mut row) {
            Ok(_) => {}
            Err(never) => match never {},
        }
    }
    Ok(row.0)
}

/// Executes `sql`, which returns one row with one column, and returns the value as text.
///
/// # Errors
/// The error of the database; `Internal` if the result has no value.
pub(crate) fn one_text(connection: &Connection, sql: &str) -> Result<String, Error> {
    first_row(connection, sql)?
        .into_iter()
        .next()
        .ok_or_else(|| Error::new(ErrorKind::Internal, format!("`{sql}` gave no row")))
}

/// A row sink that collects the cells of one row as text.
struct Texts(Vec<String>);

impl RowSink for Texts {
    type Error = std::convert::Infallible;

    fn begin_row(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn cell(&mut self, _: usize, cell: Cell<'_>) -> Result<(), Self::Error> {
        self.0.push(match cell {
            Cell::I64(n) => n.to_string(),
            Cell::Bool(b) => u8::from(b).to_string(),
            Cell::Decimal(d) => String::from_utf8_lossy(d).into_owned(),
            Cell::Text(units) => text(units),
            _ => String::new(),
        });
        Ok(())
    }

    fn long_begin(&mut self, _: usize, _: LongKind) -> Result<(), Self::Error> {
        Ok(())
    }

    fn long_part(&mut self, column: usize, part: Cell<'_>) -> Result<(), Self::Error> {
        self.cell(column, part)
    }

    fn long_end(&mut self, _: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    fn end_row(&mut self) -> Result<bool, Self::Error> {
        Ok(false)
    }
}

fn text(units: Units<'_>) -> String {
    naive::to_utf8(units, Policy::Replace)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}
