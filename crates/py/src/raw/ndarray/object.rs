//! Reads NumPy objects: the memory of arrays, and the values of scalars.

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

/// The fields of an array object in NumPy's C API since version 1.7 (`PyArrayObject_fields`).
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

/// The NumPy flag of an array whose items are contiguous in C order (the index of the last
/// dimension varies fastest). `NOT_SWAPPED` is the NumPy flag of an array whose items have the
/// processor's byte order.
const CONTIGUOUS: c_int = 1;
const NOT_SWAPPED: c_int = 0x200;

/// The number of cached item types (from `dtype` objects) that are never evicted. Each thread
/// caches up to `REMEMBERED` item types. When its cache is full, a new type replaces one at an
/// index of at least `KEPT`.
const KEPT: usize = 16;
const REMEMBERED: usize = 24;

thread_local! {
    static DTYPES: RefCell<Vec<(Py<PyAny>, DType)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the item type of a NumPy `dtype` object from this thread's cache; `None` if the cache
/// does not contain it.
#[inline]
fn known_dtype(object: *mut ffi::PyObject) -> Option<DType> {
    DTYPES.with_borrow(|known| {
        let mut known = known.iter();
        known.find_map(|(of, dtype)| (of.as_ptr() == object).then_some(*dtype))
    })
}

/// Caches the item type of a `dtype` object. Returns the `dtype` object that was evicted from the
/// cache. The caller must drop it at a time when Python code may run.
fn remember_dtype<'py>(object: Bound<'py, PyAny>, dtype: DType) -> Option<Bound<'py, PyAny>> {
    // `__setstate__` may change the size of text items, so text types are not cached.
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

/// Returns the [`View`] of an array (its memory, shape and item type), without running Python code.
/// Returns `None` if this thread has not cached the item type of the array, or if the option
/// `choice` does not permit writing the array.
///
/// # Safety
/// `object` must be alive and exactly of a NumPy array class, and the GIL must be held.
#[inline]
pub(crate) unsafe fn view_of(object: *mut ffi::PyObject, choice: Choice) -> Option<View> {
    // SAFETY: an array, in the layout that was compared with the protocol when its class was found.
    let view = unsafe {
        let array = object.cast::<ArrayObject>();
        let dtype = known_dtype((*array).dtype)?;
        fields_of(object, dtype)?
    };
    is_written(&view, choice).then_some(view)
}

/// Creates the view of an array of type `dtype` from the fields of the array object. Returns `None`
/// if a length is invalid.
///
/// # Safety
/// The same requirements as for [`view_of`]. The items must be of the type `dtype`.
#[inline]
pub(super) unsafe fn fields_of(object: *mut ffi::PyObject, dtype: DType) -> Option<View> {
    // SAFETY: an array, as the caller guarantees.
    unsafe {
        let array = object.cast::<ArrayObject>();
        let (shape, strides) = ((*array).shape, (*array).strides);
        View::new((*array).first, (*array).n_dims, shape, strides, dtype)
    }
}

/// Returns `true` if the option `choice` permits writing this array. `Choice::Orjson` permits only
/// the arrays that orjson writes: contiguous arrays of numbers in native byte order.
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

/// How a NumPy object is written.
pub(crate) enum Described<'py> {
    /// The object is an array or a scalar, and its items are read from its memory. A scalar is
    /// treated as an array without dimensions.
    Memory(Memory<'py>),
    /// The array is written as a list of its items, which are objects or strings of variable
    /// length.
    List(Bound<'py, PyAny>),
    /// The object is not written, because the byte order of the array differs from the processor's.
    /// orjson refuses such an array even if a `default` is set.
    Swapped,
}

/// The memory of an array, with references that keep it alive.
pub(crate) struct Memory<'py> {
    pub(crate) view: View,
    pub(crate) object: Bound<'py, PyAny>,
    /// The value of `__array_struct__`, which keeps the array's memory alive.
    _interface: Bound<'py, PyAny>,
    /// A `dtype` object that was evicted from the cache of item types. It must be released only
    /// after the memory was read, because its release may run Python code.
    _forgotten: Option<Bound<'py, PyAny>>,
}

