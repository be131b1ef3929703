//! Writes the rows of a statement in any format: the entry point is [`write_rows`].
//!
//! | module | contents |
//! |---|---|
//! | `text` | JSON, NDJSON, CSV, TSV and BSON, written in chunks and optionally compressed |
//! | `columns` | Arrow IPC and Parquet, written in batches |
//! | `parquet` | the row groups of a Parquet file |

mod columns;
mod parquet;
mod text;

use std::io::Write;

use onecopy_rows::Schema;
use onecopy_rows::arrow::{DataType, Field, type_of};
use onecopy_rows::connect::Statement;
use onecopy_text::Ledger;

use crate::counted::CountedWrite;
use crate::error::Error;
use crate::format::{FileFormat, Format};
use crate::observer::Observer;

/// The options of [`write_rows`].
#[derive(Clone, Debug)]
pub struct RowOptions {
    /// The format of the output and its compression.
    pub file: FileFormat,
    /// The requested Arrow types of columns, each with the name of its column. Only Arrow and
    /// Parquet use them.
    pub types: Vec<(String, DataType)>,
    /// The counters to which the number of converted and copied bytes of text is added.
    pub ledger: Ledger,
}

impl RowOptions {
    /// Creates options for this format, without types and without counters.
    #[must_use]
    pub fn new(file: FileFormat) -> RowOptions {
        RowOptions {
            file,
            types: Vec::new(),
            ledger: Ledger::off(),
        }
    }
}

/// The description of a column of written rows, for a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenColumn {
    /// The name of the column.
    pub name: String,
    /// The type of the column as Arrow's libraries print it; `None` if the format has no types and
    /// the database does not describe the column (SQLite).
    pub data_type: Option<String>,
    /// The type of the column as the database or driver reports it; empty if it reports none.
    pub database_type: String,
}

/// The result of [`write_rows`].
#[derive(Clone, Debug)]
pub struct Written {
    /// The number of rows.
    pub n_rows: u64,
    /// The number of bytes that were written to the output, after compression.
    pub n_bytes: u64,
    /// The BLAKE3 hash of the written bytes; `None` if it was not requested.
    pub hash: Option<blake3::Hash>,
    /// The columns of the rows.
    pub columns: Vec<WrittenColumn>,
}

/// Writes all rows of `statement` to `out` in bounded memory, and converts each cell once. If
/// `hashed`, the BLAKE3 hash of the written bytes is computed.
///
/// After an error, the output in `out` is truncated. A reader can detect this, except for NDJSON,
/// CSV, TSV and BSON without compression.
///
/// # Errors
/// [`Error::Rows`], [`Error::Format`], [`Error::Write`] with the error of `out`, or
/// [`Error::Stopped`].
pub fn write_rows(
    statement: Statement,
    options: &RowOptions,
    out: &mut (dyn Write + Send),
    hashed: bool,
    observer: &mut dyn Observer,
) -> Result<Written, Error> {
    let mut counted = CountedWrite::new(out, hashed);
    let schema = statement.schema().clone();
    let written = match options.file.format() {
        Format::Arrow | Format::Parquet => {
            columns::write(statement, options, &mut counted, observer)
                .map(|(n_rows, fields)| (n_rows, Some(fields)))
        }
        _ => text::write(statement, options, &mut counted, observer).map(|n_rows| (n_rows, None)),
    };
    // The encoders report an error of the destination as an error of their own.
    if let Some(error) = counted.take_error() {
        return Err(Error::Write(error));
    }
    let (n_rows, fields) = written?;
    Ok(Written {
        n_rows,
        n_bytes: counted.n_bytes(),
        hash: counted.hash(),
        columns: described(&schema, fields),
    })
}

fn described(schema: &Schema, fields: Option<Vec<Field>>) -> Vec<WrittenColumn> {
    let columns = schema.columns.iter().enumerate();
    columns
        .map(|(i, column)| {
            let field = fields.as_ref().and_then(|fields| fields.get(i));
            let data_type = field
                .map(|f| f.data_type.clone())
                .or_else(|| type_of(column));
            WrittenColumn {
                name: column.name.clone(),
                data_type: data_type.map(|made| made.to_string()),
                database_type: column.type_name.clone(),
            }
        })
        .collect()
}
