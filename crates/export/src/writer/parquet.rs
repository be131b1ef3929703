//! [`ParquetWriter`]: writes batches as a Parquet file, one column of a row group after the other.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use onecopy_text::{Ledger, Stage, Tally};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression as PageCompression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use super::groups::{RowGroup, RowGroups};
use crate::counted::CountedWrite;
use crate::error::Error;
use crate::format::{Compression, FileFormat};

/// The size in bytes at which a row group ends. Its Arrow columns are in memory until the row group
/// is written.
const ROW_GROUP_BYTES: usize = 16 << 20;

/// The largest number of rows of a row group. It is the default of the `parquet` crate and of
/// pyarrow.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// The largest size in bytes of the dictionary of a column chunk. The dictionary is also limited to
/// an eighth of the column's share of a row group. When the limit is reached, the column continues
/// without a dictionary. In a column of distinct values, a dictionary only costs time and space:
/// with the usual limit of 1 MiB, a file of such columns was 60 % larger.
const DICTIONARY_BYTES: usize = 128 << 10;

/// Writes record batches as a Parquet file.
///
/// A row group is collected as Arrow columns and then encoded column by column. `ArrowWriter` would
/// encode all columns of a batch at once, with a dictionary, pages and compression state in memory
/// for each column: 160 MB for 200 columns. Here, only one column at a time needs this memory,
/// which therefore does not grow with the number of columns.
pub(super) struct ParquetWriter<'w, 'o> {
    file: SerializedFileWriter<&'w mut CountedWrite<'o>>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    groups: RowGroups,
    n_row_groups: usize,
    ledger: Ledger,
}

impl<'w, 'o> ParquetWriter<'w, 'o> {
    /// Writes the beginning of the file. `ledger` counts the text that is copied to join slices of
    /// batches.
    pub(super) fn new(
        out: &'w mut CountedWrite<'o>,
        schema: &SchemaRef,
        file: FileFormat,
        ledger: &Ledger,
    ) -> Result<ParquetWriter<'w, 'o>, Error> {
        let compression = match file.compression() {
            // The default compression level of pyarrow.
            Compression::Zstd => PageCompression::ZSTD(ZstdLevel::try_new(1)?),
            _ => PageCompression::UNCOMPRESSED,
        };
        let share_bytes = ROW_GROUP_BYTES / schema.fields().len().max(1);
        let properties = WriterProperties::builder()
            .set_created_by(format!("onecopy {}", env!("CARGO_PKG_VERSION")))
            .set_compression(compression)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_page_size_limit((share_bytes / 8).clamp(1, DICTIONARY_BYTES))
            .build();
        // `ArrowWriter` also adds the Arrow schema to the metadata of the file.
        let writer = ArrowWriter::try_new(out, Arc::clone(schema), Some(properties))?;
        let (file, columns) = writer.into_serialized_writer()?;
        Ok(ParquetWriter {
            file,
            columns,
            schema: Arc::clone(schema),
            groups: RowGroups::new(ROW_GROUP_BYTES, ROW_GROUP_ROWS),
            n_row_groups: 0,
            ledger: ledger.clone(),
        })
    }

    /// Adds a batch, and writes the row groups that are now complete.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        for group in self.groups.add(batch) {
            self.write_row_group(group)?;
        }
        Ok(())
    }

    fn write_row_group(&mut self, group: RowGroup) -> Result<(), Error> {
        let writers = self.columns.create_column_writers(self.n_row_groups)?;
        let mut row_group = self.file.next_row_group()?;
        let mut tally = Tally::default();
        // Each type of an `ArrowStream`, also a list, has exactly one Parquet leaf column.
        let columns = group.into_chunks(&mut tally).zip(self.schema.fields());
        for ((chunks, field), mut writer) in columns.zip(writers) {
            for chunk in chunks? {
                for leaf in compute_leaves(field, &chunk)? {
                    writer.write(&leaf)?;
                }
            }
            writer.close()?.append_to_row_group(&mut row_group)?;
        }
        tally.enter(&self.ledger, Stage::Encode);
        row_group.close()?;
        self.n_row_groups += 1;
        Ok(())
    }

    /// Returns the number of bytes written to the file so far.
    pub(super) fn n_bytes(&self) -> u64 {
        self.file.bytes_written() as u64
    }

    /// Writes the last row group and the footer.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let last = self.groups.take();
        if last.n_rows > 0 {
            self.write_row_group(last)?;
        }
        self.file.close()?;
        Ok(())
    }
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Error {
        Error::Format(format!("the Parquet file cannot be written: {error}"))
    }
}
