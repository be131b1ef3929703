//! `Attribute`: reads attributes of Python instances directly from memory. The position of an
//! attribute is determined once per class.
//!
//! No Python code runs. A slot has a fixed offset, and a dictionary is searched for the interned
//! name. In CPython 3.11 to 3.13, instances may also share their keys and store only the values. At
//! import, [`check`] compares the results with those of `getattr`.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::dict;

/// `true` if instances with shared keys have the expected memory layout.
static READS_SHARED: AtomicBool = AtomicBool::new(false);

/// An attribute, and its position in instances of the class.
#[derive(Debug)]
pub(super) struct Attribute {
    name: Py<PyString>,
    position: Position,
}

#[derive(Debug)]
enum Position {
    /// The attribute is in a slot, at this offset in bytes.
    Slot(usize),
    /// The attribute is one of the keys that all instances share. The field is the index of its
    /// value, set at the first read.
    #[cfg_attr(
        not(Py_3_11),
        expect(dead_code, reason = "before 3.11 each instance has a dictionary")
    )]
    Shared(Cell<Option<usize>>),
    /// The attribute is in a dictionary. The object has the dictionary's address at this offset.
    Dict(usize),
    /// The attribute is in a dictionary. The dictionary's address is this number of bytes before
    /// the end of the object.
    DictAtEnd(usize),
}

