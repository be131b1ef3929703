//! NumPy's objects: the memory of arrays, the values of scalars.

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

/// The struct of an array, as NumPy's C interface has had it since 1.7 (`PyArrayObject_fields`).
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

/// Flags: of items that follow each other, those of the last dimension first; of items in the byte
/// order of this machine.
const CONTIGUOUS: c_int = 1;
const NOT_SWAPPED: c_int = 0x200;

/// Types of items that are remembered in one thread: those of the first are kept, later ones
/// replace each other.
const KEPT: usize = 16;
const REMEMBERED: usize = 24;

thread_local! {
    static DTYPES: RefCell<Vec<(Py<PyAny>, DType)>> = const { RefCell::new(Vec::new()) };
}

/// The type of items of a `dtype`, if it is remembered.
#[inline]
fn known_dtype(object: *mut ffi::PyObject) -> Option<DType> {
    DTYPES.with_borrow(|known| {
        let mut known = known.iter();
        known.find_map(|(of, dtype)| (of.as_ptr() == object).then_some(*dtype))
    })
}

/// Remembers the type of items of a `dtype`, and returns the one that is forgotten: to release it
/// may run code.
fn remember_dtype<'py>(object: Bound<'py, PyAny>, dtype: DType) -> Option<Bound<'py, PyAny>> {
    // The size of text may be changed by `__setstate__`; it is read each time.
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

/// The view of an array whose class and type of items are known; `None` of any other object, and if
/// it is not written by this choice.
///
/// # Safety
/// `object` is alive, attached, and of one of NumPy's classes of arrays itself.
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

/// The view of an array by its struct.
///
/// # Safety
/// As [`view_of`]; its items are of this type.
#[inline]
pub(super) unsafe fn fields_of(object: *mut ffi::PyObject, dtype: DType) -> Option<View> {
    // SAFETY: an array, by the caller's word.
    unsafe {
        let array = object.cast::<ArrayObject>();
        let (shape, strides) = ((*array).shape, (*array).strides);
        View::new((*array).first, (*array).n_dims, shape, strides, dtype)
    }
}

/// True if an array is written by this choice.
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

/// The form of an object of NumPy's.
pub(crate) enum Described<'py> {
    /// The memory of an array; of a scalar that of one without dimensions.
    Memory(Memory<'py>),
    /// An array of objects, or of texts of any length: the list of them.
    List(Bound<'py, PyAny>),
    /// An array in the byte order of another machine, which orjson refuses whether there is a
    /// `default` or not.
    Swapped,
}

/// The memory of an array, kept alive.
pub(crate) struct Memory<'py> {
    pub(crate) view: View,
    pub(crate) object: Bound<'py, PyAny>,
    /// The value of `__array_struct__`, which keeps the memory alive.
    _interface: Bound<'py, PyAny>,
    /// Released after the memory was read, for it may run code.
    _forgotten: Option<Bound<'py, PyAny>>,
}

impl<'py> Memory<'py> {
    /// The memory that `__array_struct__` describes, or the kind of items that are not read here.
    /// Any Python code may run, but not after the memory is looked at.
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

/// The struct of a capsule of `__array_struct__`.
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

/// The unit of an array or scalar of `datetime64`.
fn step_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Step>> {
    let py = object.py();
    let dtype = object.getattr(pyo3::intern!(py, "dtype"))?;
    let data = py
        .import("numpy")?
        .call_method1("datetime_data", (dtype,))?;
    let (unit, n_units): (String, u32) = data.extract()?;
    Ok(Unit::of_name(&unit).map(|unit| Step { unit, n_units }))
}

/// Reads an object by NumPy's array interface; `None` of any that is none of NumPy's, has no form,
/// or is not written by this choice. Any Python code may run.
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
        // Such scalars are objects of `str` and `bytes`.
        Ok(memory) if !is_array && memory.view.dtype().is_text() => return Ok(None),
        Ok(memory) => memory,
        // Not their memory: the objects themselves, or what the library makes of its own form of
        // text.
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

/// True if a view is still that of its array. Any Python code may run.
pub(crate) fn is_current(array: &Bound<'_, PyAny>, view: &View) -> PyResult<bool> {
    let now = Memory::of(array)?;
    Ok(now.is_ok_and(|now| now.view.is_same(view)))
}

/// True if the struct of an array is as the protocol describes it.
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
    /// A text.
    ///
    /// # Errors
    /// `MemoryError`; `ValueError` for what is no character.
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
