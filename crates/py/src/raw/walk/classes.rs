//! How the instances of a class are written, found once for each class.
//!
//! A class is known by its address and by its version, which CPython changes with the class or one of its bases and gives to no other:
//! a class that was changed, or another one at the same address, is looked at anew.

use std::cell::RefCell;
use std::ffi::c_uint;
use std::rc::Rc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDate, PyDict, PyFloat, PyInt, PyList, PyString, PyTime, PyTuple, PyType};

use super::attributes::{self, Attribute};
use super::decimal;
use super::hints::Hints;
use super::marked::Marked;
use super::object::Kind;
use crate::raw::ndarray::{self, ScalarClass};
use crate::raw::{number, uuid};

/// Classes that are remembered in one thread.
const CLASSES: usize = 256;
/// Positions of the table that one class may have.
const PROBES: usize = 4;

/// How the instances of a class are written.
#[derive(Debug)]
pub(super) enum Form {
    /// A UUID, by its number.
    Uuid(Attribute),
    /// A `decimal.Decimal`, by its coefficient and exponent.
    Decimal,
    /// A member of an enumeration, by its value.
    Enum(Attribute),
    /// A member of an enumeration that equals its value, by its contents.
    EnumContents(Kind),
    /// As the contents that it has of one of CPython's own types.
    Contents(Kind),
    /// An object of the fields of a dataclass.
    Fields(Fields),
    /// A number, boolean or moment of NumPy's.
    Scalar(ScalarClass),
    /// An array of NumPy's, as orjson knows it or not.
    Array { is_ndarray: bool },
    /// By code.
    Other,
}

/// What is known of a class.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) form: Form,
    /// Whether it is one of BSON's own types.
    pub(super) is_marked: bool,
    /// True if orjson writes its instances in this form as well.
    pub(super) is_orjson: bool,
    /// How BSON reads it in place, of those types.
    pub(super) marked: Option<Marked>,
    pub(super) hints: Hints,
}

/// The fields of a dataclass, in order.
#[derive(Debug)]
pub(super) struct Fields {
    fields: Box<[(Attribute, bool)]>,
    n_public: isize,
    /// True if the class itself has `__slots__`: orjson writes the fields of its instances then, and
    /// the dictionaries of others.
    has_slots: bool,
}

impl Class {
    /// The fields, of a dataclass.
    pub(super) fn fields(&self) -> Option<&Fields> {
        match &self.form {
            Form::Fields(fields) => Some(fields),
            _ => None,
        }
    }

    /// Whether an object is still an instance of this class, as it was looked at.
    ///
    /// # Safety
    /// `object` is alive.
    pub(super) unsafe fn is_of(self: &Rc<Class>, object: *mut ffi::PyObject) -> bool {
        // SAFETY: the duty of the caller.
        unsafe { of(object).is_some_and(|class| Rc::ptr_eq(&class, self)) }
    }
}

impl Fields {
    /// The first field at `at` or after it that is written; moves `at` after it.
    #[inline(always)]
    fn step(&self, private: bool, at: &mut isize) -> Option<&Attribute> {
        loop {
            let (attribute, is_private) = self.fields.get(at.unsigned_abs())?;
            *at += 1;
            if private || !is_private {
                return Some(attribute);
            }
        }
    }

    /// The name of the first field at `at` or after it that is written; moves `at` after it.
    pub(super) fn next_name(&self, private: bool, at: &mut isize) -> Option<*mut ffi::PyObject> {
        self.step(private, at).map(Attribute::name)
    }

