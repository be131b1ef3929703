//! Reads the memory of NumPy arrays, and the values of scalars.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;

use onecopy_wire::datetime64::{Step, Unit};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::classes::{Class, class_of, reads_arrays};
use super::view::Item;
use super::{Choice, DType, View, item_type};

/// NumPy's struct `PyArrayObject_fields`, since version 1.7.
#[repr(C)]
pub(super) struct ArrayObject {
    head: ffi::PyObject,
    first: *mut u8,
    n_dims: c_int,
    shape: *mut isize,
    strides: *mut isize,
    base: *mut ffi::PyObject,
    dtype: *mut ffi::PyObject,
}

/// The struct that `__array_struct__` points to (version 3 of NumPy's array interface).
#[repr(C)]
struct ArrayInterface {
    two: c_int,
    n_dims: c_int,
    kind: c_char,
    item_bytes: c_int,
    flags: c_int,
    shape: *mut isize,
    strides: *mut isize,
    first: *mut c_void,
}

/// The NumPy flags of arrays in C order, and of items in the processor's byte order.
const CONTIGUOUS: c_int = 1;
const NOT_SWAPPED: c_int = 0x200;

/// The size of each thread's cache of item types. The first `KEPT` entries are never replaced.
const KEPT: usize = 16;
const REMEMBERED: usize = 24;

thread_local! {
    static DTYPES: RefCell<Vec<(Py<PyAny>, DType)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the cached item type of a `dtype` object.
#[inline]
fn known_dtype(object: *mut ffi::PyObject) -> Option<DType> {
    DTYPES.with_borrow(|known| {
        let mut known = known.iter();
        known.find_map(|(of, dtype)| (of.as_ptr() == object).then_some(*dtype))
    })
}

/// Caches the item type of a `dtype` object. Returns the evicted `dtype`. The caller must drop it
/// when Python code may run.
fn remember_dtype<'py>(object: Bound<'py, PyAny>, dtype: DType) -> Option<Bound<'py, PyAny>> {
    // Text types are not cached, because `__setstate__` may change their size.
    if dtype.is_text() {
        return None;
    }
    let py = object.py();
    let replaced = DTYPES.with_borrow_mut(|known| {
        if known.iter().any(|(of, _)| of.is(&object)) {
            return None;
        }
        let entry = (object.unbind(), dtype);
        if known.len() < REMEMBERED {
            known.push(entry);
            return None;
        }
        known[KEPT..].rotate_left(1);
        Some(std::mem::replace(&mut known[REMEMBERED - 1], entry))
    });
    replaced.map(|(object, _)| object.into_bound(py))
}

/// Returns the [`View`] of an array, without Python code. `None` if the item type is not cached, or
/// if `choice` excludes the array.
///
/// # Safety
/// `object` must be alive and exactly of a NumPy array class. The caller must hold the GIL.
#[inline]
pub(crate) unsafe fn view_of(object: *mut ffi::PyObject, choice: Choice) -> Option<View> {
    // SAFETY: an array. Its layout was checked when its class was found.
    let view = unsafe {
        let array = object.cast::<ArrayObject>();
        let dtype = known_dtype((*array).dtype)?;
        fields_of(object, dtype)?
    };
    is_written(&view, choice).then_some(view)
}

/// Creates the view of an array from its object. `None` if a length is invalid.
///
/// # Safety
/// Same as [`view_of`]. The items must be of the type `dtype`.
#[inline]
pub(super) unsafe fn fields_of(object: *mut ffi::PyObject, dtype: DType) -> Option<View> {
    // SAFETY: an array, as the caller guarantees.
    unsafe {
        let array = object.cast::<ArrayObject>();
        let (shape, strides) = ((*array).shape, (*array).strides);
        View::new((*array).first, (*array).n_dims, shape, strides, dtype)
    }
}

/// Returns `true` if the option `choice` permits this array. orjson writes only contiguous arrays
/// of numbers in native byte order.
#[inline]
fn is_written(view: &View, choice: Choice) -> bool {
    match choice {
        Choice::Left => false,
        Choice::Any => true,
        Choice::Orjson => {
            !view.dtype().is_text()
                && view.n_dims() > 0
                && !view.dtype().is_swapped
                && view.is_contiguous()
        }
    }
}

/// The way in which a NumPy object is written.
pub(crate) enum Described<'py> {
    /// Read from memory. A scalar is an array without dimensions.
    Memory(Memory<'py>),
    /// Written as a list of its items.
    List(Bound<'py, PyAny>),
    /// Not written: its byte order is not native. orjson refuses such an array.
    Swapped,
}

/// The memory of an array, and the references that keep it alive.
pub(crate) struct Memory<'py> {
    pub(crate) view: View,
    pub(crate) object: Bound<'py, PyAny>,
    /// The value of `__array_struct__`.
    _interface: Bound<'py, PyAny>,
    /// A `dtype` object from the cache. Its release may run Python code, so it is released after
    /// the memory was read.
    _forgotten: Option<Bound<'py, PyAny>>,
}

