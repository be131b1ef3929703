//! `Column`: numbers in writable memory, with the buffer protocol (PEP 3118).

use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;

use onecopy_rows::arrow::{Numbers, TimeUnit};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// The memory of a column's numbers, at a fixed address.
struct PinnedNumbers {
    at: *mut c_void,
    len: isize,
    item_bytes: isize,
    format: &'static CStr,
    capacity: usize,
    /// Frees the memory as a `Vec` of the original item type.
    free: unsafe fn(*mut c_void, usize),
}

// SAFETY: only this value refers to the memory, which holds plain numbers.
unsafe impl Send for PinnedNumbers {}
// SAFETY: nothing here reads or writes the memory. Holders of buffers do, in Python code, which is
// responsible for its races, as with any `bytearray`.
unsafe impl Sync for PinnedNumbers {}

/// Frees the memory of a `Vec<T>`, given its address and capacity.
///
/// # Safety
/// The address and capacity must be those of a leaked `Vec<T>` that is no longer used.
unsafe fn free<T>(at: *mut c_void, capacity: usize) {
    // SAFETY: as the caller guarantees; numbers need no drop, so a length of 0 will do.
    drop(unsafe { Vec::<T>::from_raw_parts(at.cast(), 0, capacity) });
}

impl Drop for PinnedNumbers {
    fn drop(&mut self) {
        // SAFETY: the arguments are those of the vector in `of`. Each buffer refers to the owner of
        // this memory, so none is left.
        unsafe { (self.free)(self.at, self.capacity) }
    }
}

impl PinnedNumbers {
    fn of<T: Copy + Send>(values: Vec<T>, format: &'static CStr) -> PinnedNumbers {
        let mut values = ManuallyDrop::new(values);
        PinnedNumbers {
            at: values.as_mut_ptr().cast(),
            len: values.len() as isize,
            item_bytes: size_of::<T>() as isize,
            format,
            capacity: values.capacity(),
            free: free::<T>,
        }
    }

    fn new(numbers: Numbers) -> PinnedNumbers {
        match numbers {
            Numbers::Bool(v) => PinnedNumbers::of(v, c"?"),
            Numbers::I8(v) => PinnedNumbers::of(v, c"b"),
            Numbers::I16(v) => PinnedNumbers::of(v, c"h"),
            Numbers::I32(v) => PinnedNumbers::of(v, c"i"),
            Numbers::I64(v) => PinnedNumbers::of(v, c"q"),
            Numbers::U8(v) => PinnedNumbers::of(v, c"B"),
            Numbers::U16(v) => PinnedNumbers::of(v, c"H"),
            Numbers::U32(v) => PinnedNumbers::of(v, c"I"),
            Numbers::U64(v) => PinnedNumbers::of(v, c"Q"),
            Numbers::F32(v) => PinnedNumbers::of(v, c"f"),
            Numbers::F64(v) => PinnedNumbers::of(v, c"d"),
        }
    }
}

/// A column of numbers, booleans or timestamps, as returned by `Cursor.fetch_columns`. It is a
/// writable buffer (PEP 3118).
///
/// ``memoryview(column)`` and ``numpy.asarray(column)`` share its memory. A NULL is NaN in a column
/// of floats, and 0 in any other column; `null_mask` distinguishes a NULL from a value.
///
/// >>> cur = onecopy.connect("sqlite::memory:").execute("select 1.5 as price union all select null")
/// >>> [price] = cur.fetch_columns()
/// >>> memoryview(price)[0] = 3.0
/// >>> list(memoryview(price)), list(memoryview(price.null_mask))
/// ([3.0, nan], [False, True])
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct Column {
    name: String,
    type_code: &'static str,
    /// The unit of timestamps, and `true` if they are in UTC. `None` for other columns.
    timestamp: Option<(TimeUnit, bool)>,
    values: PinnedNumbers,
    n_nulls: usize,
    null_mask: Option<Py<Column>>,
}

