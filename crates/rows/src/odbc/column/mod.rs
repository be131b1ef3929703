//! Column kinds. The kind of a column determines the buffer that is bound for the column, and
//! converts the bytes in this buffer to a cell.
//!
//! Each kind has its own file; only [`plan`] matches on SQL types. A new kind needs a new file, and
//! a line in each of `kinds!`, `each_kind!` and [`plan`].

mod binary;
mod boolean;
mod date;
mod date_text;
mod decimal;
mod float;
mod integer;
pub(crate) mod interval;
mod money;
mod spec;
mod text;
mod time;
mod timestamp;
mod uuid;

pub(crate) use self::date::Today;
use self::spec::ColumnBinding;
pub(crate) use self::spec::{Described, Raw, Spec, is_whole_units};
pub(crate) use self::uuid::guid;
use crate::cell::Cell;
use crate::database::ZeroDates;
use crate::odbc::ffi::sql;
use crate::odbc::quirks::{Quirks, Width};
use crate::schema::{Column, ColumnType};
use crate::sql::dialect::Dialect;

/// Describes a column of a result: its kind, the binding of its buffer, and its entry in the
/// schema.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) kind: Kind,
    pub(crate) spec: Spec,
    pub(crate) column: Column,
}

/// Declares the enum [`Kind`] with a variant for each column kind, and the conversions from the
/// type of each kind to [`Kind`].
macro_rules! kinds {
    ($($variant:ident($type:ty)),* $(,)?) => {
        /// The kind of a result's column: how a buffer is bound for it, and how a [`Cell`] is read
        /// from the buffer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $(#[allow(missing_docs)] $variant($type),)*
        }

        $(impl From<$type> for Kind {
            fn from(kind: $type) -> Kind { Kind::$variant(kind) }
        })*
    };
}

kinds! {
    Integer(integer::Integer),
    Unsigned(integer::Unsigned),
    Real(float::Real),
    RealInDouble(float::RealInDouble),
    Double(float::Double),
    DoubleText(float::DoubleText),
    Boolean(boolean::Boolean),
    Decimal(decimal::AsciiDecimal),
    Money(money::Money),
    Narrow(text::NarrowText),
    Wide(text::WideText),
    Binary(binary::Binary),
    Date(date::DateStruct),
    DateText(date_text::DateText),
    Time(time::TimeText),
    SsTime(time::SsTime),
    Timestamp(timestamp::TimestampStruct),
    TimestampText(date_text::TimestampText),
    TimestampOffset(timestamp::WithOffset),
    Interval(interval::Interval),
    Uuid(uuid::Uuid),
}

/// Matches on the variant of a [`Kind`], and evaluates `$body`, in which `$kind` is the value in
/// the variant. The body is compiled separately for each variant.
macro_rules! each_kind {
    ($value:expr, $kind:ident => $body:expr) => {
        match $value {
            $crate::odbc::column::Kind::Integer($kind) => $body,
            $crate::odbc::column::Kind::Unsigned($kind) => $body,
            $crate::odbc::column::Kind::Real($kind) => $body,
            $crate::odbc::column::Kind::RealInDouble($kind) => $body,
            $crate::odbc::column::Kind::Double($kind) => $body,
            $crate::odbc::column::Kind::DoubleText($kind) => $body,
            $crate::odbc::column::Kind::Boolean($kind) => $body,
            $crate::odbc::column::Kind::Decimal($kind) => $body,
            $crate::odbc::column::Kind::Money($kind) => $body,
            $crate::odbc::column::Kind::Narrow($kind) => $body,
            $crate::odbc::column::Kind::Wide($kind) => $body,
            $crate::odbc::column::Kind::Binary($kind) => $body,
            $crate::odbc::column::Kind::Date($kind) => $body,
            $crate::odbc::column::Kind::DateText($kind) => $body,
            $crate::odbc::column::Kind::Time($kind) => $body,
            $crate::odbc::column::Kind::SsTime($kind) => $body,
            $crate::odbc::column::Kind::Timestamp($kind) => $body,
            $crate::odbc::column::Kind::TimestampText($kind) => $body,
            $crate::odbc::column::Kind::TimestampOffset($kind) => $body,
            $crate::odbc::column::Kind::Interval($kind) => $body,
            $crate::odbc::column::Kind::Uuid($kind) => $body,
        }
    };
}
pub(crate) use each_kind;

