//! Writes an Arrow stream as an Arrow IPC or Parquet file. A second thread reads the next batches
//! while the current one is encoded and compressed.

use std::io::{self, BufWriter};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, SchemaRef};
use onecopy_rows::arrow::{ArrowOptions, ArrowStream, DataType, Field, TimeUnit, type_of};
use onecopy_rows::arrow_c::Batches;
use onecopy_rows::connect::Statement;
use onecopy_rows::{Error as RowsError, ErrorKind, Schema};

use super::RowOptions;
use super::parquet::ParquetWriter;
use crate::arrow_array::{next_batch, schema_of};
use crate::counted::CountedWrite;
use crate::error::Error;
use crate::format::{Compression, FileFormat, Format};
use crate::observer::Observer;

/// The approximate size of a batch in bytes.
const BATCH_BYTES: usize = 2 << 20;

/// The capacity of the queue of batches that were read and are not encoded yet. When the queue is
/// full, the reader reads one more batch, and then waits until the queue has space.
const WAITING_BATCHES: usize = 1;

/// Writes all rows of a statement; returns their number, and the columns as Arrow fields.
pub(super) fn write(
    statement: Statement,
    options: &RowOptions,
    out: &mut CountedWrite<'_>,
    observer: &mut dyn Observer,
) -> Result<(u64, Vec<Field>), Error> {
    let is_parquet = options.file.format() == Format::Parquet;
    if is_parquet {
        check_names(statement.schema())?;
    }
    let arrow = ArrowOptions {
        batch_bytes: BATCH_BYTES,
        types: match is_parquet {
            true => parquet_types(statement.schema(), &options.types),
            false => options.types.clone(),
        },
    };
    let mut stream = ArrowStream::new(statement, &arrow, &options.ledger)?;
    observer.cancels(stream.cancel_handle());
    let fields = stream.fields()?;
    let schema = schema_of(&fields)?;
    let mut writer = match is_parquet {
        true => BatchWriter::Parquet(Box::new(ParquetWriter::new(
            out,
            &schema,
            options.file,
            BATCH_BYTES,
        )?)),
        false => BatchWriter::Ipc(Box::new(ipc_writer(out, &schema, options.file)?)),
    };
    let cancel = stream.cancel_handle();
    let (sender, batches) = sync_channel(WAITING_BATCHES);
    let n_rows = thread::scope(|scope| {
        let reader = thread::Builder::new()
            .name("batches".to_owned())
            .spawn_scoped(scope, || read_batches(&mut stream, &schema, sender))
            .map_err(not_started)?;
        let written = write_batches(batches, &mut writer, observer);
        if written.is_err() {
            // The reading thread may be waiting for the database, and must end.
            cancel.cancel();
        }
        let read = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
        written.and_then(|n_rows| read.map(|()| n_rows))
    })?;
    writer.finish()?;
    Ok((n_rows, fields))
}

fn not_started(source: io::Error) -> Error {
    let message = format!(
        "a thread that reads rows cannot be started: {source}\nraise the limit of threads (`ulimit -u`)"
    );
    Error::Rows(RowsError::new(ErrorKind::Operational, message))
}

