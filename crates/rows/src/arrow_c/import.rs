//! Imports batches that another library exports. This module verifies the lengths, counts and types
//! that the other library reports. It trusts the guarantees of the C data interface that cannot be
//! verified, such as the validity of pointers.

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::sync::Arc;

use super::abi::{ArrowArray, ArrowArrayStream, ArrowSchema, FLAG_NULLABLE};
use super::memory::Memory;
use crate::arrow::{Array, Batch, DataType, Field};
use crate::error::{Error, ErrorKind};

/// A stream of batches that another library exports.
#[derive(Debug)]
pub struct ForeignStream {
    stream: ArrowArrayStream,
    fields: Vec<Field>,
    is_done: bool,
    failure: Option<Error>,
}

/// An array that another library exported through the C data interface. It is released when no Rust
/// object uses its memory any more.
struct ForeignArray(ArrowArray);

// SAFETY: the interface lets any thread read an array, and any thread release it.
unsafe impl Send for ForeignArray {}
// SAFETY: the array is only read.
unsafe impl Sync for ForeignArray {}

fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Interface, what.into())
}

fn text(at: *const c_char) -> String {
    if at.is_null() {
        return String::new();
    }
    // SAFETY: the pointer is not null, and the interface guarantees that it is a C string that
    // lives as long as the struct from which it was read.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

impl ForeignStream {
    /// Moves the stream out of `at`, and marks the struct at `at` as released.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if the stream was released before; the error that the stream
    /// reports if it does not return its schema; [`ErrorKind::NotSupported`] for a column type that
    /// no supported database has.
    ///
    /// # Safety
    /// The caller must ensure that `at` points to a stream that conforms to the interface and has
    /// no other user.
    pub unsafe fn take(at: *mut ArrowArrayStream) -> Result<ForeignStream, Error> {
        // SAFETY: the caller ensures that the pointer is valid. The interface allows this move: the
        // bytes of the struct are copied, and the original is marked as released.
        let stream = unsafe {
            let stream = at.read();
            (*at).release = None;
            stream
        };
        if stream.release.is_none() {
            let message = "the stream was used up or released already\nmake a new one";
            return Err(wrong(message));
        }
        let mut taken = ForeignStream {
            stream,
            fields: Vec::new(),
            is_done: false,
            failure: None,
        };
        let mut schema = ArrowSchema::released();
        let get_schema = taken.stream.get_schema;
        let get_schema = get_schema.ok_or_else(|| wrong("the stream has no `get_schema`"))?;
        // SAFETY: a stream that is not released, and memory for the schema.
        let failed = unsafe { get_schema(&mut taken.stream, &mut schema) };
        if failed != 0 {
            return Err(taken.error("get_schema", failed));
        }
        taken.fields = fields_of(&schema)?;
        let is_list = |field: &Field| matches!(field.data_type, DataType::List(_));
        if let Some(i) = taken.fields.iter().position(is_list) {
            return Err(unknown("+l").at_column(i, &taken.fields[i].name));
        }
        Ok(taken)
    }

    /// Returns the columns of the stream.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the next batch of rows; `None` after the last batch. Blocks for as long as the other
    /// library blocks.
    ///
    /// # Errors
    /// The error of the stream, which each later call returns again; [`ErrorKind::Interface`] if
    /// the stream violates the interface.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        match &self.failure {
            Some(failure) => return Err(failure.clone()),
            None if self.is_done => return Ok(None),
            None => {}
        }
        let next = self.take_next();
        if let Err(failure) = &next {
            self.failure = Some(failure.clone());
        }
        next
    }

    fn take_next(&mut self) -> Result<Option<Batch>, Error> {
        let mut array = ArrowArray::released();
        let get_next = self.stream.get_next;
        let get_next = get_next.ok_or_else(|| wrong("the stream has no `get_next`"))?;
        // SAFETY: a stream that is not released, and memory for the array.
        let failed = unsafe { get_next(&mut self.stream, &mut array) };
        if failed != 0 {
            return Err(self.error("get_next", failed));
        }
        if array.release.is_none() {
            self.is_done = true;
            return Ok(None);
        }
        batch_of(array, &self.fields).map(Some)
    }

    /// Creates the error for a failed call to the function `call` of the stream. Its message is the
    /// result of `get_last_error`.
    fn error(&mut self, call: &str, number: i32) -> Error {
        let says = match self.stream.get_last_error {
            // SAFETY: a stream that is not released, whose last call failed.
            Some(get_last_error) => text(unsafe { get_last_error(&mut self.stream) }),
            None => String::new(),
        };
        let says = if says.is_empty() {
            std::io::Error::from_raw_os_error(number).to_string()
        } else {
            says
        };
        Error::new(
            ErrorKind::Operational,
            format!("the stream of the rows failed in `{call}`: {says}"),
        )
    }
}

