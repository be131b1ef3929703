//! `Cursor`: rows as BSON.

use onecopy_rows::Format;
use onecopy_rows::sink::BsonOptions;
use onecopy_rows::sink::bson::{DateTimes, Decimals};
use onecopy_wire::bson::MOST_BYTES;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::Cursor;
use crate::stream::RowStream;

/// The document of no elements.
const LEAST_BYTES: usize = 5;

#[pymethods]
impl Cursor {
    /// The rows as BSON, a document each, one behind the other, as a `RowStream`; each chunk holds whole documents. The media
    /// type is ``application/bson``.
    ///
    /// Args:
    ///     decimals: decimals, money and unsigned integers from 2**63 on are Decimal128 (``"decimal128"``) or text
    ///         (``"text"``).
    ///     datetimes: dates and timestamps are datetimes in UTC (``"datetime"``), to the millisecond below, or text as in JSON
    ///         (``"text"``).
    ///     max_size: the longest document, in bytes; MongoDB takes 16 MiB. A row has to be in memory whole.
    ///
    /// Raises:
    ///     ProgrammingError: two columns have the same name, one has none or one with NUL, or rows were fetched already.
    ///     DataError: by the stream: a decimal of more than 34 digits, a date outside of the years 0 to 9999, a document
    ///         longer than ``max_size``.
    ///     ValueError: an option is none of its words, or ``max_size`` not from 5 to 2147483647.
    ///
    /// Copies: none; each cell is converted once (text in UTF-8 copied), into the chunk that goes out.
    ///
    /// >>> onecopy.connect("sqlite::memory:").execute("select 1 as id, 'Zoë' as name").bson().read()
    /// b'\x1c\x00\x00\x00\x10id\x00\x01\x00\x00\x00\x02name\x00\x05\x00\x00\x00Zo\xc3\xab\x00\x00'
    #[pyo3(signature = (*, decimals="decimal128", datetimes="datetime", max_size=MOST_BYTES as i64), text_signature = "($self, *, decimals='decimal128', datetimes='datetime', max_size=2147483647)")]
    fn bson(
        &self,
        py: Python<'_>,
        decimals: &str,
        datetimes: &str,
        max_size: i64,
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
        let max_bytes = usize::try_from(max_size)
            .ok()
            .filter(|n| (LEAST_BYTES..=MOST_BYTES).contains(n))
            .ok_or_else(|| unknown("`max_size` is from 5 to 2147483647 bytes"))?;
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
