//! Batches of another library: what it promises by the interface's rules is believed, what can be looked at is looked at.

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::sync::Arc;

use super::abi::{ArrowArray, ArrowArrayStream, ArrowSchema, FLAG_NULLABLE};
use super::memory::Memory;
use crate::arrow::{Array, Batch, DataType, Field};
use crate::error::{Error, ErrorKind};

/// The stream of another library.
#[derive(Debug)]
pub struct ForeignStream {
    stream: ArrowArrayStream,
    fields: Vec<Field>,
    is_done: bool,
    failure: Option<Error>,
}

/// An array of another library's, released when nothing reads it any more.
struct Kept(ArrowArray);

// SAFETY: the interface lets any thread read an array, and any thread release it.
unsafe impl Send for Kept {}
// SAFETY: it is read alone.
unsafe impl Sync for Kept {}

fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Interface, what.into())
}

fn text(at: *const c_char) -> String {
    if at.is_null() {
        return String::new();
    }
    // SAFETY: not null: a C string that lives as long as the struct which it was read from, by the interface.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

impl ForeignStream {
    /// Takes the stream at `at` over, which is marked as released there.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] where it was released before; what it says where it does not tell its columns;
    /// [`ErrorKind::NotSupported`] for a type that no database has.
    ///
    /// # Safety
    /// `at` points to a stream that keeps the interface's rules, and nobody else uses it.
    pub unsafe fn take(at: *mut ArrowArrayStream) -> Result<ForeignStream, Error> {
        // SAFETY: the caller vouches for the place. The struct is moved, as the interface allows: by its bytes, the old place
        // being marked as released.
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
        // SAFETY: a live stream, and a place for the schema.
        let failed = unsafe { get_schema(&mut taken.stream, &mut schema) };
        if failed != 0 {
            return Err(taken.error("get_schema", failed));
        }
        taken.fields = fields_of(&schema)?;
        Ok(taken)
    }

    /// The columns.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The next rows; `None` behind the last. May block, for as long as the other library does.
    ///
    /// # Errors
    /// What the stream says, again at each later call; [`ErrorKind::Interface`] where it breaks the interface's rules.
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
        // SAFETY: a live stream, and a place for the array.
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

    /// What it says about its failure.
    fn error(&mut self, call: &str, number: i32) -> Error {
        let says = match self.stream.get_last_error {
            // SAFETY: a live stream, whose last call failed.
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

/// The children of a struct.
///
/// # Safety
/// `children` holds `n` pointers, by the interface.
unsafe fn children<'a, T>(children: *mut *mut T, n: i64) -> Result<Vec<&'a T>, Error> {
    let n = usize::try_from(n).map_err(|_| wrong("a struct has fewer than no children"))?;
    if n > 0 && children.is_null() {
        return Err(wrong("a struct has children and no pointer to them"));
    }
    (0..n)
        .map(|i| {
            // SAFETY: `n` pointers stand there as the caller vouches; each is null or points to a live struct.
            let child = unsafe { (*children.add(i)).as_ref() };
            child.ok_or_else(|| wrong("a child of a struct is null"))
        })
        .collect()
}

/// The columns of a stream's schema.
///
/// # Errors
/// [`ErrorKind::Interface`] where it is no struct; [`ErrorKind::NotSupported`] for a type that no database has.
pub fn fields_of(schema: &ArrowSchema) -> Result<Vec<Field>, Error> {
    let format = text(schema.format);
    if format != "+s" {
        return Err(wrong(format!(
            "the stream is one of `{format}`, and rows are structs (`+s`)\ngive a table or a stream of batches"
        )));
    }
    // SAFETY: a live schema, which keeps the interface's rules.
    let children = unsafe { children(schema.children, schema.n_children)? };
    children
        .iter()
        .enumerate()
        .map(|(i, child)| field_of(child).map_err(|e| e.at_column(i, &text(child.name))))
        .collect()
}

fn field_of(schema: &ArrowSchema) -> Result<Field, Error> {
    let format = text(schema.format);
    let unknown = || {
        let message = format!("Arrow's type `{format}` has no like in SQL\ncast the column first");
        Error::new(ErrorKind::NotSupported, message)
    };
    let mut data_type = DataType::of_format(&format).ok_or_else(unknown)?;
    // SAFETY: null, or a live schema of the dictionary's values.
    if let Some(values) = unsafe { schema.dictionary.as_ref() } {
        let value = field_of(values)?.data_type;
        if matches!(value, DataType::Dictionary { .. }) {
            return Err(unknown());
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

/// Whether the metadata names the extension `arrow.uuid`.
fn is_uuid(schema: &ArrowSchema) -> bool {
    if schema.metadata.is_null() {
        return false;
    }
    let mut at = schema.metadata.cast::<u8>();
    // SAFETY: not null: a number of pairs and then lengths and texts, as the interface has it; each is read once, in order.
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
    // A struct may have NULLs of its own; in a table there are none.
    if array.null_count > 0 {
        return Err(wrong("a row as a whole is NULL"));
    }
    let kept = Arc::new(Kept(array));
    let owner: Arc<dyn Any + Send + Sync> = kept.clone();
    // SAFETY: a live array, which keeps the interface's rules.
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
            // An offset of the struct counts for its children too.
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

/// An array of which `owner` keeps the memory.
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
    // SAFETY: `n_buffers` pointers stand there, by the interface.
    let buffer = |i: usize| unsafe { (*array.buffers.add(i)).cast::<u8>() };
    // SAFETY: the interface promises that a buffer has the bytes that its type and the array's length ask for, and keeps them
    // until the array is released, which its owner does when the last reader is gone.
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
            // Behind the views and their data stand the lengths of the data, 64 bits each.
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
            // SAFETY: null, or a live array of the dictionary's values.
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
    })
}

/// The last `N` bytes.
fn last<const N: usize>(memory: &Memory) -> Option<[u8; N]> {
    memory.bytes().last_chunk::<N>().copied()
}

/// Bytes of a value of one size.
fn width(data_type: &DataType) -> Result<usize, Error> {
    Ok(match data_type {
        DataType::Int { bits, .. } => usize::from(*bits) / 8,
        DataType::Decimal { bits, .. } => usize::from(*bits) / 8,
        DataType::Float32 | DataType::Date32 => 4,
        DataType::Float64 | DataType::Date64 | DataType::Timestamp { .. } => 8,
        DataType::Time(crate::arrow::Unit::Second | crate::arrow::Unit::Milli) => 4,
        DataType::Time(_) => 8,
        DataType::Uuid => 16,
        DataType::FixedBinary(n) => *n,
        other => return Err(wrong(format!("`{other}` has no width"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a batch of one column says that has this length, offset and type, its rows beginning at `first`.
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