/// Returns the `n` children of a struct as references.
///
/// # Safety
/// The caller must ensure that `children` is an array of `n` valid pointers, as the interface
/// requires.
unsafe fn children<'a, T>(children: *mut *mut T, n: i64) -> Result<Vec<&'a T>, Error> {
    let n = usize::try_from(n).map_err(|_| wrong("a struct has fewer than no children"))?;
    if n > 0 && children.is_null() {
        return Err(wrong("a struct has children and no pointer to them"));
    }
    (0..n)
        .map(|i| {
            // SAFETY: the array has `n` pointers (the caller's contract); each pointer is null or
            // points to a struct that is not released.
            let child = unsafe { (*children.add(i)).as_ref() };
            child.ok_or_else(|| wrong("a child of a struct is null"))
        })
        .collect()
}

/// Returns the columns of a stream's schema.
///
/// # Errors
/// [`ErrorKind::Interface`] if the schema is not a struct; [`ErrorKind::NotSupported`] for a type
/// that no supported database has.
pub fn fields_of(schema: &ArrowSchema) -> Result<Vec<Field>, Error> {
    let format = text(schema.format);
    if format != "+s" {
        return Err(wrong(format!(
            "the stream is one of `{format}`, and rows are structs (`+s`)\n\
             give a table or a stream of batches"
        )));
    }
    // SAFETY: a schema that is not released and conforms to the interface.
    let children = unsafe { children(schema.children, schema.n_children)? };
    children
        .iter()
        .enumerate()
        .map(|(i, child)| field_of(child).map_err(|e| e.at_column(i, &text(child.name))))
        .collect()
}

fn unknown(format: &str) -> Error {
    let message = format!(
        "a column of the Arrow type `{format}` cannot be inserted, because no SQL type corresponds \
         to it\ncast the column to another type first"
    );
    Error::new(ErrorKind::NotSupported, message)
}

fn field_of(schema: &ArrowSchema) -> Result<Field, Error> {
    let format = text(schema.format);
    if format == "+l" {
        // SAFETY: a schema that is not released and conforms to the interface.
        let children = unsafe { children(schema.children, schema.n_children)? };
        let [item] = children[..] else {
            return Err(wrong("a list has other than one child"));
        };
        return Ok(Field {
            name: text(schema.name),
            data_type: DataType::List(Box::new(field_of(item)?.data_type)),
            nullable: schema.flags & FLAG_NULLABLE != 0,
        });
    }
    let mut data_type = DataType::of_format(&format).ok_or_else(|| unknown(&format))?;
    // SAFETY: null, or the schema of the dictionary's values, which is not released.
    if let Some(values) = unsafe { schema.dictionary.as_ref() } {
        let value = field_of(values)?.data_type;
        if matches!(value, DataType::Dictionary { .. } | DataType::List(_)) {
            return Err(unknown(&format));
        }
        data_type = DataType::Dictionary {
            index: Box::new(data_type),
            value: Box::new(value),
        };
    }
    if data_type == DataType::FixedBinary(16) && is_uuid(schema) {
        data_type = DataType::Uuid;
    }
    Ok(Field {
        name: text(schema.name),
        data_type,
        nullable: schema.flags & FLAG_NULLABLE != 0,
    })
}

/// Returns `true` if the metadata names the extension `arrow.uuid`.
fn is_uuid(schema: &ArrowSchema) -> bool {
    if schema.metadata.is_null() {
        return false;
    }
    let mut at = schema.metadata.cast::<u8>();
    // SAFETY: the pointer is not null; the interface defines a number of pairs and then lengths and
    // texts, and each of them is read once, in order.
    unsafe {
        let mut number = || {
            let n = at.cast::<i32>().read_unaligned();
            at = at.add(4);
            usize::try_from(n).unwrap_or(0)
        };
        let n_texts = number() * 2;
        let mut texts = Vec::with_capacity(n_texts.min(64));
        for _ in 0..n_texts {
            let len = at.cast::<i32>().read_unaligned();
            let len = usize::try_from(len).unwrap_or(0);
            at = at.add(4);
            texts.push(std::slice::from_raw_parts(at, len));
            at = at.add(len);
        }
        let name: [&[u8]; 2] = [b"ARROW:extension:name", b"arrow.uuid"];
        texts.chunks_exact(2).any(|pair| pair == name)
    }
}

