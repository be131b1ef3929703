//! Types of columns: the form (text or binary) that is requested of the server, and the cells.

use super::message::FieldDescription;
use crate::schema::{Column, ColumnType};

/// Object identifiers of built-in types (`pg_type.dat`), and their names.
pub(super) mod oid {
    pub(in super::super) const BOOL: u32 = 16;
    pub(in super::super) const BYTEA: u32 = 17;
    pub(in super::super) const INT8: u32 = 20;
    pub(in super::super) const INT2: u32 = 21;
    pub(in super::super) const INT4: u32 = 23;
    pub(in super::super) const TEXT: u32 = 25;
    pub(in super::super) const OID: u32 = 26;
    pub(in super::super) const FLOAT4: u32 = 700;
    pub(in super::super) const FLOAT8: u32 = 701;
    pub(in super::super) const MONEY: u32 = 790;
    pub(in super::super) const BPCHAR: u32 = 1042;
    pub(in super::super) const VARCHAR: u32 = 1043;
    pub(in super::super) const DATE: u32 = 1082;
    pub(in super::super) const TIME: u32 = 1083;
    pub(in super::super) const TIMESTAMP: u32 = 1114;
    pub(in super::super) const TIMESTAMPTZ: u32 = 1184;
    pub(in super::super) const INTERVAL: u32 = 1186;
    pub(in super::super) const TIMETZ: u32 = 1266;
    pub(in super::super) const NUMERIC: u32 = 1700;
    pub(in super::super) const UUID: u32 = 2950;
}

const NAMES: &[(u32, &str)] = &[
    (oid::BOOL, "bool"),
    (oid::BYTEA, "bytea"),
    (18, "char"),
    (19, "name"),
    (oid::INT8, "int8"),
    (oid::INT2, "int2"),
    (oid::INT4, "int4"),
    (oid::TEXT, "text"),
    (oid::OID, "oid"),
    (114, "json"),
    (142, "xml"),
    (650, "cidr"),
    (oid::FLOAT4, "float4"),
    (oid::FLOAT8, "float8"),
    (705, "unknown"),
    (oid::MONEY, "money"),
    (829, "macaddr"),
    (869, "inet"),
    (oid::BPCHAR, "bpchar"),
    (oid::VARCHAR, "varchar"),
    (oid::DATE, "date"),
    (oid::TIME, "time"),
    (oid::TIMESTAMP, "timestamp"),
    (oid::TIMESTAMPTZ, "timestamptz"),
    (oid::INTERVAL, "interval"),
    (oid::TIMETZ, "timetz"),
    (1560, "bit"),
    (1562, "varbit"),
    (oid::NUMERIC, "numeric"),
    (oid::UUID, "uuid"),
    (3614, "tsvector"),
    (3802, "jsonb"),
];

/// The form of a column's values, and the cells that they become.
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
    /// Digits of the fraction that are stored.
    Time(u8),
    Timestamp(u8),
    /// With an offset, which is that of UTC.
    TimestampUtc(u8),
    /// As text, with the session's offset.
    TimestampText(u8),
    /// As text.
    Decimal,
    Money,
    Interval,
    /// Everything else: as text.
    Text,
}

impl Kind {
    /// The format code of Bind: 1 for binary.
    pub(super) fn format(self) -> i16 {
        i16::from(!matches!(
            self,
            Kind::TimestampText(_) | Kind::Decimal | Kind::Money | Kind::Interval | Kind::Text
        ))
    }

    /// Bytes of each value; 0 where they differ.
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

/// The name of a built-in type; empty for another one.
pub(super) fn name(type_oid: u32) -> &'static str {
    let row = NAMES.iter().find(|(oid, _)| *oid == type_oid);
    row.map_or("", |(_, name)| name)
}

/// The object identifier of a built-in type by its name in SQL; 0 for another one.
pub(super) fn oid_of_name(name: &str) -> u32 {
    match name {
        "interval" => oid::INTERVAL,
        "time with time zone" => oid::TIMETZ,
        name => NAMES
            .iter()
            .find(|(_, n)| *n == name)
            .map_or(0, |(oid, _)| *oid),
    }
}

/// Digits of the fraction of a second by the type's modifier: 6 unless it says less.
fn digits(type_modifier: i32) -> u8 {
    u8::try_from(type_modifier)
        .ok()
        .filter(|n| *n <= 6)
        .unwrap_or(6)
}

/// Precision and scale of a `numeric(p, s)`; zeros for one without, and for one that [`ColumnType`] cannot hold.
fn precision_and_scale(type_modifier: i32) -> (u8, i8) {
    if type_modifier < 4 {
        return (0, 0);
    }
    let packed = type_modifier - 4;
    // The scale is signed, in 11 bits.
    let scale = ((packed & 0x7ff) ^ 1024) - 1024;
    match (u8::try_from(packed >> 16), i8::try_from(scale)) {
        (Ok(precision), Ok(scale)) => (precision, scale),
        _ => (0, 0),
    }
}

/// The form and the column of a described field. `is_utc`: the session's time zone is UTC.
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
        oid::MONEY => (
            Kind::Money,
            ColumnType::Decimal {
                precision: 19,
                scale: 2,
            },
        ),
        oid::INTERVAL => (Kind::Interval, ColumnType::Interval),
        _ => (Kind::Text, ColumnType::Text),
    };
    let size = match field.type_oid {
        oid::VARCHAR | oid::BPCHAR => usize::try_from(modifier - 4).unwrap_or(0),
        _ => usize::try_from(field.type_len).unwrap_or(0),
    };
    let column = Column {
        size,
        type_name: name(field.type_oid).to_owned(),
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
