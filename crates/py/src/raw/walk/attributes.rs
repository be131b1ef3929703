//! Attributes of instances of Python's own classes, read in place: the position of each is found once for a class.
//!
//! Nothing here runs Python code, nor looks a name up: a slot is at a fixed offset, and a dictionary is searched for the name's own
//! object, which is interned. The values that the instances of a class share their keys for are read as CPython 3.11 to 3.13 arrange
//! them; [`check`] compares that with `getattr` once, when the module is imported. Other interpreters have slots and dictionaries only.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::dict;

/// Whether the values of instances are arranged as they are read here.
static READS_SHARED: AtomicBool = AtomicBool::new(false);

/// The position of one attribute in the instances of one class.
#[derive(Debug)]
pub(super) struct Attribute {
    name: Py<PyString>,
    position: Position,
}

#[derive(Debug)]
enum Position {
    /// In a slot, so many bytes from the start of the object.
    Slot(usize),
    /// Among the values whose keys the class has, by an index that is found with the first of them; or in a dictionary.
    #[cfg_attr(
        not(Py_3_11),
        expect(dead_code, reason = "before 3.11 each instance has a dictionary")
    )]
    Shared(Cell<Option<usize>>),
    /// In a dictionary whose address is so many bytes from the start of the object.
    Dict(usize),
    /// In a dictionary whose address is so many bytes before the end of an object of varying size.
    DictAtEnd(usize),
}

impl Position {
    /// The dictionary of an instance; null for none.
    ///
    /// # Safety
    /// As [`Attribute::read`].
    unsafe fn dict(&self, object: *mut ffi::PyObject) -> *mut ffi::PyObject {
        // SAFETY: alive, and laid out as the class says, by the caller's word.
        unsafe {
            match self {
                Position::Dict(offset) => *object.byte_add(*offset).cast(),
                Position::DictAtEnd(n_bytes) => {
                    let class = ffi::Py_TYPE(object);
                    let n_items = ffi::Py_SIZE(object).unsigned_abs();
                    let n_bytes_all = (*class).tp_basicsize.unsigned_abs()
                        + n_items * (*class).tp_itemsize.unsigned_abs();
                    let end = n_bytes_all.next_multiple_of(size_of::<usize>());
                    *object.byte_add(end - n_bytes).cast()
                }
                Position::Slot(_) | Position::Shared(_) => std::ptr::null_mut(),
            }
        }
    }
}

/// The attribute of a class or of one of its bases, as it is there; no descriptor is called.
pub(super) fn of_class<'py>(
    class: &Bound<'py, PyType>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    for base in class.mro() {
        let members = base.getattr(pyo3::intern!(class.py(), "__dict__"))?;
        if members.contains(name)? {
            return members.get_item(name).map(Some);
        }
    }
    Ok(None)
}

impl Attribute {
    /// The position of an attribute of the instances of `class`; `None` where reading it may run code, or is not possible in place.
    pub(super) fn find(
        class: &Bound<'_, PyType>,
        name: &Bound<'_, PyString>,
    ) -> PyResult<Option<Attribute>> {
        let of_class = of_class(class, name)?;
        // SAFETY: classes that we hold, whose fields are read.
        let position = unsafe {
            let class = class.as_type_ptr();
            let own = (*class).tp_getattro.map(|function| function as usize);
            let plain = ffi::PyBaseObject_Type
                .tp_getattro
                .map(|function| function as usize);
            if own != plain {
                return Ok(None); // `__getattr__`
            }
            match &of_class {
                Some(descriptor) => match slot(descriptor) {
                    Some(offset) => Some(Position::Slot(offset)),
                    // With `__set__` it takes precedence of what the instance has.
                    None if (*descriptor.get_type().as_type_ptr())
                        .tp_descr_set
                        .is_some() =>
                    {
                        None
                    }
                    None => dictionary(class),
                },
                None => dictionary(class),
            }
        };
        Ok(position.map(|position| Attribute {
            name: name.clone().unbind(),
            position,
        }))
    }