impl<'py> Memory<'py> {
    /// Returns the memory that `__array_struct__` describes. The inner error is the type character
    /// of an unsupported item type. Any Python code may run first.
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Result<Memory<'py>, u8>> {
        let name = pyo3::intern!(object.py(), "__array_struct__");
        let mut interface = object.getattr(name)?;
        let mut step = None;
        if struct_of(&interface)?.kind as u8 == b'M' {
            step = step_of(object)?;
            interface = object.getattr(name)?;
        }
        let of = struct_of(&interface)?;
        let (kind, n_bytes) = (of.kind as u8, of.item_bytes.unsigned_abs() as usize);
        let Some(item) = item_type(kind, n_bytes, step) else {
            return Ok(Err(kind));
        };
        let dtype = DType {
            of: item,
            is_swapped: n_bytes > 1 && of.flags & NOT_SWAPPED == 0,
        };
        // SAFETY: the interface describes such items, and keeps them alive.
        let view = unsafe { View::new(of.first.cast(), of.n_dims, of.shape, of.strides, dtype) };
        Ok(view
            .map(|view| Memory {
                view,
                object: object.clone(),
                _interface: interface,
                _forgotten: None,
            })
            .ok_or(kind))
    }
}

/// Returns the struct in the capsule `interface`.
fn struct_of<'a>(interface: &'a Bound<'_, PyAny>) -> PyResult<&'a ArrayInterface> {
    // SAFETY: attached. Null with an error if it is not a capsule without a name. By NumPy's
    // documentation, such a capsule contains this struct.
    unsafe {
        let at = ffi::PyCapsule_GetPointer(interface.as_ptr(), null());
        match at.cast::<ArrayInterface>().as_ref() {
            Some(at) => Ok(at),
            None => Err(PyErr::fetch(interface.py())),
        }
    }
}

/// Returns the time unit of a `datetime64`. `None` if it has no unit.
fn step_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Step>> {
    let py = object.py();
    let dtype = object.getattr(pyo3::intern!(py, "dtype"))?;
    let data = py
        .import("numpy")?
        .call_method1("datetime_data", (dtype,))?;
    let (unit, n_units): (String, u32) = data.extract()?;
    Ok(Unit::of_name(&unit).map(|unit| Step { unit, n_units }))
}

/// Reads a NumPy object. `None` for other objects, and if `choice` excludes it. Any Python code may
/// run.
pub(crate) fn describe<'py>(
    object: &Bound<'py, PyAny>,
    choice: Choice,
) -> PyResult<Option<Described<'py>>> {
    if choice == Choice::Left {
        return Ok(None);
    }
    let is_array = match class_of(&object.get_type())? {
        None => return Ok(None),
        Some(Class::DerivedArray) if choice == Choice::Orjson => return Ok(None),
        Some(Class::Array | Class::DerivedArray) => true,
        Some(Class::Scalar) => false,
    };
    if is_array && choice == Choice::Orjson {
        let interface = object.getattr(pyo3::intern!(object.py(), "__array_struct__"))?;
        if struct_of(&interface)?.flags & (CONTIGUOUS | NOT_SWAPPED) == CONTIGUOUS {
            return Ok(Some(Described::Swapped));
        }
    }
    let mut memory = match Memory::of(object)? {
        // Such scalars are also `str` or `bytes`, and are written as such.
        Ok(memory) if !is_array && memory.view.dtype().is_text() => return Ok(None),
        Ok(memory) => memory,
        // Their memory contains references, or texts in NumPy's own format.
        Err(b'O' | b'T') if is_array && choice == Choice::Any => {
            return Ok(Some(Described::List(object.call_method0("tolist")?)));
        }
        Err(_) => return Ok(None),
    };
    let dtype = memory.view.dtype();
    if is_array && reads_arrays() {
        let object = object.getattr(pyo3::intern!(object.py(), "dtype"))?;
        memory._forgotten = remember_dtype(object, dtype);
    }
    let is_written = !is_array || is_written(&memory.view, choice);
    Ok(is_written.then_some(Described::Memory(memory)))
}

/// Returns `true` if `view` still describes the memory of `array`. May run Python code.
pub(crate) fn is_current(array: &Bound<'_, PyAny>, view: &View) -> PyResult<bool> {
    let now = Memory::of(array)?;
    Ok(now.is_ok_and(|now| now.view.is_same(view)))
}

/// Returns `true` if [`ArrayObject`] has the same values as the array interface.
pub(super) fn is_as_read(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(memory) = Memory::of(array)? else {
        return Ok(false);
    };
    let dtype = array.getattr("dtype")?;
    // SAFETY: an array, whose struct has these fields in all versions up to 2. Only words of its
    // own size are compared, and the number of dimensions before the shape and strides.
    unsafe {
        let of = array.as_ptr().cast::<ArrayObject>();
        let is_large =
            (*ffi::Py_TYPE(array.as_ptr())).tp_basicsize >= size_of::<ArrayObject>() as isize;
        if !is_large
            || (*of).dtype != dtype.as_ptr()
            || usize::try_from((*of).n_dims).ok() != Some(memory.view.n_dims())
        {
            return Ok(false);
        }
        let view = fields_of(array.as_ptr(), memory.view.dtype());
        Ok(view.is_some_and(|view| view.is_same(&memory.view)))
    }
}

impl Item<'_> {
    /// Converts a string item to a `str`.
    ///
    /// # Errors
    /// `MemoryError` if the allocation fails. `ValueError` for a code point above U+10FFFF.
    pub(crate) fn to_str<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut text = Vec::new();
        self.text(&mut text)
            .ok_or_else(|| PyMemoryError::new_err(()))?;
        if let Some(unit) = text.iter().find(|unit| **unit > u32::from(char::MAX)) {
            return Err(PyValueError::new_err(format!(
                "an array has a text with U+{unit:X}, which is no character"
            )));
        }
        // SAFETY: this number of characters, up to the last one.
        unsafe {
            let (kind, n) = (ffi::PyUnicode_4BYTE_KIND as c_int, text.len() as isize);
            let made = ffi::PyUnicode_FromKindAndData(kind, text.as_ptr().cast(), n);
            Bound::from_owned_ptr_or_err(py, made)
        }
    }
}
