//! The test queries of `doctor`, for each SQL dialect. None of them writes data.

use std::fmt::Write as _;

use onecopy_rows::Dialect;

/// Test texts in many scripts, each with the name of the script. Within one text, the characters
/// may have different lengths in UTF-8.
pub(super) const SCRIPTS: &[(&str, &str)] = &[
    ("ASCII", "plain text, 0-9"),
    ("Latin", "Žluťoučký kůň, Ærø"),
    ("Greek", "Ξεσκεπάζω"),
    ("Cyrillic", "Съешь ещё"),
    ("Hebrew", "עברית"),
    ("Arabic", "نص عربي"),
    ("Devanagari", "हिन्दी"),
    ("Thai", "ข้อความ"),
    ("Chinese", "漢字与汉字"),
    ("Japanese", "ひらカナ"),
    ("Korean", "한국어"),
    ("marks apart", "e\u{301}n\u{303}"),
    ("emoji", "😀👩\u{200d}👧"),
    ("Gothic", "𐍈𐌰"),
];

/// The number of characters of the long test value. Each character has two bytes in UTF-8, and also
/// in UTF-16.
pub(super) const LONG_CHARS: usize = 1_000_000;
/// The character of which the long test value consists.
pub(super) const LONG_CHAR: char = 'é';
/// The number of rows of the query result with which streaming is tested; `MANY_CHARS` is the
/// number of ASCII characters of each row.
pub(super) const MANY_ROWS: usize = 40_000;
pub(super) const MANY_CHARS: usize = 400;

/// Returns an SQL expression with which the server constructs `text` from code points, so that the
/// text itself is not sent to the server.
pub(super) fn made(dialect: Dialect, text: &str) -> String {
    let code_points = text.chars().map(|c| c as u32);
    match dialect {
        Dialect::Postgres => joined(code_points.map(|c| format!("chr({c})")), " || "),
        Dialect::Sqlite => format!("char({})", joined(code_points.map(|c| c.to_string()), ", ")),
        Dialect::MySql => format!("CONVERT(X'{}' USING utf8mb4)", hex(text.as_bytes())),
        Dialect::SqlServer => joined(text.encode_utf16().map(|u| format!("NCHAR({u})")), " + "),
        _ => quoted(dialect, text),
    }
}

/// Returns an SQL expression that yields 1 if the server received `text` unchanged. `sent` is the
/// SQL that carries the text: a string literal, or the placeholder `?`. The expression compares
/// bytes rather than strings, because a collation may treat different strings as equal.
pub(super) fn arrived(dialect: Dialect, text: &str, sent: &str) -> String {
    let is_equal = match dialect {
        Dialect::MySql => format!(
            "BINARY CONVERT({sent} USING utf8mb4) = X'{}'",
            hex(text.as_bytes())
        ),
        Dialect::SqlServer => {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            format!("CAST({sent} AS varbinary(400)) = 0x{}", hex(&bytes))
        }
        _ => format!("{} = {sent}", made(dialect, text)),
    };
    format!("SELECT CASE WHEN {is_equal} THEN 1 ELSE 0 END")
}

/// Returns `text` as an SQL string literal.
pub(super) fn quoted(dialect: Dialect, text: &str) -> String {
    let prefix = match dialect {
        Dialect::SqlServer => "N",
        _ => "",
    };
    format!("{prefix}'{}'", text.replace('\'', "''"))
}

fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    parts.collect::<Vec<_>>().join(between)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02X}");
        out
    })
}

/// Returns an SQL expression with which the server constructs a long value; `None` for an unknown
/// dialect.
pub(super) fn long(dialect: Dialect) -> Option<String> {
    let c = made(dialect, &LONG_CHAR.to_string());
    Some(match dialect {
        Dialect::Postgres | Dialect::MySql => format!("SELECT repeat({c}, {LONG_CHARS})"),
        Dialect::Sqlite => format!("SELECT replace(hex(zeroblob({LONG_CHARS})), '00', {c})"),
        Dialect::SqlServer => {
            format!("SELECT REPLICATE(CAST({c} AS nvarchar(max)), {LONG_CHARS})")
        }
        _ => return None,
    })
}

/// Returns an SQL expression for the number of characters of a parameter; `None` for an unknown
/// dialect.
pub(super) fn length_of_parameter(dialect: Dialect) -> Option<&'static str> {
    Some(match dialect {
        Dialect::Postgres | Dialect::MySql => "SELECT char_length(?)",
        Dialect::Sqlite => "SELECT length(?)",
        Dialect::SqlServer => "SELECT LEN(?)",
        _ => return None,
    })
}