    pub(super) fn name(&self) -> *mut ffi::PyObject {
        self.name.as_ptr()
    }

    /// The value, borrowed from the instance; `None` where it has none, or not in its usual position.
    ///
    /// # Safety
    /// `object` is alive, and an instance of the class itself, which was not changed since.
    #[inline(always)]
    pub(super) unsafe fn read(&self, object: *mut ffi::PyObject) -> Option<*mut ffi::PyObject> {
        // SAFETY: alive, and laid out as the class says, by the caller's word.
        let value = unsafe {
            match &self.position {
                Position::Slot(offset) => *object.byte_add(*offset).cast(),
                Position::Shared(index) => match shared_values(object) {
                    Ok(values) => match index.get() {
                        Some(index) => values.get(index),
                        None => values.get(self.index(object, index)?),
                    },
                    Err(dict) => find_in(dict, self.name()),
                },
                position => find_in(position.dict(object), self.name()),
            }
        };
        (!value.is_null()).then_some(value)
    }

    /// The index among the values of instances, noted once the class has such a key.
    ///
    /// # Safety
    /// As [`Attribute::read`].
    #[cold]
    unsafe fn index(
        &self,
        object: *mut ffi::PyObject,
        noted: &Cell<Option<usize>>,
    ) -> Option<usize> {
        // SAFETY: instances with such values are of a class that was made by Python code.
        unsafe {
            let class = ffi::Py_TYPE(object).cast::<ffi::PyHeapTypeObject>();
            noted.set(dict::index_of((*class).ht_cached_keys, self.name()));
        }
        noted.get()
    }
}

/// True if an instance has these attributes and no others in its dictionary, set in this order.
///
/// # Safety
/// As [`Attribute::read`], which has read each of them.
pub(super) unsafe fn are_all<'a>(
    object: *mut ffi::PyObject,
    attributes: impl ExactSizeIterator<Item = &'a Attribute> + Clone,
) -> bool {
    let Some(first) = attributes.clone().next() else {
        return false;
    };
    // SAFETY: alive, and laid out as the class says, by the caller's word.
    unsafe {
        let dict = match &first.position {
            Position::Slot(_) => return false,
            Position::Shared(_) => match shared_values(object) {
                Ok(values) => {
                    let order = values.order();
                    return order.len() == attributes.len()
                        && order.zip(attributes).all(|(&index, attribute)| {
                            matches!(&attribute.position, Position::Shared(noted)
                                if noted.get() == Some(usize::from(index)))
                        });
                }
                Err(dict) => dict,
            },
            position => position.dict(object),
        };
        if dict.is_null() {
            return false;
        }
        let (entries, mut at) = (dict::entries(dict), 0);
        let mut attributes = attributes;
        let are_there = attributes.all(|attribute| {
            let entry = entries.next(dict, &mut at);
            entry.is_some_and(|(key, _)| key == attribute.name())
        });
        are_there && entries.next(dict, &mut at).is_none()
    }
}

/// The offset of a slot, by its descriptor.
///
/// # Safety
/// Attached.
unsafe fn slot(descriptor: &Bound<'_, PyAny>) -> Option<usize> {
    // SAFETY: of this very type, whose fields and whose table of C are never freed before it.
    unsafe {
        if ffi::Py_TYPE(descriptor.as_ptr()) != &raw mut ffi::PyMemberDescr_Type {
            return None;
        }
        let descriptor = descriptor.as_ptr().cast::<ffi::PyMemberDescrObject>();
        let member = (*descriptor).d_member.cast::<ffi::PyMemberDef>();
        if (*member).type_code != ffi::Py_T_OBJECT_EX {
            return None;
        }
        usize::try_from((*member).offset).ok()
    }
}

