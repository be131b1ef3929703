//! Batches to another library: structs of C that own what they point to.

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::abi::{ArrowArray, ArrowArrayStream, ArrowSchema, FLAG_NULLABLE};
use super::memory::Memory;
use crate::arrow::{Array, Batch, DataType, Field};
use crate::error::{Error, ErrorKind};

/// Where batches come from, one after the other.
pub trait Batches: Send {
    /// The columns; the same at every call.
    ///
    /// # Errors
    /// [`Error`] where the first rows had to be fetched to tell, and were not.
    fn fields(&mut self) -> Result<Vec<Field>, Error>;

    /// The next rows; `None` behind the last.
    ///
    /// # Errors
    /// [`Error`], again at each later call: what was cut short must not look complete.
    fn next_batch(&mut self) -> Result<Option<Batch>, Error>;
}

/// The columns of a stream as a schema: a struct of them.
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
    let flags = if field.nullable { FLAG_NULLABLE } else { 0 };
    let format = field.data_type.format();
    made_schema(&format, &field.name, flags, metadata, Vec::new())
}

/// Keys and values as the interface wants them: numbers of 32 bits in the machine's order before each text.
fn metadata(pairs: &[(&str, &str)]) -> Vec<u8> {
    let number = |n: usize| i32::try_from(n).unwrap_or(0).to_ne_bytes();
    let mut bytes = number(pairs.len()).to_vec();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend(number(text.len()));
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// What a schema points to.
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
    // A name ends at its first NUL in C.
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

/// # Safety
/// A schema made here that is not released, and used by nobody else.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller vouches for the struct; its private data is the box that `made_schema` left there, and its children
    // are boxes, which release themselves when they are dropped (those that were moved away are marked as released).
    unsafe {
        let owned = Box::from_raw((*schema).private_data.cast::<OwnedSchema>());
        for child in &owned.children {
            drop(Box::from_raw(*child));
        }
        (*schema).release = None;
    }
}

/// What an array points to.
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
    made_array(
        array.len,
        n_nulls.unwrap_or(-1),
        buffers,
        memory,
        Vec::new(),
    )
}

/// Rows as one array: a struct of the columns.
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

/// # Safety
/// An array made here that is not released, and used by nobody else.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the caller vouches for the struct; its private data is the box that `made_array` left there, and its children
    // are boxes, which release themselves when they are dropped (those that were moved away are marked as released).
    unsafe {
        let owned = Box::from_raw((*array).private_data.cast::<OwnedArray>());
        for child in &owned.children {
            drop(Box::from_raw(*child));
        }
        (*array).release = None;
    }
}

/// What a stream points to.
struct OwnedStream {
    batches: Box<dyn Batches>,
    last_error: Option<CString>,
}

/// Batches as a stream of the C interface. Dropped, it is released.
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

/// The number that C knows an error by; its words are asked for behind it.
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
    /// Runs `work`, whose panic must not leave for C, and notes how it failed.
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

/// # Safety
/// A stream made here that is not released, and a place for a schema.
unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the caller vouches for both; the private data is the box that `stream_of` left there, and one call at a time is
    // the interface's rule. What stood in the place is not ours to drop.
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

/// # Safety
/// A stream made here that is not released, and a place for an array.
unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the caller vouches for both; the private data is the box that `stream_of` left there, and one call at a time is
    // the interface's rule. What stood in the place is not ours to drop.
    unsafe {
        let owned = &mut *(*stream).private_data.cast::<OwnedStream>();
        let next = owned.run(|batches| {
            let batch = batches.next_batch()?;
            // A released array is how the end is told.
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

/// # Safety
/// A stream made here that is not released.
unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the caller vouches for the stream; the text lives until the next call on it.
    unsafe {
        let owned = &*(*stream).private_data.cast::<OwnedStream>();
        let text = owned.last_error.as_ref();
        text.map_or(std::ptr::null(), |text| text.as_ptr())
    }
}

/// # Safety
/// A stream made here that is not released, and used by nobody else.
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the caller vouches for the stream; the private data is the box that `stream_of` left there.
    unsafe {
        let owned = Box::from_raw((*stream).private_data.cast::<OwnedStream>());
        (*stream).release = None;
        // Closing a statement may panic as little as fetching from it may.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(owned)));
    }
}
