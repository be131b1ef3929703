//! [`ParquetWriter`]: writes batches as a Parquet file, one column of a row group after the other.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression as PageCompression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use crate::counted::CountedWrite;
use crate::error::Error;
use crate::format::{Compression, FileFormat};

/// The number of batches in a row group. The batches are in memory until the row group is written.
/// With batches of 2 MiB, a row group has about 16 MiB. Each export of the same rows has the same
/// batches, and therefore the same row groups.
const ROW_GROUP_BATCHES: usize = 8;

/// A row group with at least this number of rows is complete. The number is the default of the
/// `parquet` crate and of pyarrow.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// The largest size in bytes of the dictionary of a column chunk. The dictionary is also limited to
/// an eighth of the column's share of a row group. When the limit is reached, the column continues
/// without a dictionary. In a column of distinct values, a dictionary only costs time and space:
/// with the usual limit of 1 MiB, a file of such columns was 60 % larger.
const DICTIONARY_BYTES: usize = 128 << 10;

/// Writes record batches as a Parquet file.
///
/// A row group is collected as Arrow columns and then encoded column by column. `ArrowWriter` would
/// encode all columns of a batch at the same time, with a dictionary, pages and compression state
/// in memory for each column: 160 MB for 200 columns. Here, only one column at a time needs this
/// memory, which therefore does not grow with the number of columns.
pub(super) struct ParquetWriter<'w, 'o> {
    file: SerializedFileWriter<&'w mut CountedWrite<'o>>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// The batches of the next row group.
    batches: Vec<RecordBatch>,
    n_row_groups: usize,
}

impl<'w, 'o> ParquetWriter<'w, 'o> {
    /// Writes the beginning of the file. `batch_bytes` is the approximate size of a batch in bytes.
    pub(super) fn new(
        out: &'w mut CountedWrite<'o>,
        schema: &SchemaRef,
        file: FileFormat,
        batch_bytes: usize,
    ) -> Result<ParquetWriter<'w, 'o>, Error> {
        let compression = match file.compression() {
            // The default compression level of pyarrow.
            Compression::Zstd => PageCompression::ZSTD(ZstdLevel::try_new(1)?),
            _ => PageCompression::UNCOMPRESSED,
        };
        let share_bytes = ROW_GROUP_BATCHES * batch_bytes / schema.fields().len().max(1);
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
            batches: Vec::with_capacity(ROW_GROUP_BATCHES),
            n_row_groups: 0,
        })
    }

    /// Adds a batch, and writes the row group if the batch completes it.
    pub(super) fn write(&mut self, batch: RecordBatch) -> Result<(), Error> {
        self.batches.push(batch);
        let n_rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        if self.batches.len() == ROW_GROUP_BATCHES || n_rows >= ROW_GROUP_ROWS {
            self.write_row_group()?;
        }
        Ok(())
    }

    fn write_row_group(&mut self) -> Result<(), Error> {
        let writers = self.columns.create_column_writers(self.n_row_groups)?;
        let mut row_group = self.file.next_row_group()?;
        // Each type that a stream makes has one leaf, also a list.
        let columns = self.schema.fields().iter().zip(writers).enumerate();
        for (column, (field, mut writer)) in columns {
            for batch in &self.batches {
                for leaf in compute_leaves(field, batch.column(column))? {
                    writer.write(&leaf)?;
                }
            }
            writer.close()?.append_to_row_group(&mut row_group)?;
        }
        row_group.close()?;
        self.batches.clear();
        self.n_row_groups += 1;
        Ok(())
    }

    /// Returns the number of bytes written to the file so far.
    pub(super) fn n_bytes(&self) -> u64 {
        self.file.bytes_written() as u64
    }

    /// Writes the last row group and the footer.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        if !self.batches.is_empty() {
            self.write_row_group()?;
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