impl Kind {
    /// Reads `raw`, the bytes of a value, as a cell.
    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        each_kind!(self, kind => kind.cell(raw))
    }

    /// Returns `true` if long values of this column kind may be returned in several parts.
    pub(crate) fn streams(&self) -> bool {
        matches!(self, Kind::Narrow(_) | Kind::Wide(_) | Kind::Binary(_))
    }

    /// Returns `true` if the driver returns the current date instead of a date that it cannot
    /// parse; see [`Kind::may_be_driver_default`].
    pub(crate) fn fills_dates(&self) -> bool {
        match self {
            Kind::Date(kind) => kind.filled,
            Kind::Timestamp(kind) => kind.filled,
            _ => false,
        }
    }

    /// Returns `true` if the driver may have written this value because it could not parse the
    /// server's text. Such a value has the month and day of the current date, and the time
    /// midnight. Also returns `true` for the timestamps that the driver writes for `infinity` and
    /// `-infinity`.
    #[inline]
    pub(crate) fn may_be_driver_default(&self, raw: Raw<'_>, today: &Today) -> bool {
        let filled = today.is_about(raw.u16(2), raw.u16(4))
            && (matches!(self, Kind::Date(_)) || raw.array::<10>(6) == [0; 10]);
        filled || (matches!(self, Kind::Timestamp(_)) && timestamp::stands_for_infinity(raw))
    }

    /// Returns the function that rewrites the text of a value from the form of some drivers (`.5`,
    /// `$1,234.50`) to a plain decimal. Returns `None` if no driver returns such a form for columns
    /// of this kind. The function receives the buffer of the value and the length of the text in
    /// bytes, and returns the new length.
    pub(crate) fn tidy(&self) -> Option<fn(&mut [u8], usize) -> usize> {
        match self {
            Kind::Decimal(_) => Some(decimal::tidy),
            Kind::Money(_) => Some(money::tidy),
            _ => None,
        }
    }
}

fn of<K: Into<Kind>>((kind, spec, column_type): ColumnBinding<K>) -> ColumnBinding<Kind> {
    (kind.into(), spec, column_type)
}

/// Returns the kind, binding and schema of a column. Only this function matches on SQL types.
pub(crate) fn plan(d: &Described, width: Width, quirks: &Quirks) -> Planned {
    let fraction = u8::try_from(d.digits.clamp(0, 9)).unwrap_or(0);
    let type_name = d.type_name.to_lowercase();
    let (kind, spec, column_type): ColumnBinding<Kind> = match d.sql_type {
        sql::BIT => of(boolean::Boolean::plan()),
        sql::TINYINT => of(integer::Integer::plan(8, d.unsigned)),
        sql::SMALLINT => of(integer::Integer::plan(16, d.unsigned)),
        sql::INTEGER => of(integer::Integer::plan(32, d.unsigned)),
        sql::BIGINT if d.unsigned => of(integer::Unsigned::plan()),
        sql::BIGINT => of(integer::Integer::plan(64, false)),
        // psqlodbc describes `money` as a float, which would round it.
        sql::FLOAT | sql::DOUBLE if quirks.dialect == Dialect::Postgres && type_name == "money" => {
            of(money::Money::plan())
        }
        sql::REAL if quirks.real_as_double => of(float::RealInDouble::plan()),
        sql::REAL => of(float::Real::plan()),
        // The precision of SQL_FLOAT is in bits with some drivers and in digits with others
        // (psqlodbc reports 17), so it is always treated as a 64-bit float.
        sql::FLOAT | sql::DOUBLE if quirks.float_text => of(float::DoubleText::plan()),
        sql::FLOAT | sql::DOUBLE => of(float::Double::plan()),
        sql::NUMERIC | sql::DECIMAL => of(decimal::AsciiDecimal::plan(d.size, d.digits)),
        sql::BINARY | sql::VARBINARY | sql::LONGVARBINARY | sql::SS_UDT => {
            of(binary::Binary::plan(d.size.max(d.octets)))
        }
        sql::TYPE_DATE | sql::DATE_2 => of(date::DateStruct::plan(quirks.fills_dates)),
        sql::TYPE_TIME | sql::TIME_2 => of(time::TimeText::plan(fraction, quirks.dialect)),
        sql::SS_TIME2 => of(time::SsTime::plan(fraction, quirks)),
        sql::TYPE_TIMESTAMP | sql::TIMESTAMP_2 => {
            let utc = quirks.hides_offset && type_name.starts_with("timestamptz");
            of(timestamp::TimestampStruct::plan(
                fraction,
                utc,
                quirks.fills_dates,
            ))
        }
        sql::SS_TIMESTAMPOFFSET => of(timestamp::WithOffset::plan(fraction, quirks)),
        sql::GUID => of(uuid::Uuid::plan()),
        sql::INTERVAL_FIRST..=sql::INTERVAL_LAST => of(interval::Interval::plan()),
        // psqlodbc describes an interval as a varchar without a type name; all its other types have
        // a type name.
        sql::VARCHAR if quirks.dialect == Dialect::Postgres && is_interval(&type_name, d.size) => {
            of(interval::Interval::plan())
        }
        // Text, and all other types, which every driver can return as text: XML, JSON, sql_variant,
        // and types that only the driver defines.
        _ => match width {
            Width::Narrow => of(text::NarrowText::plan(d)),
            Width::Wide => of(text::WideText::plan(d, quirks)),
        },
    };
    let unsure = kind.streams() && !quirks.sizes_hold;
    Planned {
        kind,
        spec: Spec {
            open: spec.open || unsure,
            ..spec
        },
        column: Column {
            name: d.name.clone(),
            column_type,
            size: d.size,
            nullable: d.nullable,
            type_name: match kind {
                Kind::Interval(_) if d.type_name.is_empty() => "interval".to_owned(),
                _ => d.type_name.clone(),
            },
        },
    }
}

