//! `Class` and `RecentClasses`: cached properties of Python classes, for the encoders.
//!
//! The address and the version identify a class. CPython assigns a new version if the class or one
//! of its bases changes. No two classes have the same version.

use std::cell::{Cell, RefCell};
use std::ffi::c_uint;
use std::rc::Rc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::attributes::{self, Attribute};
use super::bson_types::BsonClass;
use super::builtin_types::ObjectKind;
use super::class_forms::{form_of, is_of_orjson};
use super::hints::Hints;
use crate::raw::ndarray::ScalarClass;

/// The number of entries in each thread's cache of classes.
const CLASSES: usize = 256;
/// The number of consecutive entries in which a class may be stored.
const PROBES: usize = 4;

/// How the instances of a class are written.
#[derive(Debug)]
pub(super) enum ClassForm {
    /// A `uuid.UUID`, whose value is read from its attribute `int`.
    Uuid(Attribute),
    /// A `decimal.Decimal`, whose coefficient and exponent are read from memory.
    Decimal,
    /// A member of an enumeration, whose attribute `value` is written.
    Enum(Attribute),
    /// A member of an `int` or `str` enumeration. It is written as the built-in type in the field.
    EnumContents(ObjectKind),
    /// An instance of a class derived from this built-in type, and written like it.
    Contents(ObjectKind),
    /// An `OrderedDict`. If its order is that of the `dict`, it is written as a `dict`.
    OrderedDict,
    /// A dataclass instance with these fields.
    Fields(Fields),
    /// A number, boolean or datetime of NumPy, read from memory.
    Scalar(ScalarClass),
    /// A NumPy array. `is_ndarray` is `false` for derived classes, which orjson refuses.
    Array { is_ndarray: bool },
    /// A class whose instances are passed to `ObjectForms`. If one instance cannot be written, none
    /// can.
    Uniform,
    /// A class whose instances are passed to the format's `ObjectForms`, one by one.
    Other,
}

#[derive(Debug)]
pub(super) struct Class {
    pub(super) form: ClassForm,
    /// `true` if the class has the attribute `_type_marker`, like a BSON class.
    pub(super) is_marked: bool,
    /// `true` if orjson writes the instances in the same way.
    pub(super) is_orjson: bool,
    /// The position of the value in instances of a BSON class, such as `ObjectId`.
    pub(super) marked: Option<BsonClass>,
    pub(super) hints: Hints,
    /// The options (as a number) with which the class cannot be written; 0 for none.
    no_form_by: Cell<u32>,
}

/// The fields of a dataclass, in order of definition.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) fields: Box<[(Attribute, bool)]>,
    pub(super) n_public: isize,
    /// `true` if the class itself defines `__slots__`. Otherwise, orjson writes the `__dict__` of
    /// an instance.
    pub(super) has_slots: bool,
}

impl Class {
    /// Returns the fields of a dataclass.
    pub(super) fn fields(&self) -> Option<&Fields> {
        match &self.form {
            ClassForm::Fields(fields) => Some(fields),
            _ => None,
        }
    }

    /// Returns `true` if this is the class of the object, in its current version.
    ///
    /// # Safety
    /// `object` must be alive.
    pub(super) unsafe fn is_of(self: &Rc<Class>, object: *mut ffi::PyObject) -> bool {
        // SAFETY: the caller guarantees the requirements.
        unsafe { of(object).is_some_and(|class| Rc::ptr_eq(&class, self)) }
    }
}

impl Fields {
    /// Returns the next field to write from index `at` on, and advances `at`. If `private` is
    /// `true`, names with a leading underscore are included.
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

    /// Returns the name of the next field to write (see [`Fields::step`]).
    pub(super) fn next_name(&self, private: bool, at: &mut isize) -> Option<*mut ffi::PyObject> {
        self.step(private, at).map(Attribute::name)
    }

    /// Returns the name and value of the next field to write (see [`Fields::step`]). The value is
    /// null if `object` does not have the attribute.
    ///
    /// # Safety
    /// The same requirements as for [`Attribute::read`].
    #[inline(always)]
    pub(super) unsafe fn next(
        &self,
        object: *mut ffi::PyObject,
        private: bool,
        at: &mut isize,
    ) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let attribute = self.step(private, at)?;
        // SAFETY: the caller guarantees the requirements.
        let value = unsafe { attribute.read(object) };
        Some((attribute.name(), value.unwrap_or(std::ptr::null_mut())))
    }

    /// Returns the value of the last written field, at the index `at - 1`.
    ///
    /// # Safety
    /// The same requirements as for [`Attribute::read`].
    pub(super) unsafe fn value_before(
        &self,
        object: *mut ffi::PyObject,
        at: isize,
    ) -> Option<*mut ffi::PyObject> {
        let field = self.fields.get(at.unsigned_abs().checked_sub(1)?)?;
        // SAFETY: the caller guarantees the requirements.
        unsafe { field.0.read(object) }
    }

    /// Returns the name of the last written field, at the index `at - 1`.
    pub(super) fn name_before(&self, at: isize) -> Option<*mut ffi::PyObject> {
        let field = self.fields.get(at.unsigned_abs().checked_sub(1)?)?;
        Some(field.0.name())
    }

    /// Returns the number of fields to write. If `private` is `true`, names with a leading
    /// underscore are included.
    #[inline(always)]
    pub(super) fn count(&self, private: bool) -> isize {
        match private {
            true => self.fields.len() as isize,
            false => self.n_public,
        }
    }

    /// Returns `true` if orjson writes exactly these fields. Without `__slots__`, orjson writes all
    /// attributes of an instance.
    ///
    /// # Safety
    /// The same requirements as for [`Attribute::read`].
    pub(super) unsafe fn are_those_of_orjson(&self, object: *mut ffi::PyObject) -> bool {
        let attributes = self.fields.iter().map(|(attribute, _)| attribute);
        // SAFETY: the caller guarantees the requirements; each attribute is read first, which notes
        // where it is.
        unsafe {
            attributes.clone().all(|a| a.read(object).is_some())
                && (self.has_slots || attributes::are_all(object, attributes))
        }
    }
}

