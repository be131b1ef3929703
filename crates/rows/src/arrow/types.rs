//! `DataType` and `Field`: the Arrow types that databases need, with their format strings in the C
//! data interface and their names in Arrow's libraries.
//!
//! Source:
//! <https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings>.

use std::fmt;

/// The unit of a column of times or timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// A unit of one second.
    Second,
    /// A unit of one millisecond.
    Milli,
    /// A unit of one microsecond.
    Micro,
    /// A unit of one nanosecond.
    Nano,
}

impl TimeUnit {
    /// Returns the coarsest unit that can represent `digits` digits of a fraction of a second.
    #[must_use]
    pub fn of_digits(digits: u8) -> TimeUnit {
        match digits {
            0 => TimeUnit::Second,
            1..=3 => TimeUnit::Milli,
            4..=6 => TimeUnit::Micro,
            _ => TimeUnit::Nano,
        }
    }

    /// Returns how many of this time unit make one second, for example 1,000 for milliseconds.
    #[must_use]
    pub fn per_second(self) -> i64 {
        match self {
            TimeUnit::Second => 1,
            TimeUnit::Milli => 1_000,
            TimeUnit::Micro => 1_000_000,
            TimeUnit::Nano => 1_000_000_000,
        }
    }

    /// Returns the name of the unit in Arrow's libraries: `s`, `ms`, `us` or `ns`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Second => "s",
            TimeUnit::Milli => "ms",
            TimeUnit::Micro => "us",
            TimeUnit::Nano => "ns",
        }
    }

    fn letter(self) -> &'static str {
        match self {
            TimeUnit::Second => "s",
            TimeUnit::Milli => "m",
            TimeUnit::Micro => "u",
            TimeUnit::Nano => "n",
        }
    }

    const ALL: [TimeUnit; 4] = [
        TimeUnit::Second,
        TimeUnit::Milli,
        TimeUnit::Micro,
        TimeUnit::Nano,
    ];

    fn of_letter(letter: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|u| u.letter() == letter)
    }

    fn of_name(name: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|u| u.name() == name)
    }
}

/// The Arrow type of an array or column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataType {
    /// A column of only NULLs, without a buffer.
    Null,
    /// Booleans, one bit each.
    Bool,
    /// Integers. The width is `bits`: 8, 16, 32 or 64 bits.
    Int {
        /// The width of a value in bits.
        bits: u8,
        /// `true` if the values are unsigned.
        unsigned: bool,
    },
    /// 16-bit floats. This crate only imports such columns.
    Float16,
    /// 32-bit floats.
    Float32,
    /// 64-bit floats.
    Float64,
    /// Exact decimals. The width is `bits`: 32, 64, 128 or 256 bits.
    Decimal {
        /// The width of a value in bits: 32, 64, 128 or 256. This crate imports columns of 32 and
        /// 64 bits, but never creates them.
        bits: u16,
        /// The total number of decimal digits of a value.
        precision: u8,
        /// The number of digits after the decimal point.
        scale: i8,
    },
    /// Text with offsets of 32 bits: up to 2 GiB in an array.
    Utf8,
    /// Text with offsets of 64 bits.
    LargeUtf8,
    /// Text in Arrow's view layout. This crate imports such columns, but never creates them.
    Utf8View,
    /// Bytes with offsets of 32 bits.
    Binary,
    /// Bytes with offsets of 64 bits.
    LargeBinary,
    /// Bytes in Arrow's view layout. This crate imports such columns, but never creates them.
    BinaryView,
    /// Byte strings of this length in bytes. This crate only imports such columns.
    FixedBinary(usize),
    /// UUIDs: 16 bytes each, with the extension name `arrow.uuid`.
    Uuid,
    /// Dates, as days since 1970-01-01.
    Date32,
    /// Whole days, in milliseconds since 1970-01-01; this crate imports them, but never creates
    /// them.
    Date64,
    /// Time since midnight: in 32 bits for seconds and milliseconds, in 64 bits for finer units.
    Time(TimeUnit),
    /// Timestamps, as the time since 1970-01-01 00:00: in UTC if `zone` is set, otherwise without a
    /// zone.
    Timestamp {
        /// The unit of the integers in which the timestamps are stored.
        unit: TimeUnit,
        /// The name of the time zone, as in Arrow's format string; `None` for a timestamp without a
        /// zone.
        zone: Option<String>,
    },
    /// Lists of values of one type, with offsets of 32 bits.
    List(Box<DataType>),
    /// Indices into a separate array of values. This crate can import, but not create, this type.
    Dictionary {
        /// The type of the indices, an integer type. An index refers to a value of the dictionary.
        index: Box<DataType>,
        /// The type of the dictionary's values, to which the indices refer.
        value: Box<DataType>,
    },
}

