//! Numbers in memory that Python may write to, by the buffer protocol (PEP 3118).

use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;

use onecopy_rows::arrow::{Numbers, Unit};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Numbers whose memory stays where it is until this is dropped.
struct Values {
    at: *mut c_void,
    len: isize,
    item_bytes: isize,
    format: &'static CStr,
    capacity: usize,
    /// Frees the memory, which a vector of items of this size had.
    free: unsafe fn(*mut c_void, usize),
}

// SAFETY: the memory is this value's alone, and plain numbers.
unsafe impl Send for Values {}
// SAFETY: nothing here reads or writes the memory. Holders of buffers do, in Python code, whose races are its own, as with any
// `bytearray`.
unsafe impl Sync for Values {}

/// # Safety
/// `at` and `capacity` are those of a vector of `T`, which nobody uses any more.
unsafe fn free<T>(at: *mut c_void, capacity: usize) {
    // SAFETY: as the caller vouches; numbers need no drop, so a length of 0 will do.
    drop(unsafe { Vec::<T>::from_raw_parts(at.cast(), 0, capacity) });
}

impl Drop for Values {
    fn drop(&mut self) {
        // SAFETY: those of the vector that `of` was given; each buffer holds the object that this stands in, so none is left.
        unsafe { (self.free)(self.at, self.capacity) }
    }
}

impl Values {
    fn of<T: Copy + Send>(values: Vec<T>, format: &'static CStr) -> Values {
        let mut values = ManuallyDrop::new(values);
        Values {
            at: values.as_mut_ptr().cast(),
            len: values.len() as isize,
            item_bytes: size_of::<T>() as isize,
            format,
            capacity: values.capacity(),
            free: free::<T>,
        }
    }

    fn new(numbers: Numbers) -> Values {
        match numbers {
            Numbers::Bool(v) => Values::of(v, c"?"),
            Numbers::I8(v) => Values::of(v, c"b"),
            Numbers::I16(v) => Values::of(v, c"h"),
            Numbers::I32(v) => Values::of(v, c"i"),
            Numbers::I64(v) => Values::of(v, c"q"),
            Numbers::U8(v) => Values::of(v, c"B"),
            Numbers::U16(v) => Values::of(v, c"H"),
            Numbers::U32(v) => Values::of(v, c"I"),
            Numbers::U64(v) => Values::of(v, c"Q"),
            Numbers::F32(v) => Values::of(v, c"f"),
            Numbers::F64(v) => Values::of(v, c"d"),
        }
    }
}

/// A column of numbers, booleans or timestamps: a buffer that can be written to (PEP 3118), as `Cursor.fetch_columns` gives it.
///
/// ``memoryview(column)`` and ``numpy.asarray(column)`` share its memory. A NULL is NaN among floats and 0 among others;
/// `null_mask` tells it apart.
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
    /// Of timestamps: what they are counted in, and whether they are in UTC.
    timestamp: Option<(Unit, bool)>,
    values: Values,
    n_nulls: usize,
    null_mask: Option<Py<Column>>,
}

impl Column {
    /// A column of these values, `nulls` having a 1 for each that is NULL. Copies: none.
    pub(crate) fn new(
        py: Python<'_>,
        name: &str,
        type_code: &'static str,
        timestamp: Option<(Unit, bool)>,
        (numbers, nulls): (Numbers, Vec<u8>),
    ) -> PyResult<Column> {
        let n_nulls = nulls.iter().filter(|null| **null != 0).count();
        let mask = Column {
            name: name.to_owned(),
            type_code: "bool",
            timestamp: None,
            values: Values::new(Numbers::Bool(nulls)),
            n_nulls: 0,
            null_mask: None,
        };
        Ok(Column {
            name: name.to_owned(),
            type_code,
            timestamp,
            values: Values::new(numbers),
            n_nulls,
            null_mask: Some(Py::new(py, mask)?),
        })
    }

    /// Of timestamps: what they are counted in, and whether they are in UTC.
    pub(crate) fn timestamp(&self) -> Option<(Unit, bool)> {
        self.timestamp
    }
}

#[pymethods]
impl Column {
    /// The column's name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The type code, as in `Cursor.description`; of a column of SQLite that of its values.
    #[getter]
    fn type_code(&self) -> &'static str {
        self.type_code
    }

    /// The format of an item, as the module ``struct`` has it: ``"d"``, ``"q"``, ``"?"``, ….
    #[getter]
    fn format(&self) -> &'static str {
        self.values.format.to_str().unwrap_or_default()
    }

    /// What timestamps are counted in since 1970-01-01 00:00: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; ``None`` of other
    /// columns. With NumPy: ``numpy.asarray(column).view(f"M8[{column.unit}]")``.
    #[getter]
    fn unit(&self) -> Option<&'static str> {
        self.timestamp.map(|(unit, _)| unit.name())
    }

    /// Whether the timestamps are in UTC, those of the database having offsets.
    #[getter]
    fn is_utc(&self) -> bool {
        self.timestamp.is_some_and(|(_, is_utc)| is_utc)
    }

    /// How many values are NULL.
    #[getter]
    fn n_nulls(&self) -> usize {
        self.n_nulls
    }

    /// A column of booleans that are true where the value is NULL; ``None`` of a mask itself.
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

    /// # Safety
    /// `view` is null or a place for a view: CPython calls this for `bf_getbuffer`.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no place for the buffer"));
        }
        let values = &raw const slf.get().values;
        let asks = |flag: c_int| flags & flag == flag;
        // SAFETY: a place as CPython vouches, checked for null. Shape and stride stand in the object that the view holds,
        // where they do not move and nothing writes to them; the format is static.
        unsafe {
            let shape = (&raw const (*values).len).cast_mut();
            let strides = (&raw const (*values).item_bytes).cast_mut();
            let format = (*values).format.as_ptr().cast_mut();
            let or_null = |wanted: bool, at: *mut isize| match wanted {
                true => at,
                false => std::ptr::null_mut(),
            };
            (*view).buf = (*values).at;
            (*view).len = (*values).len * (*values).item_bytes;
            (*view).itemsize = (*values).item_bytes;
            (*view).readonly = 0;
            (*view).ndim = 1;
            (*view).format = match asks(ffi::PyBUF_FORMAT) {
                true => format,
                false => std::ptr::null_mut(),
            };
            (*view).shape = or_null(asks(ffi::PyBUF_ND), shape);
            (*view).strides = or_null(asks(ffi::PyBUF_STRIDES), strides);
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
}