/// The position of an attribute that is not in a slot.
///
/// # Safety
/// The class is alive.
unsafe fn dictionary(class: *mut ffi::PyTypeObject) -> Option<Position> {
    // SAFETY: alive, by the caller's word.
    unsafe {
        #[cfg(Py_3_11)]
        if ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_MANAGED_DICT) != 0 {
            return READS_SHARED
                .load(Relaxed)
                .then_some(Position::Shared(Cell::new(None)));
        }
        let offset = (*class).tp_dictoffset;
        match offset.cmp(&0) {
            Ordering::Greater => Some(Position::Dict(offset.unsigned_abs())),
            Ordering::Less if cfg!(not(Py_3_12)) => {
                Some(Position::DictAtEnd(offset.unsigned_abs()))
            }
            _ => None,
        }
    }
}

/// The values of an instance, in the order of the keys that its class has.
struct Values {
    first: *const *mut ffi::PyObject,
    n: usize,
}

impl Values {
    /// One of them; null where there is none.
    ///
    /// # Safety
    /// The instance was not changed since they were found.
    #[inline(always)]
    unsafe fn get(&self, index: usize) -> *mut ffi::PyObject {
        if index >= self.n {
            return std::ptr::null_mut();
        }
        // SAFETY: one of as many.
        unsafe { *self.first.add(index) }
    }

    /// Their indexes in the order in which they were set.
    ///
    /// # Safety
    /// The instance is alive, and was not changed since they were found.
    unsafe fn order<'a>(&self) -> impl ExactSizeIterator<Item = &'a u8> + use<'a> {
        #[cfg(all(Py_3_11, not(Py_3_13)))]
        // SAFETY: CPython 3.11 and 3.12 have the number of indexes two bytes before the values, and
        // the indexes before it, the first one last. `check` compares them with known orders.
        unsafe {
            let n = self.first.cast::<u8>().sub(2);
            let order = std::slice::from_raw_parts(n.sub(usize::from(*n)), usize::from(*n));
            order.iter().rev()
        }
        #[cfg(all(Py_3_13, not(Py_3_14)))]
        // SAFETY: 3.13 has the number seven bytes before the values, and the indexes after them; as
        // above.
        unsafe {
            let n = *self.first.cast::<u8>().sub(7);
            std::slice::from_raw_parts(self.first.add(self.n).cast(), usize::from(n)).iter()
        }
        #[cfg(not(all(Py_3_11, not(Py_3_14))))]
        [].iter()
    }
}

/// The values of an instance, or the dictionary (null for none) that has them.
///
/// # Safety
/// `object` is alive, and of a class whose instances have their dictionaries in front of them.
#[inline(always)]
unsafe fn shared_values(object: *mut ffi::PyObject) -> Result<Values, *mut ffi::PyObject> {
    // SAFETY: alive, by the caller's word, in the layout that `check` has looked at. An index is one of a key that the class has, for
    // each of which an instance has a value.
    unsafe {
        let words = object.cast::<*mut ffi::PyObject>();
        let dict = *words.sub(3);
        #[cfg(all(Py_3_11, not(Py_3_12)))]
        {
            let values = *words.sub(4);
            if !values.is_null() {
                return Ok(Values {
                    first: values.cast(),
                    n: usize::MAX,
                });
            }
        }
        #[cfg(all(Py_3_12, not(Py_3_13)))]
        if dict.addr() & 1 != 0 {
            return Ok(Values {
                first: dict.wrapping_byte_add(1).cast(),
                n: usize::MAX,
            });
        }
        #[cfg(all(Py_3_13, not(Py_3_14)))]
        {
            const INLINE_VALUES: std::ffi::c_ulong = 1 << 2;
            const VALID: usize = 3;
            let class = ffi::Py_TYPE(object);
            if ffi::PyType_HasFeature(class, INLINE_VALUES) != 0 {
                let values = object.cast::<u8>().offset((*class).tp_basicsize);
                if *values.add(VALID) != 0 {
                    return Ok(Values {
                        first: values.add(size_of::<usize>()).cast(),
                        n: usize::from(*values),
                    });
                }
            }
        }
        Err(dict)
    }
}