fn is_interval(type_name: &str, size: usize) -> bool {
    type_name.starts_with("interval") || (type_name.is_empty() && size == 32)
}

impl Planned {
    /// Changes the plan of a date or timestamp column so that the column is bound as text, if the
    /// connection's option `zero_dates` requires it.
    pub(crate) fn with_zero_dates(mut self, zero_dates: ZeroDates) -> Planned {
        let found = match (self.kind, self.column.column_type) {
            (Kind::Date(_), _) => {
                date_text::DateText::plan(zero_dates).map(|(kind, spec)| (kind.into(), spec))
            }
            (Kind::Timestamp(_), ColumnType::Timestamp { digits, .. }) => {
                date_text::TimestampText::plan(zero_dates, digits)
                    .map(|(kind, spec)| (kind.into(), spec))
            }
            _ => None,
        };
        if let Some((kind, spec)) = found {
            (self.kind, self.spec) = (kind, spec);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::spec::OPEN_BYTES;
    use super::*;
    use crate::odbc::ffi::c;
    use crate::odbc::quirks::{UNKNOWN, known};

    fn described(sql_type: i16, size: usize, digits: i16, type_name: &str) -> Described {
        Described {
            sql_type,
            size,
            digits,
            type_name: type_name.to_owned(),
            ..Described::default()
        }
    }

    #[test]
    fn floats_of_17_digits_are_64_bit_and_text_in_psqlodbc() {
        let float = described(sql::FLOAT, 17, 0, "float8");
        let p = plan(&float, Width::Narrow, known("psqlodbcw.so").unwrap());
        assert_eq!(p.column.column_type, ColumnType::Double);
        assert_eq!(p.spec, Spec::digits(32));
        let p = plan(&float, Width::Narrow, &UNKNOWN);
        assert_eq!(p.column.column_type, ColumnType::Double);
        assert_eq!(p.spec, Spec::fixed(c::DOUBLE, 8));
    }

    #[test]
    fn floats_of_32_bits_are_bound_as_doubles_unless_the_driver_was_tested() {
        let real = described(sql::REAL, 7, 0, "float");
        for (driver, spec) in [
            (known("psqlodbcw.so").unwrap(), Spec::fixed(c::FLOAT, 4)),
            (known("libmaodbc.so").unwrap(), Spec::fixed(c::DOUBLE, 8)),
            (&UNKNOWN, Spec::fixed(c::DOUBLE, 8)),
        ] {
            let p = plan(&real, Width::Narrow, driver);
            assert_eq!((p.spec, p.column.column_type), (spec, ColumnType::Real));
        }
    }

    #[test]
    fn psqlodbc_money_is_a_decimal() {
        let q = known("psqlodbcw.so").unwrap();
        let p = plan(&described(sql::FLOAT, 10, 0, "money"), Width::Narrow, q);
        assert!(matches!(p.column.column_type, ColumnType::Decimal { .. }));
    }

    #[test]
    fn timestamptz_of_psqlodbc_is_in_utc() {
        let q = known("psqlodbcw.so").unwrap();
        for (name, with_offset) in [
            ("timestamptz", true),
            ("timestamp without time zone", false),
        ] {
            let p = plan(
                &described(sql::TYPE_TIMESTAMP, 26, 6, name),
                Width::Narrow,
                q,
            );
            assert_eq!(
                p.column.column_type,
                ColumnType::Timestamp {
                    digits: 6,
                    with_offset
                },
                "{name}"
            );
        }
    }

    #[test]
    fn unbounded_text_is_bound_to_a_modest_size() {
        for size in [0, 65_535, usize::MAX / 2] {
            let p = plan(
                &described(sql::LONGVARCHAR, size, 0, "text"),
                Width::Narrow,
                &UNKNOWN,
            );
            assert!(p.spec.open && p.spec.bytes <= OPEN_BYTES + 8, "{size}");
        }
        let p = plan(
            &described(sql::VARCHAR, 40, 0, "varchar"),
            Width::Narrow,
            known("libmaodbc.so").unwrap(),
        );
        assert!(!p.spec.open);
        assert_eq!(p.spec.bytes, 161);
        let p = plan(
            &described(sql::WVARCHAR, 40, 0, "nvarchar"),
            Width::Wide,
            &UNKNOWN,
        );
        assert_eq!(p.spec.bytes, 162);
        assert!(
            p.spec.open,
            "a driver that nobody knows may describe sizes that do not hold"
        );
    }

    #[test]
    fn types_that_nobody_knows_are_text() {
        let p = plan(&described(-9999, 0, 0, "hstore"), Width::Narrow, &UNKNOWN);
        assert_eq!(p.column.column_type, ColumnType::Text);
    }
}
