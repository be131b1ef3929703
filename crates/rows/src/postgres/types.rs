//! Column types: the format (text or binary) that is requested from the server, and the conversion
//! of a value to a cell.

use super::message::FieldDescription;
use super::type_table::{ARRAYS, NAMES, oid};
use crate::cell::{BoundType, ElementType};
use crate::schema::{Column, ColumnType};

/// Returns the type of the bounds of a built-in range type, and `true` if it is a multirange type.
/// Returns `None` for a type that is neither.
fn range(type_oid: u32) -> Option<(BoundType, bool)> {
    Some(match type_oid {
        3904 | 3926 => (BoundType::Integer, false),
        3906 => (BoundType::Decimal, false),
        3908 => (BoundType::Timestamp, false),
        3910 => (BoundType::TimestampTz, false),
        3912 => (BoundType::Date, false),
        4451 | 4536 => (BoundType::Integer, true),
        4532 => (BoundType::Decimal, true),
        4533 => (BoundType::Timestamp, true),
        4534 => (BoundType::TimestampTz, true),
        4535 => (BoundType::Date, true),
        _ => return None,
    })
}

/// Returns the element type of an array type; `None` for a type that is not a built-in array.
fn element(type_oid: u32, modifier: i32) -> Option<ElementType> {
    let (_, of) = ARRAYS.iter().find(|(array, _)| *array == type_oid)?;
    let integer = |bits, unsigned| ElementType::Integer { bits, unsigned };
    Some(match *of {
        oid::BOOL => ElementType::Bool,
        oid::BYTEA => ElementType::Bytes,
        oid::INT2 => integer(16, false),
        oid::INT4 => integer(32, false),
        oid::INT8 => integer(64, false),
        oid::OID => integer(32, true),
        oid::FLOAT4 => ElementType::Real,
        oid::FLOAT8 => ElementType::Double,
        oid::NUMERIC => {
            let (precision, scale) = precision_and_scale(modifier);
            ElementType::Decimal { precision, scale }
        }
        oid::DATE => ElementType::Date,
        oid::TIME => ElementType::Time(digits(modifier)),
        oid::TIMESTAMP => ElementType::Timestamp(digits(modifier)),
        oid::TIMESTAMPTZ => ElementType::TimestampTz(digits(modifier)),
        oid::TIMETZ => ElementType::TimeTz(digits(modifier)),
        oid::INTERVAL => ElementType::Interval,
        oid::UUID => ElementType::Uuid,
        oid::MONEY => ElementType::Money,
        oid::JSON | oid::JSONB => ElementType::Json,
        of => match range(of) {
            Some((bound, false)) => ElementType::Range(bound),
            Some((bound, true)) => ElementType::Multirange(bound),
            None => ElementType::Text,
        },
    })
}

/// The kind of a column's values: the format in which the server sends them, and the cell type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    I16,
    I32,
    I64,
    U32,
    F32,
    F64,
    Bytes,
    Uuid,
    Date,
    /// A time in binary format; the field is the number of stored digits of the fraction of a
    /// second.
    Time(u8),
    Timestamp(u8),
    /// A timestamp with time zone in binary format, for a session whose time zone is UTC. The field
    /// is the number of digits of the fraction of a second.
    TimestampUtc(u8),
    /// A timestamp with time zone in text format, for a session whose time zone is not UTC. The
    /// text contains the zone's offset from UTC, which the binary format omits. The field is the
    /// number of digits of the fraction of a second.
    TimestampText(u8),
    /// A time of day with an offset from UTC, in text format.
    TimeTz,
    /// A `numeric` in text format.
    Decimal,
    Money,
    Interval,
    Json,
    /// An array in text format.
    Array(ElementType),
    /// A range in text format, or a multirange in text format if the second field is `true`.
    Range(BoundType, bool),
    /// A value of any other type, in text format.
    Text,
}