impl Column {
    /// Creates a column. `nulls` has one byte for each number: 1 for NULL, otherwise 0. Copies:
    /// none.
    pub(crate) fn new(
        py: Python<'_>,
        name: &str,
        type_code: &'static str,
        timestamp: Option<(TimeUnit, bool)>,
        (numbers, nulls): (Numbers, Vec<u8>),
    ) -> PyResult<Column> {
        let n_nulls = nulls.iter().filter(|null| **null != 0).count();
        let mask = Column {
            name: name.to_owned(),
            type_code: "bool",
            timestamp: None,
            values: PinnedNumbers::new(Numbers::Bool(nulls)),
            n_nulls: 0,
            null_mask: None,
        };
        Ok(Column {
            name: name.to_owned(),
            type_code,
            timestamp,
            values: PinnedNumbers::new(numbers),
            n_nulls,
            null_mask: Some(Py::new(py, mask)?),
        })
    }

    /// Returns the unit of timestamps, and `true` if they are in UTC.
    pub(crate) fn timestamp(&self) -> Option<(TimeUnit, bool)> {
        self.timestamp
    }
}

#[pymethods]
impl Column {
    /// The name of the column in the query's result.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The type code of the column, as in `Cursor.description`. For SQLite, it is the type code of
    /// the values.
    #[getter]
    fn type_code(&self) -> &'static str {
        self.type_code
    }

    /// The format of an item in the syntax of the module ``struct``: ``"d"``, ``"q"``, ``"?"``, ….
    #[getter]
    fn format(&self) -> &'static str {
        self.values.format.to_str().unwrap_or_default()
    }

    /// The unit of timestamps, counted from 1970-01-01 00:00: ``"s"``, ``"ms"``, ``"us"`` or
    /// ``"ns"``. ``None`` for other columns. With NumPy:
    /// ``numpy.asarray(column).view(f"M8[{column.unit}]")``.
    #[getter]
    fn unit(&self) -> Option<&'static str> {
        self.timestamp.map(|(unit, _)| unit.name())
    }

    /// ``True`` if the column contains timestamps in UTC: the database's column type includes a UTC
    /// offset.
    #[getter]
    fn is_utc(&self) -> bool {
        self.timestamp.is_some_and(|(_, is_utc)| is_utc)
    }

    /// The number of NULLs in the column.
    #[getter]
    fn n_nulls(&self) -> usize {
        self.n_nulls
    }

    /// The NULL mask: a column of booleans, true where the value is NULL. ``None`` for a column
    /// that is itself a mask.
    #[getter]
    fn null_mask(&self, py: Python<'_>) -> Option<Py<Column>> {
        self.null_mask.as_ref().map(|mask| mask.clone_ref(py))
    }

    fn __len__(&self) -> usize {
        self.values.len.unsigned_abs()
    }

    fn __repr__(&self) -> String {
        let (n, format) = (self.values.len, self.format());
        format!(
            "<onecopy.Column `{}`: {n} values of format `{format}`>",
            self.name
        )
    }

    /// Fills `view` with the address, format and shape of the column's memory.
    ///
    /// # Safety
    /// Only CPython may call this, as `bf_getbuffer`. `view` must be null or a writable
    /// `Py_buffer`.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err(
                "the pointer to the `Py_buffer` is null",
            ));
        }
        let values = &slf.get().values;
        let is_requested = |flag: c_int| flags & flag == flag;
        let or_null = |flag: c_int, at: *const isize| match is_requested(flag) {
            true => at.cast_mut(),
            false => std::ptr::null_mut(),
        };
        let mut filled = ffi::Py_buffer::new();
        filled.buf = values.at;
        filled.len = values.len * values.item_bytes;
        filled.itemsize = values.item_bytes;
        filled.readonly = 0;
        filled.ndim = 1;
        if is_requested(ffi::PyBUF_FORMAT) {
            filled.format = values.format.as_ptr().cast_mut();
        }
        filled.shape = or_null(ffi::PyBUF_ND, &raw const values.len);
        filled.strides = or_null(ffi::PyBUF_STRIDES, &raw const values.item_bytes);
        filled.obj = slf.clone().into_ptr();
        // SAFETY: CPython passes a valid view, not null. Shape and stride are in the owner of the
        // view, and do not move or change. The format is static.
        unsafe { view.write(filled) };
        Ok(())
    }
}