impl DataType {
    /// Returns the format string of this type in the C data interface.
    #[must_use]
    pub fn format(&self) -> String {
        match self {
            DataType::Null => "n".into(),
            DataType::Bool => "b".into(),
            DataType::Int { bits, unsigned } => {
                let letter = match bits {
                    8 => 'c',
                    16 => 's',
                    32 => 'i',
                    _ => 'l',
                };
                let letter = if *unsigned {
                    letter.to_ascii_uppercase()
                } else {
                    letter
                };
                letter.into()
            }
            DataType::Float16 => "e".into(),
            DataType::Float32 => "f".into(),
            DataType::Float64 => "g".into(),
            DataType::Decimal {
                bits,
                precision,
                scale,
            } => match bits {
                128 => format!("d:{precision},{scale}"),
                bits => format!("d:{precision},{scale},{bits}"),
            },
            DataType::Utf8 => "u".into(),
            DataType::LargeUtf8 => "U".into(),
            DataType::Utf8View => "vu".into(),
            DataType::Binary => "z".into(),
            DataType::LargeBinary => "Z".into(),
            DataType::BinaryView => "vz".into(),
            DataType::FixedBinary(n) => format!("w:{n}"),
            DataType::Uuid => "w:16".into(),
            DataType::Date32 => "tdD".into(),
            DataType::Date64 => "tdm".into(),
            DataType::Time(unit) => format!("tt{}", unit.letter()),
            DataType::Timestamp { unit, zone } => {
                format!("ts{}:{}", unit.letter(), zone.as_deref().unwrap_or(""))
            }
            DataType::List(_) => "+l".into(),
            DataType::Dictionary { index, .. } => index.format(),
        }
    }

    /// Parses a format string of the C data interface; `None` for a type that this crate does not
    /// import.
    #[must_use]
    pub fn of_format(format: &str) -> Option<DataType> {
        Some(match format {
            "n" => DataType::Null,
            "b" => DataType::Bool,
            "c" => DataType::int(8),
            "s" => DataType::int(16),
            "i" => DataType::int(32),
            "l" => DataType::int(64),
            "C" => DataType::uint(8),
            "S" => DataType::uint(16),
            "I" => DataType::uint(32),
            "L" => DataType::uint(64),
            "e" => DataType::Float16,
            "f" => DataType::Float32,
            "g" => DataType::Float64,
            "u" => DataType::Utf8,
            "U" => DataType::LargeUtf8,
            "vu" => DataType::Utf8View,
            "z" => DataType::Binary,
            "Z" => DataType::LargeBinary,
            "vz" => DataType::BinaryView,
            "tdD" => DataType::Date32,
            "tdm" => DataType::Date64,
            other => match other.split_once(':') {
                Some(("w", bytes)) => DataType::FixedBinary(bytes.parse().ok()?),
                Some(("d", rest)) => decimal(rest)?,
                Some((head, zone)) => DataType::Timestamp {
                    unit: TimeUnit::of_letter(head.strip_prefix("ts")?)?,
                    zone: (!zone.is_empty()).then(|| zone.to_owned()),
                },
                None => DataType::Time(TimeUnit::of_letter(other.strip_prefix("tt")?)?),
            },
        })
    }

