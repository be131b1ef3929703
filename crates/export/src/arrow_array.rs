//! Converts the batches of [`ArrowStream`] to record batches of the `arrow` crates. The values are
//! not checked. They are not copied either, except decimals of 256 bits, which must be aligned.
#![allow(unsafe_code)]

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema as arrow;
use arrow_schema::SchemaRef;
use arrow_schema::extension::Uuid;
use onecopy_rows::arrow::{Array, ArrowStream, DataType, Field, TimeUnit};
use onecopy_rows::arrow_c::{Batches, Memory};

use crate::error::Error;

/// Converts the columns of a stream to an Arrow schema of the `arrow` crates.
///
/// # Errors
/// [`Error::Format`] for a type that [`ArrowStream`] never returns.
pub(crate) fn schema_of(fields: &[Field]) -> Result<SchemaRef, Error> {
    let fields = fields.iter().map(field_of).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(arrow::Schema::new(fields)))
}

fn field_of(field: &Field) -> Result<arrow::Field, Error> {
    let made = arrow::Field::new(&field.name, type_of(&field.data_type)?, field.nullable);
    Ok(match field.data_type {
        DataType::Uuid => made.with_extension_type(Uuid),
        _ => made,
    })
}

fn type_of(data_type: &DataType) -> Result<arrow::DataType, Error> {
    Ok(match data_type {
        DataType::Null => arrow::DataType::Null,
        DataType::Bool => arrow::DataType::Boolean,
        DataType::Int { bits, unsigned } => match (bits, unsigned) {
            (8, false) => arrow::DataType::Int8,
            (16, false) => arrow::DataType::Int16,
            (32, false) => arrow::DataType::Int32,
            (_, false) => arrow::DataType::Int64,
            (8, true) => arrow::DataType::UInt8,
            (16, true) => arrow::DataType::UInt16,
            (32, true) => arrow::DataType::UInt32,
            (_, true) => arrow::DataType::UInt64,
        },
        DataType::Float32 => arrow::DataType::Float32,
        DataType::Float64 => arrow::DataType::Float64,
        DataType::Decimal {
            bits: 128,
            precision,
            scale,
        } => arrow::DataType::Decimal128(*precision, *scale),
        DataType::Decimal {
            bits: 256,
            precision,
            scale,
        } => arrow::DataType::Decimal256(*precision, *scale),
        DataType::Utf8 => arrow::DataType::Utf8,
        DataType::LargeUtf8 => arrow::DataType::LargeUtf8,
        DataType::Binary => arrow::DataType::Binary,
        DataType::LargeBinary => arrow::DataType::LargeBinary,
        DataType::Uuid => arrow::DataType::FixedSizeBinary(16),
        DataType::Date32 => arrow::DataType::Date32,
        DataType::Time(unit @ (TimeUnit::Second | TimeUnit::Milli)) => {
            arrow::DataType::Time32(unit_of(*unit))
        }
        DataType::Time(unit) => arrow::DataType::Time64(unit_of(*unit)),
        DataType::Timestamp { unit, zone } => {
            arrow::DataType::Timestamp(unit_of(*unit), zone.as_deref().map(Arc::from))
        }
        DataType::List(item) => {
            let item = Field {
                name: "item".to_owned(),
                data_type: DataType::clone(item),
                nullable: true,
            };
            arrow::DataType::List(Arc::new(field_of(&item)?))
        }
        // An [`ArrowStream`] has no column of another type.
        other => {
            return Err(Error::Format(format!(
                "columns of `{other}` are not written"
            )));
        }
    })
}

fn unit_of(unit: TimeUnit) -> arrow::TimeUnit {
    match unit {
        TimeUnit::Second => arrow::TimeUnit::Second,
        TimeUnit::Milli => arrow::TimeUnit::Millisecond,
        TimeUnit::Micro => arrow::TimeUnit::Microsecond,
        TimeUnit::Nano => arrow::TimeUnit::Nanosecond,
    }
}

/// Returns the next batch of a stream; `None` after the last one. `schema` is the result of
/// [`schema_of`] for the columns of the stream.
///
/// # Errors
/// The error of the database, or of a value that cannot be converted to its Arrow type.
pub(crate) fn next_batch(
    stream: &mut ArrowStream,
    schema: &SchemaRef,
) -> Result<Option<RecordBatch>, Error> {
    let Some(batch) = stream.next_batch()? else {
        return Ok(None);
    };
    let columns = batch.columns.into_iter().map(array_of);
    let columns = columns.collect::<Result<Vec<ArrayRef>, Error>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.n_rows));
    let made = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options);
    Ok(Some(made?))
}

fn array_of(array: Array) -> Result<ArrayRef, Error> {
    Ok(make_array(data_of(array)?))
}

/// Converts an array from a batch of a row stream to the type of arrow-rs, without validating it.
/// The function is private, because an array from another source would have to be validated.
fn data_of(array: Array) -> Result<ArrayData, Error> {
    let items = array.items.map(|items| data_of(*items)).transpose()?;
    let builder = ArrayData::builder(type_of(&array.data_type)?)
        .len(array.len)
        .offset(array.offset)
        .null_bit_buffer(array.validity.map(buffer_of))
        .buffers(array.buffers.into_iter().map(buffer_of).collect())
        .child_data(items.into_iter().collect())
        // This copies buffers that are not aligned: decimals of 256 bits, which are stored in
        // vectors with the alignment of 64 bits.
        .align_buffers(true);
    // SAFETY: `array` is a column of a batch of `ArrowStream`, because `next_batch` is the only
    // caller outside of this function. `ArrowRows` makes such a column with the buffers that the
    // Arrow format defines for its type, each of `len` values: text is converted to UTF-8 by
    // `onecopy_text`, offsets ascend from 0, and a bitmap has a bit for each value. `align_buffers`
    // aligns the buffers. The tests in `tests/arrow` have pyarrow validate such columns.
    Ok(unsafe { builder.build_unchecked() })
}

/// Implements `AsRef<[u8]>` for a [`Memory`], so that a `Buffer` can share its bytes and keep it
/// alive.
struct SharedMemory(Memory);

impl AsRef<[u8]> for SharedMemory {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Returns a buffer that shares the bytes of `memory` without a copy.
fn buffer_of(memory: Memory) -> Buffer {
    match memory.bytes().is_empty() {
        // The address of an empty slice need not be aligned, so an empty buffer is allocated.
        true => Buffer::from(arrow_buffer::MutableBuffer::new(0)),
        false => Buffer::from(bytes::Bytes::from_owner(SharedMemory(memory))),
    }
}