struct ClassEntry {
    class: *mut ffi::PyTypeObject,
    version: c_uint,
    known: Rc<Class>,
}

thread_local! {
    static TABLE: RefCell<Vec<Option<ClassEntry>>> = const { RefCell::new(Vec::new()) };
}

/// Returns the version of a class; 0 if CPython has not assigned one.
///
/// # Safety
/// The class must be alive.
#[inline(always)]
unsafe fn version(class: *mut ffi::PyTypeObject) -> c_uint {
    // SAFETY: alive, as the caller guarantees.
    unsafe {
        #[cfg(not(Py_3_12))]
        if ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_VALID_VERSION_TAG) == 0 {
            return 0;
        }
        (*class).tp_version_tag
    }
}

/// A cache of recent classes, keyed by address. It is cleared before Python code runs, because such
/// code might free a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentClasses([(*mut ffi::PyTypeObject, *const Class); 4]);

impl RecentClasses {
    pub(super) const NONE: RecentClasses =
        RecentClasses([(std::ptr::null_mut(), std::ptr::null()); 4]);

    /// Returns the properties of an object's class, or null. The pointer is valid until Python code
    /// runs.
    ///
    /// # Safety
    /// `object` must be alive. No Python code may have run since `self` was
    /// [`RecentClasses::NONE`].
    #[inline(always)]
    pub(super) unsafe fn of(&mut self, object: *mut ffi::PyObject) -> *const Class {
        // SAFETY: alive, as the caller guarantees.
        let class = unsafe { ffi::Py_TYPE(object) };
        let position = (class.addr() >> 4 ^ class.addr() >> 9) % self.0.len();
        if self.0[position].0 != class {
            // SAFETY: the caller guarantees the requirements.
            let known = unsafe { of(object) };
            // The thread's table also holds a reference, so this drop frees nothing.
            self.0[position] = (
                class,
                known.map_or(std::ptr::null(), |known| Rc::as_ptr(&known)),
            );
        }
        self.0[position].1
    }
}

/// Converts a pointer of [`RecentClasses::of`] to an owned reference.
///
/// # Safety
/// `class` must be a result of [`RecentClasses::of`], not null. No Python code may have run since.
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

/// Returns the cached properties of an object's class, if any.
///
/// # Safety
/// `object` must be alive.
#[inline]
pub(super) unsafe fn of(object: *mut ffi::PyObject) -> Option<Rc<Class>> {
    // SAFETY: alive, as the caller guarantees.
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

/// Examines the class of an object and caches its properties. This may run Python code.
pub(super) fn learn(object: &Bound<'_, PyAny>) {
    // SAFETY: alive.
    if unsafe { of(object.as_ptr()) }.is_some() || cfg!(Py_GIL_DISABLED) {
        return;
    }
    let class = object.get_type();
    let address = class.as_type_ptr();
    // CPython assigns a version when an attribute of the class is looked up.
    let marker = class.getattr_opt(pyo3::intern!(class.py(), "_type_marker"));
    // SAFETY: a class that we hold.
    let before = unsafe { version(address) };
    let (Ok(marker), true) = (marker, before != 0) else {
        return;
    };
    let form = form_of(&class).unwrap_or(ClassForm::Other);
    let Ok(hints) = Hints::of(&class) else {
        return;
    };
    let known = Class {
        is_orjson: is_of_orjson(&class, &form).unwrap_or(false),
        form,
        is_marked: marker.is_some(),
        marked: marker.and_then(|_| BsonClass::of(&class).unwrap_or(None)),
        hints,
        no_form_by: Cell::new(0),
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
        table[at].replace(ClassEntry {
            class: address,
            version: before,
            known: Rc::new(known),
        })
    });
    drop(replaced);
}

/// Returns `true` if [`note_no_form`] has recorded the object's class for these `options`.
/// `options` is a number above 0.
pub(crate) fn has_no_form(object: &Bound<'_, PyAny>, options: u32) -> bool {
    // SAFETY: alive.
    let (known, flags) = unsafe {
        let flags = ffi::PyType_GetFlags(ffi::Py_TYPE(object.as_ptr()));
        (of(object.as_ptr()), flags)
    };
    // A later registration as a mapping keeps the version, so it is checked here.
    known.is_some_and(|class| class.no_form_by.get() == options)
        && flags & ffi::Py_TPFLAGS_MAPPING == 0
}

/// Records that the object's class cannot be written with these `options`. Does nothing if the
/// reason may not apply to all instances.
pub(crate) fn note_no_form(object: &Bound<'_, PyAny>, options: u32) {
    // SAFETY: alive.
    let Some(class) = (unsafe { of(object.as_ptr()) }) else {
        return;
    };
    let is_uniform = match class.form {
        ClassForm::Uniform => true,
        ClassForm::Enum(_) => !object.is_instance_of::<PyInt>(),
        _ => false,
    };
    if is_uniform {
        class.no_form_by.set(options);
    }
}
