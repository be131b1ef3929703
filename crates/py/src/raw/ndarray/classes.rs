//! Recognizes the classes of NumPy. If no other code has imported NumPy, no class is recognized.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use onecopy_wire::datetime64::{Step, Unit};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::object::{self, Described};
use super::{Choice, ItemType, Scalar, item_type};

/// A NumPy class whose instances the encoders can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The class `ndarray` itself, not a class derived from it.
    Array,
    /// `memmap` or `matrix`: derived classes with the same memory as `ndarray`. In other derived
    /// classes, the memory may have another meaning (a mask, a unit).
    DerivedArray,
    /// A scalar class, such as `float64`.
    Scalar,
}

struct NumpyClasses {
    dtype: Py<PyAny>,
    generic: Py<PyType>,
    ndarray: Py<PyType>,
    derived: [Py<PyType>; 2],
}

/// `true` if NumPy's `ndarray` objects have the expected memory layout.
static READS_ARRAYS: AtomicBool = AtomicBool::new(false);

/// Returns `true` if `ndarray` objects have the expected memory layout.
pub(crate) fn reads_arrays() -> bool {
    READS_ARRAYS.load(Relaxed)
}

/// Returns the module `numpy`, if it was imported.
fn numpy(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    // SAFETY: attached; the dictionary of modules is borrowed from the interpreter.
    let modules = unsafe { Bound::from_borrowed_ptr(py, ffi::PyImport_GetModuleDict()) };
    modules
        .cast_into::<PyDict>()?
        .get_item(pyo3::intern!(py, "numpy"))
}

fn known(py: Python<'_>) -> PyResult<Option<&NumpyClasses>> {
    static KNOWN: PyOnceLock<NumpyClasses> = PyOnceLock::new();
    if let Some(known) = KNOWN.get(py) {
        return Ok(Some(known));
    }
    let Some(numpy) = numpy(py)? else {
        return Ok(None);
    };
    let class = |name: &str| -> PyResult<Py<PyType>> {
        Ok(numpy.getattr(name)?.cast_into::<PyType>()?.unbind())
    };
    // During the import of NumPy, some of its classes are missing.
    let made = || -> PyResult<NumpyClasses> {
        Ok(NumpyClasses {
            dtype: numpy.getattr("dtype")?.unbind(),
            generic: class("generic")?,
            ndarray: class("ndarray")?,
            derived: [class("memmap")?, class("matrix")?],
        })
    };
    let Ok(made) = made() else { return Ok(None) };
    let is_first = KNOWN.set(py, made).is_ok();
    if is_first {
        READS_ARRAYS.store(arrays_are_as_read(&numpy)?, Relaxed);
    }
    Ok(KNOWN.get(py))
}

/// Returns the [`Class`] of a NumPy class that the encoders can write. Python code may run.
pub(crate) fn class_of(class: &Bound<'_, PyType>) -> PyResult<Option<Class>> {
    let py = class.py();
    let Some(known) = known(py)? else {
        return Ok(None);
    };
    if class.is(&known.ndarray) {
        return Ok(Some(Class::Array));
    }
    if known.derived.iter().any(|derived| class.is(derived)) {
        return Ok(Some(Class::DerivedArray));
    }
    if !class.is_subclass(known.generic.bind(py))? {
        return Ok(None);
    }
    // A class derived from a scalar class may give its value another meaning, so it is refused.
    let Ok(dtype) = known.dtype.bind(py).call1((class,)) else {
        return Ok(None);
    };
    let is_itself = dtype.getattr("type")?.is(class);
    Ok(is_itself.then_some(Class::Scalar))
}

/// Returns `true` if an object is a NumPy scalar. Python code may run.
pub(crate) fn is_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(class_of(&object.get_type())? == Some(Class::Scalar))
}

/// Returns `true` for an instance of NumPy's `generic`, the base of all scalars. Returns `false` if
/// NumPy was not imported. Python code may run.
pub(crate) fn is_generic(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    known(py)?.map_or(Ok(false), |known| {
        object.is_instance(known.generic.bind(py))
    })
}

/// A NumPy scalar class, with values that are read from memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarClass(ItemType);

/// The time units of `datetime64`, indexed by their numbers in NumPy's C API.
const UNITS: [Option<Unit>; 14] = [
    Some(Unit::Year),
    Some(Unit::Month),
    Some(Unit::Week),
    None,
    Some(Unit::Day),
    Some(Unit::Hour),
    Some(Unit::Minute),
    Some(Unit::Second),
    Some(Unit::Milli),
    Some(Unit::Micro),
    Some(Unit::Nano),
    Some(Unit::Pico),
    Some(Unit::Femto),
    Some(Unit::Atto),
];