    /// As [`Fields::next_name`], with the value: null if the instance has none.
    ///
    /// # Safety
    /// As [`Attribute::read`].
    #[inline(always)]
    pub(super) unsafe fn next(
        &self,
        object: *mut ffi::PyObject,
        private: bool,
        at: &mut isize,
    ) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let attribute = self.step(private, at)?;
        // SAFETY: the duty of the caller.
        let value = unsafe { attribute.read(object) };
        Some((attribute.name(), value.unwrap_or(std::ptr::null_mut())))
    }

    /// The value of the field before `at`.
    ///
    /// # Safety
    /// As [`Attribute::read`].
    pub(super) unsafe fn value_before(
        &self,
        object: *mut ffi::PyObject,
        at: isize,
    ) -> Option<*mut ffi::PyObject> {
        let field = self.fields.get(at.unsigned_abs().checked_sub(1)?)?;
        // SAFETY: the duty of the caller.
        unsafe { field.0.read(object) }
    }

    /// The name of the last field before `at`.
    pub(super) fn name_before(&self, at: isize) -> Option<*mut ffi::PyObject> {
        let field = self.fields.get(at.unsigned_abs().checked_sub(1)?)?;
        Some(field.0.name())
    }

    /// How many fields are written.
    pub(super) fn count(&self, private: bool) -> isize {
        match private {
            true => self.fields.len() as isize,
            false => self.n_public,
        }
    }

    /// True if orjson writes these fields of an instance, and nothing else.
    ///
    /// # Safety
    /// As [`Attribute::read`].
    pub(super) unsafe fn are_those_of_orjson(&self, object: *mut ffi::PyObject) -> bool {
        let attributes = self.fields.iter().map(|(attribute, _)| attribute);
        // SAFETY: the duty of the caller; each attribute is read first, which notes where it is.
        unsafe {
            attributes.clone().all(|a| a.read(object).is_some())
                && (self.has_slots || attributes::are_all(object, attributes))
        }
    }
}

struct Entry {
    class: *mut ffi::PyTypeObject,
    version: c_uint,
    known: Rc<Class>,
}

thread_local! {
    static TABLE: RefCell<Vec<Option<Entry>>> = const { RefCell::new(Vec::new()) };
}

/// The version of a class; 0 where it has none.
///
/// # Safety
/// The class is alive.
#[inline(always)]
unsafe fn version(class: *mut ffi::PyTypeObject) -> c_uint {
    // SAFETY: alive, by the caller's word.
    unsafe {
        #[cfg(not(Py_3_12))]
        if ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_VALID_VERSION_TAG) == 0 {
            return 0;
        }
        (*class).tp_version_tag
    }
}

/// Classes of the objects that were met since code last ran, which might change a class or free it: found by address.
///
/// Without it each object would borrow the table of the thread and count a reference (10 ns).
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentClasses([(*mut ffi::PyTypeObject, *const Class); 4]);

impl RecentClasses {
    pub(super) const NONE: RecentClasses =
        RecentClasses([(std::ptr::null_mut(), std::ptr::null()); 4]);

    /// The entry of the class of an object, null if there is none. Valid until code runs: nothing leaves the table of the thread
    /// before.
    ///
    /// # Safety
    /// `object` is alive, and no code has run since this was [`RecentClasses::NONE`].
    #[inline(always)]
    pub(super) unsafe fn of(&mut self, object: *mut ffi::PyObject) -> *const Class {
        // SAFETY: alive, by the caller's word.
        let class = unsafe { ffi::Py_TYPE(object) };
        let position = (class.addr() >> 4 ^ class.addr() >> 9) % self.0.len();
        if self.0[position].0 != class {
            // SAFETY: the duty of the caller.
            let known = unsafe { of(object) };
            // The table holds it too.
            self.0[position] = (
                class,
                known.map_or(std::ptr::null(), |known| Rc::as_ptr(&known)),
            );
        }
        self.0[position].1
    }
}

/// One more owner of what is known of a class.
///
/// # Safety
/// `class` was returned by [`RecentClasses::of`], not null, and no code has run since.
pub(super) unsafe fn own(class: *const Class) -> Rc<Class> {
    // SAFETY: of an `Rc` that the table of the thread holds.
    unsafe {
        Rc::increment_strong_count(class);
        Rc::from_raw(class)
    }
}

fn first_position(class: *mut ffi::PyTypeObject) -> usize {
    let address = class.addr();
    (address >> 4 ^ address >> 11) % CLASSES
}

/// What is known of the class of an object, if anything.
///
/// # Safety
/// `object` is alive.
#[inline]
pub(super) unsafe fn of(object: *mut ffi::PyObject) -> Option<Rc<Class>> {
    // SAFETY: alive, by the caller's word.
    let (class, version) = unsafe {
        let class = ffi::Py_TYPE(object);
        (class, version(class))
    };
    TABLE.with_borrow(|table| {
        let first = first_position(class);
        (first..first + PROBES).find_map(|i| {
            let entry = table.get(i % CLASSES)?.as_ref()?;
            let is_it = entry.class == class && entry.version == version && version != 0;
            is_it.then(|| entry.known.clone())
        })
    })
}

