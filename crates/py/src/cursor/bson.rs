//! `Cursor.bson`: returns the rows as a stream of BSON documents.

use onecopy_rows::Format;
use onecopy_rows::sink::BsonOptions;
use onecopy_rows::sink::bson::{DateTimes, Decimals};
use onecopy_wire::bson::MOST_BYTES;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::Cursor;
use crate::stream::RowStream;

/// The size of an empty BSON document in bytes, the minimum of `max_bytes`.
const LEAST_BYTES: usize = 5;

#[pymethods]
impl Cursor {
    /// Returns the rows as concatenated BSON documents, one for each row. Each chunk of the
    /// `RowStream` contains only complete documents. The media type is ``application/bson``.
    ///
    /// Args:
    ///     decimals: the BSON type for decimals, money and unsigned integers from 2**63 on:
    ///         Decimal128 (``"decimal128"``) or string (``"text"``).
    ///     datetimes: the BSON type for dates and timestamps: datetime in UTC (``"datetime"``),
    ///         rounded down to milliseconds, or a string as in JSON (``"text"``).
    ///     max_bytes: the largest size of a document, in bytes; MongoDB accepts 16 MiB. A whole row
    ///         has to fit into memory.
    ///
    /// Raises:
    ///     ProgrammingError: two columns have the same name, a column has no name or a name with
    ///         NUL, or rows were fetched already.
    ///     DataError: from the stream: a decimal of more than 34 digits, a date outside of the
    ///         years 0 to 9999, a document longer than ``max_bytes``.
    ///     ValueError: an option has an unknown value, or ``max_bytes`` is not from 5 to
    ///         2147483647.
    ///
    /// Copies: UTF-8 text is copied once, and every other cell is converted once. Both are written
    /// directly into the returned chunk.
    ///
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1 as id, 'Zoë' as name").bson().read()
    /// b'\x1c\x00\x00\x00\x10id\x00\x01\x00\x00\x00\x02name\x00\x05\x00\x00\x00Zo\xc3\xab\x00\x00'
    #[pyo3(
        signature = (*, decimals="decimal128", datetimes="datetime", max_bytes=MOST_BYTES as i64),
        text_signature =
            "($self, *, decimals='decimal128', datetimes='datetime', max_bytes=2147483647)"
    )]
    fn bson(
        &self,
        py: Python<'_>,
        decimals: &str,
        datetimes: &str,
        max_bytes: i64,
    ) -> PyResult<RowStream> {
        let decimals = match decimals {
            "decimal128" => Decimals::Decimal128,
            "text" => Decimals::Text,
            _ => return Err(unknown("`decimals` is neither \"decimal128\" nor \"text\"")),
        };
        let datetimes = match datetimes {
            "datetime" => DateTimes::DateTime,
            "text" => DateTimes::Text,
            _ => return Err(unknown("`datetimes` is neither \"datetime\" nor \"text\"")),
        };
        let max_bytes = usize::try_from(max_bytes)
            .ok()
            .filter(|n| (LEAST_BYTES..=MOST_BYTES).contains(n))
            .ok_or_else(|| unknown("`max_bytes` is from 5 to 2147483647 bytes"))?;
        self.stream(
            py,
            Format::Bson(BsonOptions {
                decimals,
                datetimes,
                max_bytes,
            }),
        )
    }
}

fn unknown(message: &'static str) -> PyErr {
    PyValueError::new_err(message)
}