/// Returns a query that yields [`MANY_ROWS`] rows of [`MANY_CHARS`] characters and reads no table;
/// `None` for an unknown dialect.
pub(super) fn many(dialect: Dialect) -> Option<String> {
    let text = match dialect {
        Dialect::Postgres | Dialect::MySql => format!("repeat('x', {MANY_CHARS})"),
        Dialect::Sqlite => format!("substr(hex(zeroblob({MANY_CHARS})), 1, {MANY_CHARS})"),
        Dialect::SqlServer => {
            return Some(format!(
                "SELECT TOP ({MANY_ROWS}) CAST(REPLICATE(N'x', {MANY_CHARS}) AS nvarchar({MANY_CHARS})) \
                 FROM sys.all_columns AS a CROSS JOIN sys.all_columns AS b"
            ));
        }
        _ => return None,
    };
    // The recursion yields 200 numbers, which are combined with each other to 40,000 rows. 40,000
    // recursions would exceed the usual limit of 1,000.
    Some(format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) \
         SELECT {text} FROM n AS a CROSS JOIN n AS b"
    ))
}

/// A test value that must arrive unchanged: its name, the SQL expression that yields it, and its
/// expected text in CSV.
pub(super) struct Exact {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    pub(super) field: &'static str,
}

const fn exact(name: &'static str, sql: &'static str, field: &'static str) -> Exact {
    Exact { name, sql, field }
}

const DIGITS: &str = "12345678901234567890123456789012345.678";
const BIGGEST: &str = "9223372036854775807";

/// Returns a test value for each type whose values some drivers change, such as decimals of 38
/// digits.
pub(super) fn exact_values(dialect: Dialect) -> &'static [Exact] {
    const POSTGRES: &[Exact] = &[
        exact("integer of 64 bit", "SELECT 9223372036854775807", BIGGEST),
        exact(
            "decimal of 38 digits",
            "SELECT CAST('12345678901234567890123456789012345.678' AS numeric(38, 3))",
            DIGITS,
        ),
        exact(
            "double",
            "SELECT CAST('0.30000000000000004' AS double precision)",
            "0.30000000000000004",
        ),
        exact(
            "time stamp",
            "SELECT CAST('2024-02-29 23:59:58.123456' AS timestamp(6))",
            "2024-02-29T23:59:58.123456",
        ),
        exact(
            "time stamp with offset",
            "SELECT CAST('2024-02-29 23:59:58.123456+05:30' AS timestamptz)",
            "2024-02-29T18:29:58.123456+00:00",
        ),
    ];
    const MYSQL: &[Exact] = &[
        exact("integer of 64 bit", "SELECT 9223372036854775807", BIGGEST),
        exact(
            "decimal of 38 digits",
            "SELECT CAST('12345678901234567890123456789012345.678' AS DECIMAL(38, 3))",
            DIGITS,
        ),
        exact(
            "double",
            "SELECT CAST('0.30000000000000004' AS DOUBLE)",
            "0.30000000000000004",
        ),
        exact(
            "time stamp",
            "SELECT CAST('2024-02-29 23:59:58.123456' AS DATETIME(6))",
            "2024-02-29T23:59:58.123456",
        ),
    ];
    const SQL_SERVER: &[Exact] = &[
        exact(
            "integer of 64 bit",
            "SELECT CAST(9223372036854775807 AS bigint)",
            BIGGEST,
        ),
        exact(
            "decimal of 38 digits",
            "SELECT CAST('12345678901234567890123456789012345.678' AS decimal(38, 3))",
            DIGITS,
        ),
        exact(
            "double",
            "SELECT CAST('0.30000000000000004' AS float)",
            "0.30000000000000004",
        ),
        exact(
            "time stamp",
            "SELECT CAST('2024-02-29T23:59:58.123456' AS datetime2(6))",
            "2024-02-29T23:59:58.123456",
        ),
        exact(
            "time stamp with offset",
            "SELECT CAST('2024-02-29T23:59:58.123456+05:30' AS datetimeoffset(6))",
            "2024-02-29T23:59:58.123456+05:30",
        ),
    ];
    const SQLITE: &[Exact] = &[
        exact("integer of 64 bit", "SELECT 9223372036854775807", BIGGEST),
        exact("double", "SELECT 0.1e0 + 0.2e0", "0.30000000000000004"),
    ];
    match dialect {
        Dialect::Postgres => POSTGRES,
        Dialect::MySql => MYSQL,
        Dialect::SqlServer => SQL_SERVER,
        Dialect::Sqlite => SQLITE,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_made_from_code_points_alone() {
        assert_eq!(made(Dialect::Postgres, "é😀"), "chr(233) || chr(128512)");
        assert_eq!(made(Dialect::Sqlite, "é😀"), "char(233, 128512)");
        assert_eq!(
            made(Dialect::SqlServer, "é😀"),
            "NCHAR(233) + NCHAR(55357) + NCHAR(56832)"
        );
        for dialect in [
            Dialect::Postgres,
            Dialect::MySql,
            Dialect::SqlServer,
            Dialect::Sqlite,
        ] {
            for (script, text) in SCRIPTS {
                assert!(made(dialect, text).is_ascii(), "{script}");
            }
        }
    }

    #[test]
    fn a_quote_inside_a_literal_is_doubled() {
        assert_eq!(quoted(Dialect::SqlServer, "a'b"), "N'a''b'");
    }
}