    /// Parses a type name as Arrow's libraries print it (`int64`, `string`, `decimal128(12, 2)`,
    /// `timestamp[us, tz=UTC]`); `None` for an unknown type, and for a type that this crate can
    /// import, but not create.
    #[must_use]
    pub fn of_name(name: &str) -> Option<DataType> {
        let name = name.trim();
        let inside = |head: &str, open: char, close: char| {
            let rest = name.strip_prefix(head)?.trim_start();
            rest.strip_prefix(open)?.strip_suffix(close)
        };
        Some(match name {
            "null" => DataType::Null,
            "bool" => DataType::Bool,
            "int8" => DataType::int(8),
            "int16" => DataType::int(16),
            "int32" => DataType::int(32),
            "int64" => DataType::int(64),
            "uint8" => DataType::uint(8),
            "uint16" => DataType::uint(16),
            "uint32" => DataType::uint(32),
            "uint64" => DataType::uint(64),
            "float" | "float32" => DataType::Float32,
            "double" | "float64" => DataType::Float64,
            "string" | "utf8" => DataType::Utf8,
            "large_string" | "large_utf8" => DataType::LargeUtf8,
            "binary" => DataType::Binary,
            "large_binary" => DataType::LargeBinary,
            "uuid" => DataType::Uuid,
            "date32" | "date32[day]" => DataType::Date32,
            _ => {
                if let Some(item) = inside("list", '<', '>') {
                    // Arrow's libraries write the name of the element field, which is usually
                    // `item`.
                    let (_, item) = item.split_once(": ").unwrap_or(("", item));
                    return DataType::of_name(item).map(Box::new).map(DataType::List);
                }
                for head in ["decimal128", "decimal256"] {
                    if let Some(rest) = inside(head, '(', ')') {
                        let bits = &head["decimal".len()..];
                        let rest: String = rest.split_whitespace().collect();
                        return decimal(&format!("{rest},{bits}"));
                    }
                }
                for head in ["time32", "time64"] {
                    if let Some(rest) = inside(head, '[', ']') {
                        let unit = TimeUnit::of_name(rest.trim())?;
                        let is_short = matches!(unit, TimeUnit::Second | TimeUnit::Milli);
                        return (is_short == (head == "time32")).then_some(DataType::Time(unit));
                    }
                }
                let rest = inside("timestamp", '[', ']')?;
                // White space within the name of a time zone is kept, because it is part of the
                // name.
                let (unit, zone) = match rest.split_once(',') {
                    Some((unit, zone)) => {
                        let zone = zone.trim_start();
                        (unit, zone.strip_prefix("tz=").unwrap_or(zone))
                    }
                    None => (rest, ""),
                };
                DataType::Timestamp {
                    unit: TimeUnit::of_name(unit.trim())?,
                    zone: (!zone.is_empty()).then(|| zone.to_owned()),
                }
            }
        })
    }

    /// Returns the signed integer type of `bits` bits.
    #[must_use]
    pub const fn int(bits: u8) -> DataType {
        let unsigned = false;
        DataType::Int { bits, unsigned }
    }

    /// Returns the unsigned integer type of `bits` bits.
    #[must_use]
    pub const fn uint(bits: u8) -> DataType {
        let unsigned = true;
        DataType::Int { bits, unsigned }
    }
}

/// Parses the parameters of a decimal type, `precision,scale[,bits]`; `None` if they are invalid.
fn decimal(text: &str) -> Option<DataType> {
    let mut parts = text.split(',');
    let precision = parts.next()?.parse().ok()?;
    let scale = parts.next()?.parse().ok()?;
    let bits = parts.next().map_or(Some(128), |bits| bits.parse().ok())?;
    let most = match bits {
        32 => 9,
        64 => 18,
        128 => 38,
        256 => 76,
        _ => return None,
    };
    (1..=most)
        .contains(&precision)
        .then_some(DataType::Decimal {
            bits,
            precision,
            scale,
        })
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Null => f.write_str("null"),
            DataType::Bool => f.write_str("bool"),
            DataType::Int { bits, unsigned } => {
                write!(f, "{}int{bits}", if *unsigned { "u" } else { "" })
            }
            DataType::Float16 => f.write_str("halffloat"),
            DataType::Float32 => f.write_str("float"),
            DataType::Float64 => f.write_str("double"),
            DataType::Decimal {
                bits,
                precision,
                scale,
            } => write!(f, "decimal{bits}({precision}, {scale})"),
            DataType::Utf8 => f.write_str("string"),
            DataType::LargeUtf8 => f.write_str("large_string"),
            DataType::Utf8View => f.write_str("string_view"),
            DataType::Binary => f.write_str("binary"),
            DataType::LargeBinary => f.write_str("large_binary"),
            DataType::BinaryView => f.write_str("binary_view"),
            DataType::FixedBinary(n) => write!(f, "fixed_size_binary[{n}]"),
            DataType::Uuid => f.write_str("uuid"),
            DataType::Date32 => f.write_str("date32"),
            DataType::Date64 => f.write_str("date64"),
            DataType::Time(unit @ (TimeUnit::Second | TimeUnit::Milli)) => {
                write!(f, "time32[{}]", unit.name())
            }
            DataType::Time(unit) => write!(f, "time64[{}]", unit.name()),
            DataType::Timestamp { unit, zone: None } => write!(f, "timestamp[{}]", unit.name()),
            DataType::Timestamp {
                unit,
                zone: Some(zone),
            } => write!(f, "timestamp[{}, tz={zone}]", unit.name()),
            DataType::List(item) => write!(f, "list<item: {item}>"),
            DataType::Dictionary { index, value } => write!(f, "dictionary<{value}, {index}>"),
        }
    }
}