/// The value of a name in a dictionary, whose key is the name's own object; null if there is none.
///
/// # Safety
/// `dict` is a `dict` that is alive, or null.
unsafe fn find_in(dict: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    if dict.is_null() {
        return dict;
    }
    let mut at = 0;
    // SAFETY: alive, by the caller's word, and not changed meanwhile.
    unsafe {
        let entries = dict::entries(dict);
        while let Some((key, value)) = entries.next(dict, &mut at) {
            if key == name {
                return value;
            }
        }
    }
    std::ptr::null_mut()
}

/// Looks whether attributes are where they are read here; to be called when the module is imported.
pub(super) fn check(py: Python<'_>) -> PyResult<()> {
    READS_SHARED.store(
        cfg!(all(Py_3_11, not(any(Py_3_14, Py_GIL_DISABLED)))),
        Relaxed,
    );
    let globals = pyo3::types::PyDict::new(py);
    let code = c"
import enum
class C:
    def __init__(self, a, b): self.a, self.b = a, b
class D(C):
    x = 1
    def __init__(self): super().__init__('a', 'b'); self.x = 'x'
class E(enum.Enum):
    a = 1
class I(int, enum.Enum):
    a = 1 << 70
class S:
    __slots__ = ('a', 'b')
first = C(0, 0)
first.later, first.last = 1, 2
seen, deleted, many, slots, half = C(3, 4), C(5, 6), C(7, 8), S(), S()
seen.__dict__
del deleted.a
for i in range(99): setattr(many, f'm{i}', i)
slots.a, slots.b = 'a', 'b'
half.b = 'b'
second, third = C.__new__(C), C(9, 10)
second.b, second.a = 1, 2
del third.a
third.a = 11
samples = [first, C('a', 'b'), seen, deleted, many, D(), E.a, I.a, slots, half]
names = ('a', 'b', 'x', 'later', 'last', 'm98', '_value_')
orders = [(first, ['a', 'b', 'later', 'last']), (C(1, 2), ['a', 'b']), (second, ['b', 'a']), (third, ['b', 'a'])]
orders += [(deleted, ['b'])]
";
    py.run(code, Some(&globals), None)?;
    let (samples, names) = (globals.get_item("samples")?, globals.get_item("names")?);
    let (Some(samples), Some(names)) = (samples, names) else {
        return Ok(());
    };
    for sample in samples.try_iter()? {
        let sample = sample?;
        for name in names.try_iter()? {
            let name = name?.cast_into::<PyString>()?;
            let Some(attribute) = Attribute::find(&sample.get_type(), &name)? else {
                continue;
            };
            // SAFETY: an instance that we hold, of a class that nobody changes.
            let read = unsafe { attribute.read(sample.as_ptr()) };
            // None is found where it is one of the class, or not in its usual position.
            if let Some(read) = read
                && sample.getattr_opt(&name)?.map(|value| value.as_ptr()) != Some(read)
            {
                READS_SHARED.store(false, Relaxed);
            }
        }
    }
    let orders = globals.get_item("orders")?;
    let orders = orders.map(|orders| orders.extract()).transpose()?;
    let orders: Vec<(Bound<'_, PyAny>, Vec<Bound<'_, PyString>>)> = orders.unwrap_or_default();
    for (sample, mut names) in orders {
        for is_expected in [true, false] {
            let found = names.iter().filter_map(|name| {
                let attribute = Attribute::find(&sample.get_type(), name).ok().flatten();
                // SAFETY: an instance that we hold, of a class that nobody changes.
                attribute.filter(|attribute| unsafe { attribute.read(sample.as_ptr()).is_some() })
            });
            let found: Vec<Attribute> = found.collect();
            // SAFETY: an instance that we hold, of a class that nobody changes; each was read.
            let are_all = unsafe { are_all(sample.as_ptr(), found.iter()) };
            if found.len() == names.len() && are_all != is_expected {
                READS_SHARED.store(false, Relaxed);
            }
            // Without the last one, these are not all.
            names.pop();
        }
    }
    Ok(())
}