impl<'py> Memory<'py> {
    /// Returns the memory that `__array_struct__` describes. If the type of its items is not
    /// supported, the inner error is the type character of NumPy's array interface. Any Python code
    /// may run before the memory is examined, but not afterwards.
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
        // SAFETY: the interface of an array of such items, which it keeps alive.
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

/// Returns the struct in the capsule `interface`, which is the value of the attribute
/// `__array_struct__`.
fn struct_of<'a>(interface: &'a Bound<'_, PyAny>) -> PyResult<&'a ArrayInterface> {
    // SAFETY: attached. It is null, and an error is set, if that is no capsule without a name; such
    // a one has this struct as long as it lives, by NumPy's documentation.
    unsafe {
        let at = ffi::PyCapsule_GetPointer(interface.as_ptr(), null());
        match at.cast::<ArrayInterface>().as_ref() {
            Some(at) => Ok(at),
            None => Err(PyErr::fetch(interface.py())),
        }
    }
}

/// Returns the time unit of an array or scalar of `datetime64`, such as microseconds; `None` if
/// there is no unit.
fn step_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Step>> {
    let py = object.py();
    let dtype = object.getattr(pyo3::intern!(py, "dtype"))?;
    let data = py
        .import("numpy")?
        .call_method1("datetime_data", (dtype,))?;
    let (unit, n_units): (String, u32) = data.extract()?;
    Ok(Unit::of_name(&unit).map(|unit| Step { unit, n_units }))
}

/// Reads an object through NumPy's array interface. Returns `None` if the object is not from NumPy,
/// cannot be represented, or is excluded by `choice`. Any Python code may run.
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
        // Scalars of these types are also instances of `str` or `bytes`, and are written as such.
        Ok(memory) if !is_array && memory.view.dtype().is_text() => return Ok(None),
        Ok(memory) => memory,
        // The memory of such arrays contains object references, or texts in a format of NumPy's
        // own.
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

/// Returns `true` if the memory of `array` is still the memory that `view` describes. Python code
/// may have replaced the memory since `view` was created. This function may run Python code.
pub(crate) fn is_current(array: &Bound<'_, PyAny>, view: &View) -> PyResult<bool> {
    let now = Memory::of(array)?;
    Ok(now.is_ok_and(|now| now.view.is_same(view)))
}

/// Returns `true` if the fields of [`ArrayObject`] that are read from an array object are equal to
/// those that the array interface reports.
pub(super) fn is_as_read(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(memory) = Memory::of(array)? else {
        return Ok(false);
    };
    let dtype = array.getattr("dtype")?;
    // SAFETY: an array, whose struct has these fields in all versions up to 2; only words of its
    // own size are compared, but for the shape and strides, whose number is compared before.
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
    /// Returns the value of a string item as a `str`.
    ///
    /// # Errors
    /// `MemoryError` if the `str` cannot be allocated; `ValueError` for a code point above
    /// U+10FFFF.
    pub(crate) fn to_str<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut text = Vec::new();
        self.text(&mut text)
            .ok_or_else(|| PyMemoryError::new_err(()))?;
        if let Some(unit) = text.iter().find(|unit| **unit > u32::from(char::MAX)) {
            return Err(PyValueError::new_err(format!(
                "an array has a text with U+{unit:X}, which is no character"
            )));
        }
        // SAFETY: as many characters, all up to the last that there is.
        unsafe {
            let (kind, n) = (ffi::PyUnicode_4BYTE_KIND as c_int, text.len() as isize);
            let made = ffi::PyUnicode_FromKindAndData(kind, text.as_ptr().cast(), n);
            Bound::from_owned_ptr_or_err(py, made)
        }
    }
}
