//! Names and types of a result's columns.

use std::sync::Arc;

use crate::error::{Error, ErrorKind};

/// What a column holds, by DESIGN's value table: it decides the buffer and the Python type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// SQLite: each value has its own storage class.
    Any,
    /// Boolean or bit.
    Bool,
    /// Integer to 64 bit; `bits` of 8, 16, 32 or 64.
    Integer {
        /// Width in bits.
        bits: u8,
        /// Whether values are unsigned.
        unsigned: bool,
    },
    /// 32-bit float.
    Real,
    /// 64-bit float.
    Double,
    /// Exact decimal or money.
    Decimal {
        /// Total digits, 0 where the database does not say.
        precision: u8,
        /// Digits behind the point.
        scale: i8,
    },
    /// Text.
    Text,
    /// Binary.
    Binary,
    /// Date.
    Date,
    /// Time of day with `digits` of fraction.
    Time {
        /// Stored digits of the fraction, 0 to 9.
        digits: u8,
    },
    /// Timestamp with `digits` of fraction.
    Timestamp {
        /// Stored digits of the fraction, 0 to 9.
        digits: u8,
        /// Whether values carry an offset from UTC.
        with_offset: bool,
    },
    /// Span of time: those with months or years come as text, as the database writes them.
    Interval,
    /// UUID.
    Uuid,
}

/// One column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name as the database gives it; may be empty or occur twice.
    pub name: String,
    /// What it holds.
    pub column_type: ColumnType,
    /// Declared size in characters, bytes or digits; 0 where unknown or unbounded. PEP 249 `internal_size`.
    pub size: usize,
    /// Whether NULL may occur; `None` where unknown.
    pub nullable: Option<bool>,
    /// The type's name as the database or driver gives it (`varchar`, `timestamptz`), empty where unknown.
    pub type_name: String,
}

impl Column {
    /// A column of which nothing else is known.
    #[must_use]
    pub fn new(name: String, column_type: ColumnType) -> Column {
        Column {
            name,
            column_type,
            size: 0,
            nullable: None,
            type_name: String::new(),
        }
    }
}

/// The columns of a result, shared by its source, its blocks and its sinks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The columns, in order.
    pub columns: Arc<[Column]>,
    /// Name and version of the ODBC driver that describes them; `None` of SQLite.
    driver: Option<Arc<str>>,
}

impl Schema {
    /// A schema of these columns.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Schema {
        Schema {
            columns: columns.into(),
            driver: None,
        }
    }

    /// The schema of a result of an ODBC driver.
    pub(crate) fn of_driver(columns: Vec<Column>, driver: &Arc<str>) -> Schema {
        Schema {
            driver: Some(Arc::clone(driver)),
            ..Schema::new(columns)
        }
    }

    /// Name and version of the ODBC driver that describes the columns.
    pub(crate) fn driver(&self) -> Option<&Arc<str>> {
        self.driver.as_ref()
    }

    /// The error of a value that no column of its type can hold, with its column and row (from 0),
    /// and the driver that made it.
    #[must_use]
    pub fn invalid_value(&self, message: &str, column: usize, row: u64) -> Error {
        let name = self.columns.get(column).map_or("", |c| c.name.as_str());
        Error::new(ErrorKind::Data, message)
            .at_column(column, name)
            .at_row(row)
            .of_driver(self.driver.as_ref())
    }

    /// Number of columns; 0 for a statement that gives no rows.
    #[must_use]
    pub fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// The first name that is empty or stands twice (object formats refuse it), with its index from 0.
    #[must_use]
    pub fn unfit_name(&self) -> Option<(usize, &str)> {
        let mut seen = std::collections::HashSet::new();
        self.columns
            .iter()
            .enumerate()
            .find(|(_, c)| c.name.is_empty() || !seen.insert(c.name.as_str()))
            .map(|(i, c)| (i, c.name.as_str()))
    }
}