impl Kind {
    /// Returns the format code for the Bind message: 1 for binary, 0 for text.
    pub(super) fn format(self) -> i16 {
        i16::from(!matches!(
            self,
            Kind::TimestampText(_)
                | Kind::TimeTz
                | Kind::Decimal
                | Kind::Money
                | Kind::Interval
                | Kind::Json
                | Kind::Array(_)
                | Kind::Range(..)
                | Kind::Text
        ))
    }

    /// Returns the size of each value in bytes; 0 if the size varies.
    pub(super) fn width(self) -> u8 {
        match self {
            Kind::Bool => 1,
            Kind::I16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 | Kind::Date => 4,
            Kind::I64 | Kind::F64 => 8,
            Kind::Time(_) | Kind::Timestamp(_) | Kind::TimestampUtc(_) => 8,
            Kind::Uuid => 16,
            _ => 0,
        }
    }
}

/// Returns the name of a built-in type; an empty string for any other type.
pub(super) fn name(type_oid: u32) -> &'static str {
    let row = NAMES.iter().find(|(oid, _)| *oid == type_oid);
    row.map_or("", |(_, name)| name)
}

/// Returns the name of a built-in type, with `[]` for an array type.
fn column_name(type_oid: u32) -> String {
    match ARRAYS.iter().find(|(array, _)| *array == type_oid) {
        Some((_, of)) => format!("{}[]", name(*of)),
        None => name(type_oid).to_owned(),
    }
}

/// Returns the object identifier of the built-in type with this SQL name; 0 for any other name.
pub(super) fn oid_of_name(name: &str) -> u32 {
    match name {
        "time with time zone" => oid::TIMETZ,
        "boolean[]" => 1000,
        "bigint[]" => 1016,
        "double precision[]" => 1022,
        "numeric[]" => 1231,
        "bytea[]" => 1001,
        "date[]" => 1182,
        "time[]" => 1183,
        "timestamp[]" => 1115,
        "timestamptz[]" => 1185,
        "uuid[]" => 2951,
        "interval[]" => 1187,
        "timetz[]" => 1270,
        name => NAMES
            .iter()
            .find(|(_, n)| *n == name)
            .map_or(0, |(oid, _)| *oid),
    }
}

/// Returns the number of digits of the fraction of a second that a type modifier declares; 6,
/// PostgreSQL's default, if it declares none.
fn digits(type_modifier: i32) -> u8 {
    u8::try_from(type_modifier)
        .ok()
        .filter(|n| *n <= 6)
        .unwrap_or(6)
}

/// Returns the precision and scale of a `numeric(p, s)`; zeros if they are not declared, or if
/// [`ColumnType`] cannot represent them.
fn precision_and_scale(type_modifier: i32) -> (u8, i8) {
    if type_modifier < 4 {
        return (0, 0);
    }
    let packed = type_modifier - 4;
    // The scale is a signed integer of 11 bits.
    let scale = ((packed & 0x7ff) ^ 1024) - 1024;
    match (u8::try_from(packed >> 16), i8::try_from(scale)) {
        (Ok(precision), Ok(scale)) => (precision, scale),
        _ => (0, 0),
    }
}