fn batch_of(array: ArrowArray, fields: &[Field]) -> Result<Batch, Error> {
    let n_rows =
        usize::try_from(array.length).map_err(|_| wrong("a batch has a negative length"))?;
    let first =
        usize::try_from(array.offset).map_err(|_| wrong("a batch has a negative offset"))?;
    let end = first
        .checked_add(n_rows)
        .ok_or_else(|| wrong("a batch has an impossible length"))?;
    // If the struct array contained a NULL, a whole row would be NULL, which no table has.
    if array.null_count > 0 {
        return Err(wrong("a row as a whole is NULL"));
    }
    let kept = Arc::new(ForeignArray(array));
    let owner: Arc<dyn Any + Send + Sync> = kept.clone();
    // SAFETY: an array that is not released and conforms to the interface.
    let children = unsafe { children(kept.0.children, kept.0.n_children)? };
    if children.len() != fields.len() {
        return Err(wrong(
            "a batch has another number of columns than the stream",
        ));
    }
    let columns = children
        .iter()
        .zip(fields)
        .enumerate()
        .map(|(i, (child, field))| {
            let made = array_of(child, &field.data_type, &owner);
            let mut column = made.map_err(|e| e.at_column(i, &field.name))?;
            // The offset of a struct array also applies to its children.
            if column.len < end {
                return Err(wrong("a column is shorter than its batch").at_column(i, &field.name));
            }
            column.offset += first;
            column.len = n_rows;
            Ok(column)
        });
    Ok(Batch {
        n_rows,
        columns: columns.collect::<Result<_, _>>()?,
    })
}

/// Imports an array that another library exported. `owner` keeps the array's memory allocated as
/// long as the returned [`Array`] exists.
fn array_of(
    array: &ArrowArray,
    data_type: &DataType,
    owner: &Arc<dyn Any + Send + Sync>,
) -> Result<Array, Error> {
    let number = |n: i64, what: &str| {
        usize::try_from(n).map_err(|_| wrong(format!("an array has a negative {what}")))
    };
    let len = number(array.length, "length")?;
    let offset = number(array.offset, "offset")?;
    let n_buffers = number(array.n_buffers, "number of buffers")?;
    let end = len
        .checked_add(offset)
        .filter(|n| *n < isize::MAX as usize / 64);
    let impossible = || wrong("an array has an impossible length");
    let end = end.ok_or_else(impossible)?;
    let storage = match data_type {
        DataType::Dictionary { index, .. } => index,
        other => other,
    };
    let least = match storage {
        DataType::Null => 0,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 3,
        DataType::Utf8View | DataType::BinaryView => 3,
        _ => 2,
    };
    if n_buffers < least || (n_buffers > 0 && array.buffers.is_null()) {
        return Err(wrong(format!(
            "an array of `{data_type}` has {n_buffers} buffers"
        )));
    }
    // SAFETY: the interface guarantees that the array has `n_buffers` pointers.
    let buffer = |i: usize| unsafe { (*array.buffers.add(i)).cast::<u8>() };
    // SAFETY: the interface guarantees that a buffer has as many bytes as its type and the array's
    // length require, and keeps them until the array is released; `owner` releases the array after
    // the last reader of the memory is dropped.
    let memory = |i: usize, len: usize| unsafe { Memory::foreign(buffer(i), len, owner.clone()) };
    let mut buffers = Vec::new();
    match storage {
        DataType::Null => {}
        DataType::Utf8 | DataType::Binary => {
            let places = memory(1, (end + 1) * 4);
            let n = last::<4>(&places).map_or(0, |b| i32::from_ne_bytes(b).max(0) as usize);
            buffers.extend([places, memory(2, n)]);
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let places = memory(1, (end + 1) * 8);
            let n = last::<8>(&places).map_or(0, |b| i64::from_ne_bytes(b).max(0) as usize);
            buffers.extend([places, memory(2, n)]);
        }
        DataType::Utf8View | DataType::BinaryView => {
            // The last buffer, which follows the views and the data buffers, contains the lengths
            // of the data buffers as 64-bit integers.
            let n_data = n_buffers - 3;
            let lengths = memory(n_buffers - 1, n_data * 8);
            buffers.push(memory(1, end * 16));
            for (i, len) in lengths.bytes().chunks_exact(8).enumerate() {
                let len = i64::from_ne_bytes(len.try_into().unwrap_or([0; 8]));
                buffers.push(memory(2 + i, usize::try_from(len).unwrap_or(0)));
            }
        }
        DataType::Bool => buffers.push(memory(1, end.div_ceil(8))),
        other => {
            let len = end.checked_mul(width(other)?);
            let len = len.filter(|len| *len <= isize::MAX as usize);
            buffers.push(memory(1, len.ok_or_else(impossible)?));
        }
    }
    let has_nulls = least > 0 && array.null_count != 0 && !buffer(0).is_null();
    let dictionary = match data_type {
        DataType::Dictionary { value, .. } => {
            // SAFETY: null, or the array of the dictionary's values, which is not released.
            let values = unsafe { array.dictionary.as_ref() };
            let values = values.ok_or_else(|| wrong("a dictionary has no values"))?;
            Some(Box::new(array_of(values, value, owner)?))
        }
        _ => None,
    };
    Ok(Array {
        data_type: data_type.clone(),
        len,
        offset,
        validity: has_nulls.then(|| memory(0, end.div_ceil(8))),
        n_nulls: usize::try_from(array.null_count).ok(),
        buffers,
        dictionary,
        items: None,
    })
}

