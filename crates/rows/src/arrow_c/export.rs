//! Exports record batches through the C data interface of Arrow. `stream_of` returns the C struct
//! of a stream. Each exported struct owns the memory to which it points.

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::abi::{ArrowArray, ArrowArrayStream, ArrowSchema, FLAG_NULLABLE};
use super::memory::Memory;
use crate::arrow::{Array, Batch, DataType, Field};
use crate::error::{Error, ErrorKind};

/// A source of batches to export.
pub trait Batches: Send {
    /// Returns the columns of the batches; every call returns the same columns.
    ///
    /// # Errors
    /// The error of the source, if the first rows determine the types of the columns and could not
    /// be read.
    fn fields(&mut self) -> Result<Vec<Field>, Error>;

    /// Returns the next batch of rows; `None` after the last batch.
    ///
    /// # Errors
    /// The error of the source. Each later call returns the same error, so that a truncated stream
    /// never looks complete.
    fn next_batch(&mut self) -> Result<Option<Batch>, Error>;
}

/// Exports the columns of a stream as a schema of the C data interface: a struct type with one
/// child for each column.
#[must_use]
pub fn schema_of(fields: &[Field]) -> ArrowSchema {
    let children = fields.iter().map(field_schema).collect();
    made_schema("+s", "", 0, Vec::new(), children)
}

fn field_schema(field: &Field) -> ArrowSchema {
    let metadata = match field.data_type {
        DataType::Uuid => metadata(&[
            ("ARROW:extension:name", "arrow.uuid"),
            ("ARROW:extension:metadata", ""),
        ]),
        _ => Vec::new(),
    };
    let children = match &field.data_type {
        DataType::List(item) => vec![field_schema(&Field {
            name: "item".to_owned(),
            data_type: DataType::clone(item),
            nullable: true,
        })],
        _ => Vec::new(),
    };
    let flags = if field.nullable { FLAG_NULLABLE } else { 0 };
    let format = field.data_type.format();
    made_schema(&format, &field.name, flags, metadata, children)
}

/// Encodes the keys and values of metadata as the C data interface defines: the length of each key
/// and value, a 32-bit integer in native byte order, precedes its bytes.
fn metadata(pairs: &[(&str, &str)]) -> Vec<u8> {
    let number = |n: usize| i32::try_from(n).unwrap_or(0).to_ne_bytes();
    let mut bytes = number(pairs.len()).to_vec();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend(number(text.len()));
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// The memory to which the pointers in an exported `ArrowSchema` refer. The schema owns it.
struct OwnedSchema {
    _format: CString,
    _name: CString,
    _metadata: Vec<u8>,
    children: Vec<*mut ArrowSchema>,
}

fn made_schema(
    format: &str,
    name: &str,
    flags: i64,
    metadata: Vec<u8>,
    children: Vec<ArrowSchema>,
) -> ArrowSchema {
    // A C string ends at its first NUL, so each NUL in a name is replaced by U+FFFD.
    let text = |s: &str| CString::new(s.replace('\0', "\u{FFFD}")).unwrap_or_default();
    let children = children.into_iter().map(|c| Box::into_raw(Box::new(c)));
    let mut owned = Box::new(OwnedSchema {
        _format: text(format),
        _name: text(name),
        _metadata: metadata,
        children: children.collect(),
    });
    ArrowSchema {
        format: owned._format.as_ptr(),
        name: owned._name.as_ptr(),
        metadata: match owned._metadata.is_empty() {
            true => std::ptr::null(),
            false => owned._metadata.as_ptr().cast(),
        },
        flags,
        n_children: owned.children.len() as i64,
        children: owned.children.as_mut_ptr(),
        dictionary: std::ptr::null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(owned).cast(),
    }
}

/// Frees the memory of a schema that this module exported.
///
/// # Safety
/// The caller must pass a schema that this module created, that is not released, and that has no
/// other user.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller vouches for the struct; its private data is the box that `made_schema`
    // stored there, and its children are boxes, which release themselves when they are dropped (a
    // child that was moved away is marked as released).
    unsafe {
        let owned = Box::from_raw((*schema).private_data.cast::<OwnedSchema>());
        for child in &owned.children {
            drop(Box::from_raw(*child));
        }
        (*schema).release = None;
    }
}

/// The memory to which the pointers in an exported `ArrowArray` refer. The array owns this memory.
struct OwnedArray {
    buffers: Vec<*const c_void>,
    _memory: Vec<Memory>,
    children: Vec<*mut ArrowArray>,
}

fn array_of(array: Array) -> ArrowArray {
    let mut buffers = Vec::new();
    if array.data_type != DataType::Null {
        let validity = array.validity.as_ref();
        buffers.push(validity.map_or(std::ptr::null(), Memory::ptr));
    }
    buffers.extend(array.buffers.iter().map(Memory::ptr));
    let n_nulls = array.n_nulls.and_then(|n| i64::try_from(n).ok());
    let memory = array.validity.into_iter().chain(array.buffers).collect();
    let children = array.items.into_iter().map(|items| array_of(*items));
    let n_nulls = n_nulls.unwrap_or(-1);
    made_array(array.len, n_nulls, buffers, memory, children.collect())
}

/// Exports a batch as one struct array, with a child array for each column.
fn array_of_batch(batch: Batch) -> ArrowArray {
    let children = batch.columns.into_iter().map(array_of).collect();
    made_array(
        batch.n_rows,
        0,
        vec![std::ptr::null()],
        Vec::new(),
        children,
    )
}