impl ScalarClass {
    /// Returns the `ScalarClass` of `class`. Returns `None` if it is not a NumPy scalar class or
    /// has another memory layout. Python code may run.
    pub(crate) fn find(class: &Bound<'_, PyType>) -> PyResult<Option<ScalarClass>> {
        let py = class.py();
        if class_of(class)? != Some(Class::Scalar) {
            return Ok(None);
        }
        let Some(known) = known(py)? else {
            return Ok(None);
        };
        let dtype = known.dtype.bind(py).call1((class,))?;
        let kind: char = dtype.getattr("kind")?.extract()?;
        let n_bytes: usize = dtype.getattr("itemsize")?.extract()?;
        if n_bytes == 0 {
            return Ok(None); // Text or bytes, whose length depends on the instance.
        }
        let of = item_type(kind as u8, n_bytes, None);
        let Some(found) = of.map(ScalarClass) else {
            return Ok(None);
        };
        // SAFETY: a class that we hold.
        let has_value = unsafe { (*class.as_type_ptr()).tp_basicsize } >= found.least_bytes();
        if !has_value {
            return Ok(None);
        }
        for sample in found.samples(class, &dtype)? {
            let Some(Described::Memory(memory)) = object::describe(&sample, Choice::Any)? else {
                return Ok(None);
            };
            let by_protocol = memory.view.item().and_then(|item| item.scalar());
            // SAFETY: an instance of this class, at least as large as is read of it.
            let in_place = unsafe { found.read(sample.as_ptr()) };
            if by_protocol != Some(in_place) {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Creates test instances of the class. The caller compares their memory with NumPy's values.
    fn samples<'py>(
        self,
        class: &Bound<'py, PyType>,
        dtype: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = class.py();
        if let ItemType::Moment(_) = self.0 {
            const NAMES: [&str; 13] = [
                "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "7ns", "ps", "fs", "25as",
            ];
            let sample = |unit: &str| class.call1((12_345, unit));
            let mut samples: Vec<_> = NAMES.into_iter().map(sample).collect::<PyResult<_>>()?;
            samples.push(class.call1(("NaT",))?);
            return Ok(samples);
        }
        let bytes = match self.0 {
            ItemType::Bool => PyBytes::new(py, &[1]),
            of => PyBytes::new(py, &[1, 2, 3, 4, 5, 6, 7, 8][..of.n_bytes()]),
        };
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("frombuffer", (bytes, dtype))?;
        Ok(vec![array.get_item(0)?])
    }

    /// Returns `true` if the instances are also instances of `float`.
    pub(crate) fn is_float(self) -> bool {
        self.0 == ItemType::Float64
    }

    /// Returns the minimum size of an instance in bytes, for a read of its value.
    fn least_bytes(self) -> isize {
        let value = match self.0 {
            // The number of units, and the unit itself.
            ItemType::Moment(_) => 16,
            of => of.n_bytes(),
        };
        (size_of::<ffi::PyObject>() + value) as isize
    }

    /// Returns the value of an instance of the class.
    ///
    /// # Safety
    /// `object` must be alive, and an instance of exactly this class.
    #[inline]
    pub(crate) unsafe fn read(self, object: *mut ffi::PyObject) -> Scalar {
        /// The fields of a `datetime64` scalar.
        #[repr(C)]
        struct Moment {
            count: i64,
            unit: [i32; 2],
        }
        macro_rules! value {
            ($of:ty) => {
                // SAFETY: a value of this type follows the head of the object, by the comparison
                // in `find`.
                unsafe { object.add(1).cast::<$of>().read() }
            };
        }
        match self.0 {
            ItemType::Bool => Scalar::Bool(value!(u8) != 0),
            ItemType::Int8 => Scalar::Int32(value!(i8).into()),
            ItemType::Int16 => Scalar::Int32(value!(i16).into()),
            ItemType::Int32 => Scalar::Int32(value!(i32)),
            ItemType::Int64 => Scalar::Int64(value!(i64)),
            ItemType::Uint8 => Scalar::Int32(value!(u8).into()),
            ItemType::Uint16 => Scalar::Int32(value!(u16).into()),
            ItemType::Uint32 => Scalar::Int64(value!(u32).into()),
            ItemType::Uint64 => Scalar::Uint64(value!(u64)),
            ItemType::Float16 => Scalar::Half(value!(u16)),
            ItemType::Float32 => Scalar::Float(value!(f32)),
            ItemType::Float64 => Scalar::Double(value!(f64)),
            _ => {
                let Moment {
                    count,
                    unit: [unit, n_units],
                } = value!(Moment);
                let unit = usize::try_from(unit).ok();
                let step = unit.and_then(|unit| *UNITS.get(unit)?).map(|unit| Step {
                    unit,
                    n_units: n_units.unsigned_abs(),
                });
                Scalar::Moment(count, step)
            }
        }
    }
}

/// Tests whether this module can read NumPy's arrays. Compares the fields of sample arrays with the
/// fields that NumPy reports.
fn arrays_are_as_read(numpy: &Bound<'_, PyAny>) -> PyResult<bool> {
    let globals = PyDict::new(numpy.py());
    globals.set_item("numpy", numpy)?;
    let code: &CStr = c"
first = numpy.arange(24, dtype='i4').reshape(2, 3, 4)
samples = [first, first.T, first[::-1, ::2, 1:], first[:0], first[0]]
samples += [numpy.zeros(()), numpy.zeros(5, 'M8[us]'), numpy.zeros(3, '>f8')]
";
    numpy.py().run(code, Some(&globals), None)?;
    let Some(samples) = globals.get_item("samples")? else {
        return Ok(false);
    };
    for sample in samples.try_iter()? {
        if !object::is_as_read(&sample?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
