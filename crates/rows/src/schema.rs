//! `Schema` and `Column`: the names and types of a result's columns.

use std::sync::Arc;

use crate::cell::ElementType;
use crate::error::{Error, ErrorKind};

/// The type of a column's values. It determines the driver's buffer and the Python type
/// (`docs/reference/values.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// The column has no declared type (in SQLite). The storage class of each value determines the
    /// type of this value.
    Any,
    /// A boolean or a single bit.
    Bool,
    /// An integer of 8, 16, 32 or 64 bits.
    Integer {
        /// The width of a value in bits.
        bits: u8,
        /// `true` if the values are unsigned.
        unsigned: bool,
    },
    /// A 32-bit float.
    Real,
    /// A 64-bit float.
    Double,
    /// An exact decimal number, or an amount of money.
    Decimal {
        /// The total number of digits; 0 if the database does not report it.
        precision: u8,
        /// The number of digits after the decimal point.
        scale: i8,
    },
    /// Text of any length.
    Text,
    /// Binary data of any length.
    Binary,
    /// A date without a time of day.
    Date,
    /// A time of day.
    Time {
        /// The number of stored digits of the fraction of a second, 0 to 9.
        digits: u8,
    },
    /// A time of day with an offset from UTC.
    TimeTz {
        /// The number of stored digits of the fraction of a second, 0 to 9.
        digits: u8,
    },
    /// A date and time of day, with or without an offset from UTC.
    Timestamp {
        /// The number of stored digits of the fraction of a second, 0 to 9.
        digits: u8,
        /// `true` if the values have an offset from UTC.
        with_offset: bool,
    },
    /// A duration. If it has months or years, it is emitted as the text that the database sent.
    Interval,
    /// A UUID.
    Uuid,
    /// A range or multirange of PostgreSQL.
    Range,
    /// An array of any number of dimensions, whose elements have one type.
    Array(ElementType),
}

impl ColumnType {
    /// PostgreSQL's `money`, an integer of 64 bits that counts hundredths.
    pub(crate) const MONEY: ColumnType = ColumnType::Decimal {
        precision: 19,
        scale: 2,
    };
}

impl ElementType {
    /// Returns the type of a column whose values have the same type as these array elements.
    #[must_use]
    pub fn column_type(self) -> ColumnType {
        let timestamp = |digits, with_offset| ColumnType::Timestamp {
            digits,
            with_offset,
        };
        match self {
            ElementType::Bool => ColumnType::Bool,
            ElementType::Integer { bits, unsigned } => ColumnType::Integer { bits, unsigned },
            ElementType::Real => ColumnType::Real,
            ElementType::Double => ColumnType::Double,
            ElementType::Decimal { precision, scale } => ColumnType::Decimal { precision, scale },
            ElementType::Bytes => ColumnType::Binary,
            ElementType::Date => ColumnType::Date,
            ElementType::Time(digits) => ColumnType::Time { digits },
            ElementType::Timestamp(digits) => timestamp(digits, false),
            ElementType::TimestampTz(digits) => timestamp(digits, true),
            ElementType::TimeTz(digits) => ColumnType::TimeTz { digits },
            ElementType::Money => ColumnType::MONEY,
            ElementType::Interval => ColumnType::Interval,
            ElementType::Uuid => ColumnType::Uuid,
            ElementType::Range(_) | ElementType::Multirange(_) => ColumnType::Range,
            ElementType::Json | ElementType::Text => ColumnType::Text,
        }
    }
}

/// One column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the column, as the database reports it. It may be empty, and two columns may
    /// have the same name.
    pub name: String,
    /// The type of the column's values.
    pub column_type: ColumnType,
    /// The declared size in characters, bytes or digits; 0 if it is unknown or unlimited. PEP 249
    /// calls it `internal_size`.
    pub size: usize,
    /// `true` if the column may contain NULL; `None` if unknown.
    pub nullable: Option<bool>,
    /// The name of the type, as the database or driver reports it (`varchar`, `timestamptz`); empty
    /// if unknown.
    pub type_name: String,
}

impl Column {
    /// Creates a column with a name and a type.
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
    /// The columns, in the order of the result.
    pub columns: Arc<[Column]>,
    /// `true` if the statement returns rows, which may have no columns.
    has_rows: bool,
    /// The name and version of the ODBC driver from which the result was received; `None` if the
    /// database is not accessed by an ODBC driver.
    driver: Option<Arc<str>>,
}

impl Schema {
    /// Creates the schema of a result with these columns. If `columns` is empty, it is the schema
    /// of a statement that returns no rows.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Schema {
        Schema {
            has_rows: !columns.is_empty(),
            columns: columns.into(),
            driver: None,
        }
    }

    /// Creates the schema of a result with rows. `columns` may be empty, because rows can have no
    /// columns.
    pub(crate) fn of_rows(columns: Vec<Column>) -> Schema {
        Schema {
            has_rows: true,
            ..Schema::new(columns)
        }
    }

    /// Creates the schema of a result that an ODBC driver returned.
    pub(crate) fn of_driver(columns: Vec<Column>, driver: &Arc<str>) -> Schema {
        Schema {
            driver: Some(Arc::clone(driver)),
            ..Schema::new(columns)
        }
    }

    /// Returns the name and version of the ODBC driver from which the result was received; `None`
    /// if the database is not accessed by an ODBC driver.
    pub(crate) fn driver(&self) -> Option<&Arc<str>> {
        self.driver.as_ref()
    }

    /// Creates the error for a value that is invalid for its column's type. The error contains the
    /// column, the row (from 0) and the driver.
    #[must_use]
    pub fn invalid_value(&self, message: &str, column: usize, row: u64) -> Error {
        let name = self.columns.get(column).map_or("", |c| c.name.as_str());
        Error::new(ErrorKind::Data, message)
            .at_column(column, name)
            .at_row(row)
            .of_driver(self.driver.as_ref())
    }

    /// Returns `true` if the statement returns rows. The rows may have no columns: PostgreSQL's
    /// `SELECT` does not require a select list.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        self.has_rows
    }

    /// Returns the number of columns; 0 also for a statement without rows.
    #[must_use]
    pub fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns the first column name that is empty or equals an earlier column name, with the
    /// column's index (from 0). Formats that write a row as an object (JSON, BSON) refuse such
    /// names.
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