/// Returns the [`Kind`] and the [`Column`] of a result column that the server described. `is_utc`
/// is `true` if the session's time zone is UTC.
pub(super) fn describe(field: &FieldDescription, is_utc: bool) -> (Kind, Column) {
    let modifier = field.type_modifier;
    let integer = |bits, unsigned| ColumnType::Integer { bits, unsigned };
    let (kind, column_type) = match field.type_oid {
        oid::BOOL => (Kind::Bool, ColumnType::Bool),
        oid::INT2 => (Kind::I16, integer(16, false)),
        oid::INT4 => (Kind::I32, integer(32, false)),
        oid::INT8 => (Kind::I64, integer(64, false)),
        oid::OID => (Kind::U32, integer(32, true)),
        oid::FLOAT4 => (Kind::F32, ColumnType::Real),
        oid::FLOAT8 => (Kind::F64, ColumnType::Double),
        oid::BYTEA => (Kind::Bytes, ColumnType::Binary),
        oid::UUID => (Kind::Uuid, ColumnType::Uuid),
        oid::DATE => (Kind::Date, ColumnType::Date),
        oid::TIME => {
            let digits = digits(modifier);
            (Kind::Time(digits), ColumnType::Time { digits })
        }
        oid::TIMETZ => {
            let digits = digits(modifier);
            (Kind::TimeTz, ColumnType::TimeTz { digits })
        }
        oid::TIMESTAMP => {
            let (digits, with_offset) = (digits(modifier), false);
            (
                Kind::Timestamp(digits),
                ColumnType::Timestamp {
                    digits,
                    with_offset,
                },
            )
        }
        oid::TIMESTAMPTZ => {
            let (digits, with_offset) = (digits(modifier), true);
            let kind = match is_utc {
                true => Kind::TimestampUtc(digits),
                false => Kind::TimestampText(digits),
            };
            (
                kind,
                ColumnType::Timestamp {
                    digits,
                    with_offset,
                },
            )
        }
        oid::NUMERIC => {
            let (precision, scale) = precision_and_scale(modifier);
            (Kind::Decimal, ColumnType::Decimal { precision, scale })
        }
        oid::MONEY => (Kind::Money, ColumnType::MONEY),
        oid::INTERVAL => (Kind::Interval, ColumnType::Interval),
        oid::JSON | oid::JSONB => (Kind::Json, ColumnType::Text),
        other => match (element(other, modifier), range(other)) {
            (Some(element), _) => (Kind::Array(element), ColumnType::Array(element)),
            (_, Some((bound, is_multi))) => (Kind::Range(bound, is_multi), ColumnType::Range),
            _ => (Kind::Text, ColumnType::Text),
        },
    };
    let size = match field.type_oid {
        oid::VARCHAR | oid::BPCHAR => usize::try_from(modifier - 4).unwrap_or(0),
        _ => usize::try_from(field.type_len).unwrap_or(0),
    };
    let column = Column {
        size,
        type_name: column_name(field.type_oid),
        ..Column::new(field.name.clone(), column_type)
    };
    (kind, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(type_oid: u32, type_modifier: i32) -> FieldDescription {
        FieldDescription {
            name: "c".to_owned(),
            type_oid,
            type_len: -1,
            type_modifier,
        }
    }

    #[test]
    fn modifiers_say_digits_precision_and_size() {
        let of = |oid, modifier| describe(&field(oid, modifier), true).1;
        let numeric = |p: i32, s: i32| (p << 16 | (s & 0x7ff)) + 4;
        for (modifier, precision, scale) in [
            (numeric(12, 2), 12, 2),
            (numeric(5, -3), 5, -3),
            (-1, 0, 0),
            (numeric(1000, 3), 0, 0),
        ] {
            let expected = ColumnType::Decimal { precision, scale };
            assert_eq!(of(oid::NUMERIC, modifier).column_type, expected);
        }
        assert_eq!(of(oid::VARCHAR, 24).size, 20);
        assert_eq!(
            of(oid::TIMESTAMP, -1).column_type,
            ColumnType::Timestamp {
                digits: 6,
                with_offset: false
            }
        );
        assert_eq!(of(oid::TIME, 3).column_type, ColumnType::Time { digits: 3 });
    }

    #[test]
    fn types_that_are_not_known_are_requested_as_text() {
        let (kind, column) = describe(&field(99_999, -1), true);
        assert_eq!(
            (kind, kind.format(), column.column_type),
            (Kind::Text, 0, ColumnType::Text)
        );
        assert_eq!(describe(&field(oid::TIMESTAMPTZ, -1), false).0.format(), 0);
        assert_eq!(describe(&field(oid::TIMESTAMPTZ, -1), true).0.format(), 1);
    }
}