/// Sends all batches to `batches`. Stops early if the receiver was dropped, as after a write error.
fn read_batches(
    stream: &mut ArrowStream,
    schema: &SchemaRef,
    batches: SyncSender<RecordBatch>,
) -> Result<(), Error> {
    while let Some(batch) = next_batch(stream, schema)? {
        if batches.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}

/// Writes all received batches; returns the number of their rows.
fn write_batches(
    batches: Receiver<RecordBatch>,
    writer: &mut BatchWriter<'_, '_>,
    observer: &mut dyn Observer,
) -> Result<u64, Error> {
    let mut n_rows = 0;
    for batch in batches {
        if observer.stops() {
            return Err(Error::Stopped);
        }
        n_rows += batch.num_rows() as u64;
        writer.write(batch)?;
        observer.progress(n_rows, writer.n_bytes());
    }
    Ok(n_rows)
}

/// A writer of record batches, in the format Arrow IPC or Parquet.
enum BatchWriter<'w, 'o> {
    Ipc(Box<IpcWriter<'w, 'o>>),
    Parquet(Box<ParquetWriter<'w, 'o>>),
}

impl BatchWriter<'_, '_> {
    fn write(&mut self, batch: RecordBatch) -> Result<(), Error> {
        match self {
            BatchWriter::Ipc(writer) => Ok(writer.write(&batch)?),
            BatchWriter::Parquet(writer) => writer.write(batch),
        }
    }

    fn n_bytes(&self) -> u64 {
        match self {
            BatchWriter::Ipc(writer) => writer.get_ref().get_ref().n_bytes(),
            BatchWriter::Parquet(writer) => writer.n_bytes(),
        }
    }

    fn finish(self) -> Result<(), Error> {
        match self {
            BatchWriter::Ipc(mut writer) => {
                writer.finish()?;
                Ok(writer.flush()?)
            }
            BatchWriter::Parquet(writer) => writer.finish(),
        }
    }
}

/// A writer of an Arrow IPC file.
type IpcWriter<'w, 'o> = FileWriter<BufWriter<&'w mut CountedWrite<'o>>>;

fn ipc_writer<'w, 'o>(
    out: &'w mut CountedWrite<'o>,
    schema: &SchemaRef,
    file: FileFormat,
) -> Result<IpcWriter<'w, 'o>, Error> {
    let compression = match file.compression() {
        Compression::Zstd => Some(CompressionType::ZSTD),
        _ => None,
    };
    let options = IpcWriteOptions::default().try_with_compression(compression)?;
    // The Arrow writer calls `write` separately for each buffer and its padding, so the calls are
    // buffered.
    let out = BufWriter::with_capacity(64 << 10, out);
    Ok(FileWriter::try_new_with_options(out, schema, options)?)
}

/// Returns an error if a column has an empty name, or the name of an earlier column. Programs
/// address the columns of a Parquet file by their names.
fn check_names(schema: &Schema) -> Result<(), Error> {
    let Some((column, name)) = schema.unfit_name() else {
        return Ok(());
    };
    let what = match name {
        "" => "a column has no name".to_owned(),
        name => format!("two columns have the name `{name}`"),
    };
    let message = format!(
        "{what}, and the columns of a Parquet file need distinct names\nname it in the query with `AS`"
    );
    let error = RowsError::new(ErrorKind::Programming, message);
    Err(Error::Rows(error.at_column(column, name)))
}

/// Returns the requested types of the columns. Columns of times in seconds get a type in
/// milliseconds, because Parquet has no times in seconds, and readers of the file would receive
/// plain integers.
fn parquet_types(schema: &Schema, requested: &[(String, DataType)]) -> Vec<(String, DataType)> {
    let mut types: Vec<_> = requested.to_vec();
    for (_, data_type) in &mut types {
        if let Some(finer) = without_seconds(data_type) {
            *data_type = finer;
        }
    }
    for column in schema.columns.iter() {
        if !requested.iter().any(|(name, _)| *name == column.name)
            && let Some(finer) = type_of(column).as_ref().and_then(without_seconds)
        {
            types.push((column.name.clone(), finer));
        }
    }
    types
}

/// If `data_type` is a time or timestamp in seconds, returns the same type in milliseconds.
/// Otherwise returns `None`.
fn without_seconds(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Time(TimeUnit::Second) => Some(DataType::Time(TimeUnit::Milli)),
        DataType::Timestamp {
            unit: TimeUnit::Second,
            zone,
        } => Some(DataType::Timestamp {
            unit: TimeUnit::Milli,
            zone: zone.clone(),
        }),
        DataType::List(item) => without_seconds(item).map(|item| DataType::List(Box::new(item))),
        _ => None,
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        Error::Format(format!("the Arrow file cannot be written: {error}"))
    }
}
