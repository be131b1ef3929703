//! Which width of text is right, decided by a round trip at the first connect per driver and locale; and for SQL Server
//! whether each answer belongs to its statement.
//!
//! The statement asks the server to make non-ASCII text from code points and to compare it with the same text as we send
//! it: both directions are tested, and two errors that cancel each other are not taken for none.

use std::collections::HashMap;
use std::sync::Mutex;

use onecopy_text::{Policy, Units, naive};

use super::connection::Connection;
use super::handle::lock;
use super::quirks::Width;
use crate::cell::{Cell, LongKind};
use crate::database::DatabaseConnection;
use crate::error::{Error, ErrorKind};
use crate::source::{Block, Budget, Fetched, RowSink, Source};
use crate::sql::dialect::Dialect;

/// Latin-1, CJK, outside the BMP: 2, 3 and 4 bytes of UTF-8.
const SAMPLE: &str = "é日😀";

/// What was found per driver, its version and the locale: `true` where the preferred width is right.
static FOUND: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);

/// The statement whose first column is the sample made by the server, and whose second is 1 where the sample that we sent
/// equals it.
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
        // Without its collation MariaDB may find two supplementary characters equal.
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

/// The other width, where this connection's is wrong and the other may be tried.
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

/// Whether the sample arrives; `None` where the database cannot be asked in this way.
fn check(connection: &Connection) -> Option<bool> {
    let row = first_row(connection, &statement(connection.shared.quirks.dialect)).ok()?;
    let [made, sent] = row.as_slice() else {
        return None;
    };
    // A server that answers something else altogether (a test double, an encoding without these characters) says
    // nothing about the width.
    match sent.as_str() {
        "1" => Some(made == SAMPLE),
        "0" => Some(false),
        _ => None,
    }
}

/// Numbers that no server returns by itself: each statement of a check selects one of its own.
const MARKS: [&str; 4] = ["730921", "730922", "730923", "730924"];

/// The drivers that were checked, by name, version and server: whether answers belong to their statements.
static CHECKED: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);

/// Refuses a driver of SQL Server that returns the rows of another statement. The connection is in autocommit mode.
///
/// Microsoft's driver in Rust 0.3.0 does so on Babelfish where autocommit is off.
///
/// # Errors
/// [`ErrorKind::Connect`]; as the database says.
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

/// Two statements out of a transaction, and two in one. A server that returns something else
/// altogether out of a transaction (a test double) says nothing of the driver.
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
    // Past the checks of a read-only connection, which refuses autocommit to its users.
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

/// Whose answer a statement has.
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

/// The first row of a statement, as text.
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

/// The only value of a statement of our own.
///
/// # Errors
/// As the database says; `Internal` where there is none.
pub(crate) fn one_text(connection: &Connection, sql: &str) -> Result<String, Error> {
    first_row(connection, sql)?
        .into_iter()
        .next()
        .ok_or_else(|| Error::new(ErrorKind::Internal, format!("`{sql}` gave no row")))
}

/// Takes a row's cells as text.
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