/// Returns the last `N` bytes of `memory`; `None` if it has fewer bytes.
fn last<const N: usize>(memory: &Memory) -> Option<[u8; N]> {
    memory.bytes().last_chunk::<N>().copied()
}

/// Returns the size in bytes of each value of `data_type`; an error if the type has no fixed size.
fn width(data_type: &DataType) -> Result<usize, Error> {
    Ok(match data_type {
        DataType::Int { bits, .. } => usize::from(*bits) / 8,
        DataType::Decimal { bits, .. } => usize::from(*bits) / 8,
        DataType::Float16 => 2,
        DataType::Float32 | DataType::Date32 => 4,
        DataType::Float64 | DataType::Date64 | DataType::Timestamp { .. } => 8,
        DataType::Time(crate::arrow::TimeUnit::Second | crate::arrow::TimeUnit::Milli) => 4,
        DataType::Time(_) => 8,
        DataType::Uuid => 16,
        DataType::FixedBinary(n) => *n,
        other => return Err(wrong(format!("`{other}` has no width"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Imports a batch with one column whose lengths are wrong, and returns the message of the
    /// error. `column` is the length and the offset of the column, and `rows` is those of the
    /// batch. The two lengths contradict each other, or are impossible for `data_type`.
    fn refusal(column: (i64, i64), rows: (i64, i64), data_type: DataType) -> String {
        let mut buffers = [std::ptr::null(); 3];
        let mut child = ArrowArray::released();
        (child.length, child.offset) = column;
        (child.n_buffers, child.buffers) = (3, buffers.as_mut_ptr());
        let mut children = [&raw mut child];
        let mut array = ArrowArray::released();
        (array.length, array.offset) = rows;
        (array.n_children, array.children) = (1, children.as_mut_ptr());
        let field = Field {
            name: "x".to_owned(),
            data_type,
            nullable: true,
        };
        batch_of(array, &[field]).unwrap_err().to_string()
    }

    #[test]
    fn lengths_that_no_memory_has_are_refused() {
        for (column, rows, data_type) in [
            ((2, 0), (2, 0), DataType::FixedBinary(usize::MAX)),
            ((3, 0), (3, 0), DataType::FixedBinary(1 << 62)),
            ((i64::MAX, 0), (1, 0), DataType::int(8)),
            ((1, i64::MAX), (1, 0), DataType::Utf8),
            ((i64::MAX, i64::MAX), (1, 0), DataType::Bool),
        ] {
            let message = refusal(column, rows, data_type);
            assert_eq!(message, "an array has an impossible length (column 0 `x`)");
        }
    }

    #[test]
    fn a_column_has_a_value_for_each_row_of_its_batch() {
        for (rows, expected) in [
            ((3, 0), "a column is shorter than its batch (column 0 `x`)"),
            ((1, 2), "a column is shorter than its batch (column 0 `x`)"),
            ((-1, 0), "a batch has a negative length"),
            ((1, -1), "a batch has a negative offset"),
            (
                (1, i64::MAX),
                "a column is shorter than its batch (column 0 `x`)",
            ),
        ] {
            assert_eq!(refusal((2, 0), rows, DataType::int(32)), expected);
        }
        let message = refusal((-2, 0), (1, 0), DataType::int(32));
        assert_eq!(message, "an array has a negative length (column 0 `x`)");
    }
}