/// Looks at the class of an object, where that was not done before. Any Python code may run.
pub(super) fn learn(object: &Bound<'_, PyAny>) {
    // SAFETY: alive.
    if unsafe { of(object.as_ptr()) }.is_some() || cfg!(Py_GIL_DISABLED) {
        return;
    }
    let class = object.get_type();
    let address = class.as_type_ptr();
    // A class has a version once an attribute of it was looked for.
    let marker = class.getattr_opt(pyo3::intern!(class.py(), "_type_marker"));
    // SAFETY: a class that we hold.
    let before = unsafe { version(address) };
    let (Ok(marker), true) = (marker, before != 0) else {
        return;
    };
    let form = form_of(&class).unwrap_or(Form::Other);
    let Ok(hints) = Hints::of(&class) else {
        return;
    };
    let known = Class {
        is_orjson: is_of_orjson(&class, &form).unwrap_or(false),
        form,
        is_marked: marker.is_some(),
        marked: marker.and_then(|_| Marked::of(&class).unwrap_or(None)),
        hints,
    };
    // SAFETY: a class that we hold.
    if unsafe { version(address) } != before {
        return;
    }
    let replaced = TABLE.with_borrow_mut(|table| {
        table.resize_with(CLASSES, || None);
        let first = first_position(address);
        let is_free = |&i: &usize| match &table[i] {
            Some(entry) => entry.class == address,
            None => true,
        };
        let mut positions = (first..first + PROBES).map(|i| i % CLASSES);
        let at = positions.find(is_free).unwrap_or(first);
        table[at].replace(Entry {
            class: address,
            version: before,
            known: Rc::new(known),
        })
    });
    drop(replaced);
}

/// How the instances of a class are written: in the order in which the writers of JSON and BSON look at an object.
fn form_of(class: &Bound<'_, PyType>) -> PyResult<Form> {
    let py = class.py();
    // One that says that it is of another class is written as one of that.
    let own = attributes::of_class(class, pyo3::intern!(py, "__class__"))?;
    let plain = attributes::of_class(&py.get_type::<PyAny>(), pyo3::intern!(py, "__class__"))?;
    let is_itself = own.map(|own| own.as_ptr()) == plain.map(|plain| plain.as_ptr());
    if !is_itself || class.is_subclass_of::<PyDate>()? || class.is_subclass_of::<PyTime>()? {
        return Ok(Form::Other);
    }
    let decimals = number::decimal_class(py)?;
    if class.is_subclass(decimals)? {
        return Ok(match class.is(decimals) && decimal::is_known(class)? {
            true => Form::Decimal,
            false => Form::Other,
        });
    }
    match ndarray::class_of(class)? {
        Some(ndarray::Class::Scalar) => {
            if let Some(scalar) = ScalarClass::find(class)? {
                return Ok(Form::Scalar(scalar));
            }
        }
        Some(array) if ndarray::reads_arrays() => {
            let is_ndarray = array == ndarray::Class::Array;
            return Ok(Form::Array { is_ndarray });
        }
        _ => {}
    }
    if class.is(uuid::class(py)?) {
        let number = Attribute::find(class, pyo3::intern!(py, "int"))?;
        return Ok(number.map_or(Form::Other, Form::Uuid));
    }
    let enumeration = enumeration(py)?;
    if class.is_subclass(enumeration)? {
        let value = pyo3::intern!(py, "value");
        let own = attributes::of_class(class, value)?;
        let plain = attributes::of_class(enumeration, value)?;
        if own.map(|own| own.as_ptr()) != plain.map(|plain| plain.as_ptr()) {
            return Ok(Form::Other); // A property of its own, or a member of this name.
        }
        if let Some(kind) = contents_of_members(class)? {
            return Ok(Form::EnumContents(kind));
        }
        let value = Attribute::find(class, pyo3::intern!(py, "_value_"))?;
        return Ok(value.map_or(Form::Other, Form::Enum));
    }
    if class.is_subclass_of::<PyDict>()? {
        let items = pyo3::intern!(py, "items");
        let own = attributes::of_class(class, items)?;
        let plain = attributes::of_class(&py.get_type::<PyDict>(), items)?;
        return Ok(
            match own.map(|own| own.as_ptr()) == plain.map(|plain| plain.as_ptr()) {
                true => Form::Contents(Kind::Dict),
                false => Form::Other,
            },
        );
    }
    Ok(if class.is_subclass_of::<PyString>()? {
        Form::Contents(Kind::Str)
    } else if class.is_subclass_of::<PyInt>()? {
        Form::Contents(Kind::Int)
    } else if class.is_subclass_of::<PyFloat>()? {
        Form::Contents(Kind::Float)
    } else if class.is_subclass_of::<PyList>()? {
        Form::Contents(Kind::List)
    } else if class.is_subclass_of::<PyTuple>()? {
        Form::Contents(Kind::Tuple)
    } else {
        fields_of(class)?.map_or(Form::Other, Form::Fields)
    })
}