fn made_array(
    len: usize,
    n_nulls: i64,
    buffers: Vec<*const c_void>,
    memory: Vec<Memory>,
    children: Vec<ArrowArray>,
) -> ArrowArray {
    let children = children.into_iter().map(|c| Box::into_raw(Box::new(c)));
    let mut owned = Box::new(OwnedArray {
        buffers,
        _memory: memory,
        children: children.collect(),
    });
    ArrowArray {
        length: len as i64,
        null_count: n_nulls,
        offset: 0,
        n_buffers: owned.buffers.len() as i64,
        n_children: owned.children.len() as i64,
        buffers: owned.buffers.as_mut_ptr(),
        children: owned.children.as_mut_ptr(),
        dictionary: std::ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(owned).cast(),
    }
}

/// Frees the memory of an array that this module exported.
///
/// # Safety
/// The caller must pass an array that this module created, that is not released, and that has no
/// other user.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the caller vouches for the struct; its private data is the box that `made_array`
    // stored there, and its children are boxes, which release themselves when they are dropped (a
    // child that was moved away is marked as released).
    unsafe {
        let owned = Box::from_raw((*array).private_data.cast::<OwnedArray>());
        for child in &owned.children {
            drop(Box::from_raw(*child));
        }
        (*array).release = None;
    }
}

/// The private data of an `ArrowArrayStream` that this module has exported: the source of its
/// batches, and the text of its last error.
struct OwnedStream {
    batches: Box<dyn Batches>,
    last_error: Option<CString>,
}

/// Exports record batches as a stream of Arrow's C stream interface. When the returned struct is
/// dropped, it calls its own `release` callback.
#[must_use]
pub fn stream_of(batches: Box<dyn Batches>) -> ArrowArrayStream {
    let owned = Box::new(OwnedStream {
        batches,
        last_error: None,
    });
    ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(owned).cast(),
    }
}

/// Returns the errno with which the C stream interface reports an error of this kind.
/// `get_last_error` returns the message of the error.
fn number(kind: ErrorKind) -> c_int {
    match kind {
        ErrorKind::Data | ErrorKind::Malformed | ErrorKind::Programming => libc::EINVAL,
        ErrorKind::NotSupported => libc::ENOSYS,
        ErrorKind::Cancelled => libc::ECANCELED,
        ErrorKind::Timeout => libc::ETIMEDOUT,
        _ => libc::EIO,
    }
}

impl OwnedStream {
    /// Calls `work` for a callback of the C stream. If `work` fails, stores the error message for
    /// `get_last_error` and returns an errno. A panic in `work` is caught and treated as an error,
    /// because a panic must not unwind into C code.
    fn run<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Batches) -> Result<T, Error>,
    ) -> Result<T, c_int> {
        let batches = &mut *self.batches;
        let done = catch_unwind(AssertUnwindSafe(|| work(batches))).unwrap_or_else(|_| {
            let message = "a bug of onecopy's: the stream panicked";
            Err(Error::new(ErrorKind::Internal, message))
        });
        done.map_err(|e| {
            let text = e.to_string().replace('\0', "\u{FFFD}");
            self.last_error = CString::new(text).ok();
            number(e.kind)
        })
    }
}

/// The callback `get_schema` of Arrow's C stream interface. Writes the schema of the stream to
/// `out`. Returns 0, or an errno if the columns cannot be read.
///
/// # Safety
/// The caller must pass a stream that this module created and that is not released, and memory for
/// a schema.
unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the caller vouches for both pointers; the private data is the box that `stream_of`
    // stored there, and the interface allows only one call at a time. The previous content of `out`
    // is not dropped, because it is uninitialised.
    unsafe {
        let owned = &mut *(*stream).private_data.cast::<OwnedStream>();
        match owned.run(|batches| batches.fields().map(|fields| schema_of(&fields))) {
            Ok(schema) => {
                out.write(schema);
                0
            }
            Err(number) => number,
        }
    }
}

/// The callback `get_next` of Arrow's C stream interface. Writes the struct of the next batch to
/// `out`. Returns 0, or an errno if the next batch cannot be read.
///
/// # Safety
/// The caller must pass a stream that this module created and that is not released, and memory for
/// an array.
unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the caller vouches for both pointers; the private data is the box that `stream_of`
    // stored there, and the interface allows only one call at a time. The previous content of `out`
    // is not dropped, because it is uninitialised.
    unsafe {
        let owned = &mut *(*stream).private_data.cast::<OwnedStream>();
        let next = owned.run(|batches| {
            let batch = batches.next_batch()?;
            // A released array marks the end of the stream.
            Ok(batch.map_or(ArrowArray::released(), array_of_batch))
        });
        match next {
            Ok(array) => {
                out.write(array);
                0
            }
            Err(number) => number,
        }
    }
}

/// Returns the text of the stream's last error; null if there is none.
///
/// # Safety
/// The caller must pass a stream that this module created and that is not released.
unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the caller vouches for the stream; the text lives until the next call on it.
    unsafe {
        let owned = &*(*stream).private_data.cast::<OwnedStream>();
        let text = owned.last_error.as_ref();
        text.map_or(std::ptr::null(), |text| text.as_ptr())
    }
}

/// Frees the memory of a stream that this module exported, and closes its statement.
///
/// # Safety
/// The caller must pass a stream that this module created, that is not released, and that has no
/// other user.
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the caller vouches for the stream; the private data is the box that `stream_of`
    // stored there.
    unsafe {
        let owned = Box::from_raw((*stream).private_data.cast::<OwnedStream>());
        (*stream).release = None;
        // The statement is closed here; a panic of the close must not reach C.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(owned)));
    }
}
