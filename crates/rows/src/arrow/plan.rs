//! Which Arrow type a column of a database has.

use super::types::is_made;
use super::types::{DataType, Unit};
use crate::error::{Error, ErrorKind};
use crate::schema::{Column, ColumnType, Schema};

/// What the type of a column is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// This one.
    Type(DataType),
    /// That of the first value; `floats`: a number is a float.
    FirstValue { floats: bool },
    /// A decimal with the digits of the largest values of the first batch.
    Digits,
}

/// What a caller wants besides what the database says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrowOptions {
    /// About how many bytes a batch may take before it is handed on; it has one row at least.
    pub batch_bytes: usize,
    /// Types for columns by their names: each goes before what the database says.
    pub types: Vec<(String, DataType)>,
}

impl Default for ArrowOptions {
    /// 4 MiB: large enough that a batch costs its reader nothing, small enough for constant memory.
    fn default() -> ArrowOptions {
        ArrowOptions {
            batch_bytes: 4 << 20,
            types: Vec::new(),
        }
    }
}

/// What the columns of a schema become; whether the caller named each.
///
/// # Errors
/// [`ErrorKind::Programming`] where a name is no column's, [`ErrorKind::NotSupported`] where its type is never made.
pub(crate) fn plans(schema: &Schema, options: &ArrowOptions) -> Result<Vec<(Plan, bool)>, Error> {
    for (name, data_type) in &options.types {
        if !schema.columns.iter().any(|c| c.name == *name) {
            let message = format!("there is no column `{name}` for the type `{data_type}`");
            return Err(Error::new(ErrorKind::Programming, message));
        }
        if !is_made(data_type) {
            let message = format!("columns are not made as `{data_type}`");
            return Err(Error::new(ErrorKind::NotSupported, message));
        }
    }
    let planned = schema.columns.iter().map(|column| {
        let asked = options.types.iter().find(|(name, _)| *name == column.name);
        match asked {
            Some((_, data_type)) => (Plan::Type(data_type.clone()), true),
            None => (plan(column), false),
        }
    });
    Ok(planned.collect())
}

/// The type of a column of a database; `None` where its values tell it.
#[must_use]
pub fn type_of(column: &Column) -> Option<DataType> {
    match plan(column) {
        Plan::Type(data_type) => Some(data_type),
        _ => None,
    }
}

/// Whether a number in a column of SQLite whose values tell its type is a float always.
#[must_use]
pub fn has_fractions(column: &Column) -> bool {
    plan(column) == Plan::FirstValue { floats: true }
}

/// What a column becomes where nobody asks for anything.
fn plan(column: &Column) -> Plan {
    Plan::Type(match column.column_type {
        ColumnType::Any => return declared(&column.type_name),
        ColumnType::Bool => DataType::Bool,
        // Unsigned numbers of 32 bits that psqlodbc describes as signed ones.
        ColumnType::Integer { .. }
            if matches!(column.type_name.as_str(), "oid" | "xid" | "cid") =>
        {
            DataType::uint(32)
        }
        ColumnType::Integer { bits, unsigned } => DataType::Int { bits, unsigned },
        ColumnType::Real => DataType::Float32,
        ColumnType::Double => DataType::Float64,
        ColumnType::Decimal { precision, scale } => match decimal(column, precision, scale) {
            Some(data_type) => data_type,
            None => return Plan::Digits,
        },
        // Spans with months have no like in Arrow that readers share: as the database wrote them.
        ColumnType::Text | ColumnType::Interval => DataType::Utf8,
        ColumnType::Binary => DataType::Binary,
        ColumnType::Date => DataType::Date32,
        ColumnType::Time { digits } => DataType::Time(Unit::of_digits(digits)),
        ColumnType::Timestamp {
            digits,
            with_offset,
        } => DataType::Timestamp {
            unit: Unit::of_digits(digits),
            zone: with_offset.then(|| "UTC".to_owned()),
        },
        ColumnType::Uuid => DataType::Uuid,
    })
}

/// The type of a decimal; `None` where the database did not declare its digits.
fn decimal(column: &Column, precision: u8, scale: i8) -> Option<DataType> {
    // psqlodbc describes a `numeric` without digits (each sum and average is one) as one of 28, with those of the first rows
    // behind the point.
    let is_told = precision > 0 && !(column.type_name == "numeric" && precision == 28);
    let bits = match precision {
        _ if !is_told => return None,
        0..=38 => 128,
        39..=76 => 256,
        _ => return None,
    };
    Some(DataType::Decimal {
        bits,
        precision,
        scale,
    })
}

/// What a column of SQLite becomes by its declared type, with the rules by which SQLite finds a column's affinity.
///
/// Source: <https://sqlite.org/datatype3.html#determination_of_column_affinity>.
fn declared(type_name: &str) -> Plan {
    let name = type_name.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    Plan::Type(if has(&["INT"]) {
        DataType::int(64)
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        DataType::Utf8
    } else if has(&["BLOB"]) {
        DataType::Binary
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        DataType::Float64
    } else {
        // Where numbers have a fraction as a rule, one without must not make integers of them all.
        let floats = has(&["DEC", "NUMERIC"]);
        return Plan::FirstValue { floats };
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_of_sqlite_have_their_affinity() {
        let of = |data_type| Plan::Type(data_type);
        for (name, plan) in [
            ("INTEGER", of(DataType::int(64))),
            ("bigint unsigned", of(DataType::int(64))),
            ("varchar(20)", of(DataType::Utf8)),
            ("CLOB", of(DataType::Utf8)),
            ("blob", of(DataType::Binary)),
            ("double precision", of(DataType::Float64)),
            ("decimal(12,2)", Plan::FirstValue { floats: true }),
            ("datetime", Plan::FirstValue { floats: false }),
            ("", Plan::FirstValue { floats: false }),
        ] {
            assert_eq!(declared(name), plan, "{name}");
        }
    }
}