/// The kind of the members of an enumeration, if each is of a class derived from `str` or `int` and equals its value, as in `IntEnum` and
/// `StrEnum`: then the contents need one look less than the value.
fn contents_of_members(class: &Bound<'_, PyType>) -> PyResult<Option<Kind>> {
    let py = class.py();
    let (base, kind) = if class.is_subclass_of::<PyString>()? {
        (py.get_type::<PyString>(), Kind::Str)
    } else if class.is_subclass_of::<PyInt>()? {
        (py.get_type::<PyInt>(), Kind::Int)
    } else {
        return Ok(None);
    };
    let equals = base.getattr(pyo3::intern!(py, "__eq__"))?;
    let members = class.getattr(pyo3::intern!(py, "__members__"))?;
    for member in members
        .call_method0(pyo3::intern!(py, "values"))?
        .try_iter()?
    {
        let member = member?;
        let value = member.getattr(pyo3::intern!(py, "_value_"))?;
        if !value.get_type().is(&base) || !equals.call1((value, member))?.is_truthy()? {
            return Ok(None);
        }
    }
    Ok(Some(kind))
}

/// True if orjson recognizes a class as having this form: an enumeration by its metaclass, a
/// dataclass if it is one itself, and not only derived from one.
fn is_of_orjson(class: &Bound<'_, PyType>, form: &Form) -> PyResult<bool> {
    match form {
        Form::Enum(_) | Form::EnumContents(_) => {
            Ok(class.get_type().is(enumeration(class.py())?.get_type()))
        }
        Form::Fields(_) => has_own(class, "__dataclass_fields__"),
        _ => Ok(true),
    }
}

/// True if a class itself has an attribute, and not only one of its bases.
fn has_own(class: &Bound<'_, PyType>, name: &str) -> PyResult<bool> {
    class.getattr("__dict__")?.contains(name)
}

/// `enum.Enum`, imported once.
fn enumeration(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "enum", "Enum")
}

/// The fields of a dataclass, where each is read in place.
fn fields_of(class: &Bound<'_, PyType>) -> PyResult<Option<Fields>> {
    let py = class.py();
    let name = pyo3::intern!(py, "__dataclass_fields__");
    let Some(members) = attributes::of_class(class, name)? else {
        return Ok(None);
    };
    // A metaclass may have another opinion.
    if !class.getattr(name)?.is(&members) {
        return Ok(None);
    }
    let Ok(members) = members.cast_into_exact::<PyDict>() else {
        return Ok(None);
    };
    let kind = py.import("dataclasses")?.getattr("_FIELD")?;
    let mut fields = Vec::with_capacity(members.len());
    for (name, field) in members {
        if !field.getattr(pyo3::intern!(py, "_field_type"))?.is(&kind) {
            continue; // a ClassVar or InitVar
        }
        let Ok(name) = name.cast_into_exact::<PyString>() else {
            return Ok(None);
        };
        let Some(attribute) = Attribute::find(class, &name)? else {
            return Ok(None);
        };
        let is_private = name
            .as_any()
            .call_method1("startswith", ("_",))?
            .is_truthy()?;
        fields.push((attribute, is_private));
    }
    let n_public = fields.iter().filter(|(_, is_private)| !is_private).count();
    Ok(Some(Fields {
        fields: fields.into(),
        n_public: n_public as isize,
        has_slots: has_own(class, "__slots__")?,
    }))
}