/// The name and the type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name of the column. It may be empty, and two columns may have the same name.
    pub name: String,
    /// The Arrow type of the column.
    pub data_type: DataType,
    /// `true` if the column may contain NULL.
    pub nullable: bool,
}

/// Returns `true` if this crate can create columns of this type, `false` if it only imports them.
pub(crate) fn is_made(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16
        | DataType::Utf8View
        | DataType::BinaryView
        | DataType::FixedBinary(_)
        | DataType::Date64
        | DataType::Dictionary { .. } => false,
        DataType::Decimal { bits, .. } => matches!(bits, 128 | 256),
        DataType::List(item) => is_made(item),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_names_are_read_as_they_are_written() {
        let stamp = |unit, zone: Option<&str>| DataType::Timestamp {
            unit,
            zone: zone.map(str::to_owned),
        };
        let decimal = |bits, precision, scale| DataType::Decimal {
            bits,
            precision,
            scale,
        };
        for (made, format, name) in [
            (DataType::Null, "n", "null"),
            (DataType::Bool, "b", "bool"),
            (DataType::int(8), "c", "int8"),
            (DataType::uint(16), "S", "uint16"),
            (DataType::int(64), "l", "int64"),
            (DataType::Float32, "f", "float"),
            (DataType::Float64, "g", "double"),
            (decimal(128, 12, 2), "d:12,2", "decimal128(12, 2)"),
            (decimal(256, 60, -3), "d:60,-3,256", "decimal256(60, -3)"),
            (DataType::LargeUtf8, "U", "large_string"),
            (DataType::Binary, "z", "binary"),
            (DataType::Date32, "tdD", "date32"),
            (DataType::Time(TimeUnit::Milli), "ttm", "time32[ms]"),
            (DataType::Time(TimeUnit::Nano), "ttn", "time64[ns]"),
            (stamp(TimeUnit::Micro, None), "tsu:", "timestamp[us]"),
            (
                stamp(TimeUnit::Second, Some("UTC")),
                "tss:UTC",
                "timestamp[s, tz=UTC]",
            ),
            (
                stamp(TimeUnit::Nano, Some(" a zone\t, tz=b] ")),
                "tsn: a zone\t, tz=b] ",
                "timestamp[ns, tz= a zone\t, tz=b] ]",
            ),
        ] {
            assert_eq!(made.format(), format);
            assert_eq!(DataType::of_format(format).as_ref(), Some(&made));
            assert_eq!(made.to_string(), name);
            assert_eq!(DataType::of_name(name), Some(made));
        }
    }

    #[test]
    fn names_are_read_with_white_space_around_their_parts() {
        for (name, again) in [
            (" int64 ", "int64"),
            ("decimal128 ( 12 , 2 )", "decimal128(12, 2)"),
            ("time32[ ms ]", "time32[ms]"),
            ("timestamp[ us ,  tz=UTC]", "timestamp[us, tz=UTC]"),
            ("timestamp[us,UTC]", "timestamp[us, tz=UTC]"),
            ("timestamp[us, tz=]", "timestamp[us]"),
            ("list<int64>", "list<item: int64>"),
            ("list<e: list< date32 >>", "list<item: list<item: date32>>"),
        ] {
            let made = DataType::of_name(name).map(|made| made.to_string());
            assert_eq!(made.as_deref(), Some(again), "{name}");
        }
    }

    #[test]
    fn what_is_no_type_is_refused() {
        for format in [
            "", "+s", "d:0,0", "d:39,0", "d:5,0,7", "tsx:", "tss", "tt", "ttm:", "w:x", "é",
        ] {
            assert_eq!(DataType::of_format(format), None, "{format}");
        }
        for name in [
            "int",
            "decimal128(39,0)",
            "time32[us]",
            "timestamp[d]",
            "list<int>",
            "list<int64",
        ] {
            assert_eq!(DataType::of_name(name), None, "{name}");
        }
    }
}