impl Position {
    /// Returns the dictionary of an instance's attributes, or null.
    ///
    /// # Safety
    /// The requirements of [`Attribute::read`].
    unsafe fn dict(&self, object: *mut ffi::PyObject) -> *mut ffi::PyObject {
        // SAFETY: the caller guarantees that the object is alive and has the layout of its class.
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

/// Returns the attribute `name` of a class or its bases, without a call of descriptors.
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
    /// Finds where instances of `class` store an attribute. Returns `None` if a read may run Python
    /// code.
    pub(super) fn find(
        class: &Bound<'_, PyType>,
        name: &Bound<'_, PyString>,
    ) -> PyResult<Option<Attribute>> {
        let of_class = of_class(class, name)?;
        let address = |f: Option<ffi::getattrofunc>| f.map(|f| f as usize);
        let type_object = class.as_type_ptr();
        // SAFETY: classes that we hold, whose fields are read.
        let (own, plain) = unsafe {
            (
                (*type_object).tp_getattro,
                ffi::PyBaseObject_Type.tp_getattro,
            )
        };
        if address(own) != address(plain) {
            return Ok(None); // `__getattr__`
        }
        // SAFETY: a class and a descriptor that we hold.
        let position = unsafe {
            match &of_class {
                None => dictionary(type_object),
                Some(descriptor) => match slot(descriptor) {
                    Some(offset) => Some(Position::Slot(offset)),
                    None if takes_precedence(descriptor) => None,
                    None => dictionary(type_object),
                },
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

    /// Returns a borrowed reference to the attribute's value. Returns `None` if the attribute is
    /// not at the known position.
    ///
    /// # Safety
    /// `object` must be alive, and an instance of exactly the class of [`Attribute::find`]. The
    /// class must not have changed since then.
    #[inline(always)]
    pub(super) unsafe fn read(&self, object: *mut ffi::PyObject) -> Option<*mut ffi::PyObject> {
        // SAFETY: the caller guarantees that the object is alive and has the layout of its class.
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

    /// Returns the index of the attribute in the shared keys, and stores it in `noted`.
    ///
    /// # Safety
    /// The requirements of [`Attribute::read`].
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

/// Returns `true` if an instance has exactly these `attributes`, in this order.
///
/// # Safety
/// The requirements of [`Attribute::read`], which must already have read all of the attributes.
pub(super) unsafe fn are_all<'a>(
    object: *mut ffi::PyObject,
    attributes: impl ExactSizeIterator<Item = &'a Attribute> + Clone,
) -> bool {
    let Some(first) = attributes.clone().next() else {
        return false;
    };
    // SAFETY: the caller guarantees that the object is alive and has the layout of its class.
    let dict = unsafe {
        match &first.position {
            Position::Slot(_) => return false,
            Position::Shared(_) => match shared_values(object) {
                Ok(values) => return are_in_order(values.order(), attributes),
                Err(dict) => dict,
            },
            position => position.dict(object),
        }
    };
    if dict.is_null() {
        return false;
    }
    let (mut attributes, mut at) = (attributes, 0);
    // SAFETY: a `dict`, which is alive as its instance is, and not changed as no code runs.
    unsafe {
        let entries = dict::entries(dict);
        let are_there = attributes.all(|attribute| {
            let entry = entries.next(dict, &mut at);
            entry.is_some_and(|(key, _)| key == attribute.name())
        });
        are_there && entries.next(dict, &mut at).is_none()
    }
}

/// Returns `true` if `order` lists exactly the indexes of `attributes`.
fn are_in_order<'a>(
    order: impl ExactSizeIterator<Item = &'a u8>,
    attributes: impl ExactSizeIterator<Item = &'a Attribute>,
) -> bool {
    let is_at = |(&index, attribute): (&u8, &Attribute)| match &attribute.position {
        Position::Shared(noted) => noted.get() == Some(usize::from(index)),
        _ => false,
    };
    order.len() == attributes.len() && order.zip(attributes).all(is_at)
}

/// Returns `true` if the descriptor has `__set__`, and so hides the instance's value.
fn takes_precedence(descriptor: &Bound<'_, PyAny>) -> bool {
    let class = descriptor.get_type();
    // SAFETY: a class that we hold.
    unsafe { (*class.as_type_ptr()).tp_descr_set.is_some() }
}

/// Returns the offset of a slot in the instance; `None` for another descriptor.
///
/// # Safety
/// The GIL must be held.
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

/// Finds where instances of a class store attributes outside of slots.
///
/// # Safety
/// The class must be alive.
unsafe fn dictionary(class: *mut ffi::PyTypeObject) -> Option<Position> {
    // SAFETY: the caller guarantees that the class is alive.
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

/// The attribute values of an instance, in the order of the shared keys.
struct InstanceValues {
    first: *const *mut ffi::PyObject,
    n: usize,
}

impl InstanceValues {
    /// Returns the value at an index of the shared keys; null if the attribute is not set.
    ///
    /// # Safety
    /// The instance must not have changed since the values were found.
    #[inline(always)]
    unsafe fn get(&self, index: usize) -> *mut ffi::PyObject {
        if index >= self.n {
            return std::ptr::null_mut();
        }
        // SAFETY: one of as many.
        unsafe { *self.first.add(index) }
    }

    /// Returns the indexes of the instance's values in the order in which they were set.
    ///
    /// # Safety
    /// The instance must be alive, and must not have changed since `self` was created.
    unsafe fn order<'a>(&self) -> impl ExactSizeIterator<Item = &'a u8> + use<'a> {
        #[cfg(all(Py_3_11, not(Py_3_13)))]
        // SAFETY: CPython 3.11 and 3.12 store the number of indexes two bytes before the values.
        // The indexes precede it, in reverse order. `check` compares them with known orders.
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

/// Returns the attribute values of an instance, or `Err` with its dictionary (null if it has none).
///
/// # Safety
/// `object` must be alive, and its class must store the dictionary pointer before the object.
#[inline(always)]
unsafe fn shared_values(object: *mut ffi::PyObject) -> Result<InstanceValues, *mut ffi::PyObject> {
    // SAFETY: the caller guarantees that it is alive; `check` has compared this layout.
    unsafe {
        let dict = *object.cast::<*mut ffi::PyObject>().sub(3);
        values_before(object, dict).ok_or(dict)
    }
}

/// Implements [`shared_values`] for CPython 3.11. Only indexes of the shared keys are valid.
///
/// # Safety
/// The requirements of [`shared_values`]; `dict` must be the third word before the instance.
#[cfg(all(Py_3_11, not(Py_3_12)))]
#[inline(always)]
unsafe fn values_before(
    object: *mut ffi::PyObject,
    _dict: *mut ffi::PyObject,
) -> Option<InstanceValues> {
    // SAFETY: in the layout that `check` has compared.
    let first = unsafe { *object.cast::<*const *mut ffi::PyObject>().sub(4) };
    let n = usize::MAX;
    (!first.is_null()).then_some(InstanceValues { first, n })
}

/// Implements [`shared_values`] for CPython 3.12.
///
/// # Safety
/// The requirements of [`shared_values`]; `dict` must be the third word before the instance.
#[cfg(all(Py_3_12, not(Py_3_13)))]
#[inline(always)]
unsafe fn values_before(
    _object: *mut ffi::PyObject,
    dict: *mut ffi::PyObject,
) -> Option<InstanceValues> {
    let first = dict.wrapping_byte_add(1).cast_const().cast();
    let n = usize::MAX;
    (dict.addr() & 1 != 0).then_some(InstanceValues { first, n })
}

/// Implements [`shared_values`] for CPython 3.13, where the values are in the instance.
///
/// # Safety
/// The requirements of [`shared_values`]; `dict` must be the third word before the instance.
#[cfg(all(Py_3_13, not(Py_3_14)))]
#[inline(always)]
unsafe fn values_before(
    object: *mut ffi::PyObject,
    _dict: *mut ffi::PyObject,
) -> Option<InstanceValues> {
    const INLINE_VALUES: std::ffi::c_ulong = 1 << 2;
    const VALID: usize = 3;
    // SAFETY: in the layout that `check` has compared.
    unsafe {
        let class = ffi::Py_TYPE(object);
        if ffi::PyType_HasFeature(class, INLINE_VALUES) == 0 {
            return None;
        }
        let values = object.cast::<u8>().offset((*class).tp_basicsize);
        let (first, n) = (values.add(size_of::<usize>()).cast(), usize::from(*values));
        (*values.add(VALID) != 0).then_some(InstanceValues { first, n })
    }
}

/// Implements [`shared_values`] for other versions of CPython: nothing is read.
///
/// # Safety
/// The requirements of [`shared_values`]; `dict` must be the third word before the instance.
#[cfg(not(all(Py_3_11, not(Py_3_14))))]
unsafe fn values_before(
    _object: *mut ffi::PyObject,
    _dict: *mut ffi::PyObject,
) -> Option<InstanceValues> {
    None
}

/// Returns the value of the key `name`, or null. Keys are compared by their addresses.
///
/// # Safety
/// `dict` must be a live `dict`, or null.
unsafe fn find_in(dict: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    if dict.is_null() {
        return dict;
    }
    let mut at = 0;
    // SAFETY: the caller guarantees that it is alive, and it does not change meanwhile.
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

/// Compares, at import, the values in memory with those of `getattr`.
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
orders = [(first, ['a', 'b', 'later', 'last']), (C(1, 2), ['a', 'b'])]
orders += [(second, ['b', 'a']), (third, ['b', 'a'])]
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
            // `None`: the class has an attribute of this name, or the position is another one.
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
            // An instance with an additional attribute must not match.
            names.pop();
        }
    }
    Ok(())
}
