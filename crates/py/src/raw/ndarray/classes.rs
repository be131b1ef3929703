//! NumPy's classes, once somebody has imported it.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use onecopy_wire::datetime64::{Step, Unit};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::object::{self, Described};
use super::{Choice, ItemType, Scalar, item_type};

/// A class of NumPy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// `ndarray` itself.
    Array,
    /// `memmap` or `matrix`: only their memory has a meaning. In other classes derived from
    /// `ndarray` it may have another meaning: a mask, a unit of measurement.
    DerivedArray,
    /// Of scalars.
    Scalar,
}

struct Known {
    dtype: Py<PyAny>,
    generic: Py<PyType>,
    ndarray: Py<PyType>,
    derived: [Py<PyType>; 2],
}

/// True if arrays are laid out as they are read here.
static READS_ARRAYS: AtomicBool = AtomicBool::new(false);

/// True if arrays are laid out as they are read here, by a comparison with the protocol.
pub(crate) fn reads_arrays() -> bool {
    READS_ARRAYS.load(Relaxed)
}

/// NumPy, if it is imported.
fn numpy(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    // SAFETY: attached; the dictionary of modules is borrowed from the interpreter.
    let modules = unsafe { Bound::from_borrowed_ptr(py, ffi::PyImport_GetModuleDict()) };
    modules
        .cast_into::<PyDict>()?
        .get_item(pyo3::intern!(py, "numpy"))
}

fn known(py: Python<'_>) -> PyResult<Option<&Known>> {
    static KNOWN: PyOnceLock<Known> = PyOnceLock::new();
    if let Some(known) = KNOWN.get(py) {
        return Ok(Some(known));
    }
    let Some(numpy) = numpy(py)? else {
        return Ok(None);
    };
    let class = |name: &str| -> PyResult<Py<PyType>> {
        Ok(numpy.getattr(name)?.cast_into::<PyType>()?.unbind())
    };
    // While it is being imported it has not all of them.
    let made = || -> PyResult<Known> {
        Ok(Known {
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

/// The class of NumPy's that this is; `None` of any other. Any Python code may run.
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
    // The class of a type of items, or one derived from it, which may have another meaning.
    let Ok(dtype) = known.dtype.bind(py).call1((class,)) else {
        return Ok(None);
    };
    let is_itself = dtype.getattr("type")?.is(class);
    Ok(is_itself.then_some(Class::Scalar))
}

/// True if an object is one of NumPy's scalars. Any Python code may run.
pub(crate) fn is_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(class_of(&object.get_type())? == Some(Class::Scalar))
}

/// A class of scalars whose values are read in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarClass(ItemType);

/// Units of `datetime64`, by their numbers in NumPy's C interface.
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
    /// The class, if it is one of NumPy's scalars and they are laid out as they are read here. Any
    /// Python code may run.
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

    /// Some instances of the class.
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

    /// True if its instances are of `float` too.
    pub(crate) fn is_float(self) -> bool {
        self.0 == ItemType::Float64
    }

    /// Bytes of an instance of which some are read.
    fn least_bytes(self) -> isize {
        let value = match self.0 {
            // With the unit, and how many of them.
            ItemType::Moment(_) => 16,
            of => of.n_bytes(),
        };
        (size_of::<ffi::PyObject>() + value) as isize
    }

    /// The value of a scalar.
    ///
    /// # Safety
    /// `object` is alive, and an instance of the class itself.
    #[inline]
    pub(crate) unsafe fn read(self, object: *mut ffi::PyObject) -> Scalar {
        // SAFETY: the value follows the head of the object, by the comparison in `find`.
        unsafe {
            let at = object.add(1).cast::<u8>();
            match self.0 {
                ItemType::Bool => Scalar::Bool(at.read() != 0),
                ItemType::Int8 => Scalar::Int32(at.cast::<i8>().read().into()),
                ItemType::Int16 => Scalar::Int32(at.cast::<i16>().read().into()),
                ItemType::Int32 => Scalar::Int32(at.cast::<i32>().read()),
                ItemType::Int64 => Scalar::Int64(at.cast::<i64>().read()),
                ItemType::Uint8 => Scalar::Int32(at.read().into()),
                ItemType::Uint16 => Scalar::Int32(at.cast::<u16>().read().into()),
                ItemType::Uint32 => Scalar::Int64(at.cast::<u32>().read().into()),
                ItemType::Uint64 => Scalar::Uint64(at.cast::<u64>().read()),
                ItemType::Float16 => Scalar::Half(at.cast::<u16>().read()),
                ItemType::Float32 => Scalar::Float(at.cast::<f32>().read()),
                ItemType::Float64 => Scalar::Double(at.cast::<f64>().read()),
                _ => {
                    let count = at.cast::<i64>().read();
                    let [unit, n_units] = at.add(8).cast::<[i32; 2]>().read();
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
}

/// Compares the struct of some arrays with what the protocol says of them.
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
