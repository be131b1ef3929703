//! Functions of the module that cost no more than their work: called with a plain array (vectorcall, PEP 590), no
//! argument parser in front.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyTypeError;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pyo3::{Borrowed, ffi};

use super::{ending, stack, text};

/// A function of the module.
pub(crate) trait Function {
    /// Its name.
    const NAME: &'static str;
    /// Its signature, as `inspect` reads it: `(buffer, errors='strict')`.
    const SIGNATURE: &'static str;
    /// Its docstring.
    const DOC: &'static str;
    /// The parameters, in order, at most [`MOST`].
    const PARAMETERS: &'static [&'static str];
    /// How many of them must be given.
    const REQUIRED: usize;
    /// How many of them may be given by their place; the others go by their names.
    const POSITIONAL: usize = Self::PARAMETERS.len();

    /// A first try at a call without keywords, for what is short and needs nothing else; `None` where [`Function::call`] is to
    /// do it, or to say what is wrong. To be `#[inline(always)]`: what it saves is the way there.
    #[inline(always)]
    fn quick<'py>(_: Python<'py>, _: &Args<'_, 'py>) -> Option<Bound<'py, PyAny>> {
        None
    }

    /// The call. (References are counted as always; what is dropped here must be bound to `py`.)
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// The most parameters that a function has.
const MOST: usize = 20;

/// The arguments of a call, by the number of the parameter.
pub(crate) struct Args<'a, 'py>(&'a [*mut ffi::PyObject], Python<'py>);

impl<'a, 'py> Args<'a, 'py> {
    /// The argument, where one was given.
    #[inline]
    pub(crate) fn get(&self, parameter: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        let given = *self.0.get(parameter)?;
        if given.is_null() {
            return None;
        }
        // SAFETY: an argument of the call under way, which holds it as long as `'a`.
        Some(unsafe { Borrowed::from_ptr(self.1, given) })
    }

    /// How many parameters may have been given.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether any argument was given from a parameter on.
    #[inline]
    pub(crate) fn any_from(&self, parameter: usize) -> bool {
        self.0.len() > parameter && self.0[parameter..].iter().any(|given| !given.is_null())
    }

    /// An argument that must be given, as the call has checked.
    #[inline]
    pub(crate) fn required(&self, parameter: usize) -> Borrowed<'a, 'py, PyAny> {
        self.get(parameter).expect("checked by the call")
    }
}

/// Adds a function to a module.
pub(crate) fn add<F: Function>(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let name = CString::new(F::NAME).expect("no name has a zero byte");
    // CPython takes the signature off the docstring where this line stands between them.
    let doc = format!("{}{}\n--\n\n{}", F::NAME, F::SIGNATURE, F::DOC);
    let doc = CString::new(doc).expect("no docstring has a zero byte");
    let name_of_module = module.name()?;
    let method = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: Box::leak(name.into_boxed_c_str()).as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: entry::<F>,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: Box::leak(doc.into_boxed_c_str()).as_ptr(),
    }));
    // SAFETY: attached; the definition and what it points at live for ever. A new reference or null with an error.
    let function = unsafe {
        let function =
            ffi::PyCFunction_NewEx(method, std::ptr::null_mut(), name_of_module.as_ptr());
        Bound::from_owned_ptr_or_err(module.py(), function)?
    };
    module.add(F::NAME, function)
}

/// What CPython calls.
///
/// # Safety
/// CPython's: attached, `args` holds the positional arguments and then those of the keywords in the tuple `names`.
unsafe extern "C" fn entry<F: Function>(
    _module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    n_positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let n = n_positional as usize; // PEP 590: never negative
    // Nothing that the panic may have left half done is looked at again. The closure gives a pointer, not a result: that
    // would pass through memory.
    let made = catch_unwind(AssertUnwindSafe(|| {
        if names.is_null() && (F::REQUIRED..=F::POSITIONAL).contains(&n) {
            // SAFETY: CPython calls attached, and as many arguments are held by the caller until we return.
            let (py, given) = unsafe {
                (
                    Python::assume_attached(),
                    std::slice::from_raw_parts(args, n),
                )
            };
            if let Some(made) = F::quick(py, &Args(given, py)) {
                return made.into_ptr();
            }
        }
        std::ptr::null_mut()
    }));
    match made {
        // SAFETY: as this function was called.
        Ok(made) if made.is_null() => unsafe { whole_call::<F>(args, n, names) },
        Ok(made) => made,
        Err(panic) => fail_of_panic(&*panic),
    }
}

/// The call, from its start.
///
/// # Safety
/// As [`entry`].
#[inline(never)]
unsafe extern "C" fn whole_call<F: Function>(
    args: *const *mut ffi::PyObject,
    n: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let made = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: CPython calls attached.
        let py = unsafe { Python::assume_attached() };
        let mut named = [std::ptr::null_mut(); MOST];
        let args = if names.is_null() && (F::REQUIRED..=F::POSITIONAL).contains(&n) {
            // SAFETY: as many arguments, held by the caller until we return.
            Ok(unsafe { std::slice::from_raw_parts(args, n) })
        } else {
            // SAFETY: as this function was called.
            let arranged = unsafe { arrange::<F>(py, args, n, names, &mut named) };
            arranged.map(|()| &named[..F::PARAMETERS.len()])
        };
        let made = args.and_then(|args| {
            stack::check(py)?;
            F::call(py, &Args(args, py))
        });
        match made {
            Ok(made) => made.into_ptr(),
            Err(error) => fail(error),
        }
    }));
    made.unwrap_or_else(|panic| fail_of_panic(&*panic))
}

/// Calls an object with one argument, with little of the stack: what it calls may call this module again.
///
/// # Errors
/// What it raises.
#[inline(always)]
pub(crate) fn call_one<'py>(
    callable: &Bound<'py, PyAny>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let made = ending::calls(callable.py(), || {
        // SAFETY: attached; both are alive. A new reference or null with an error.
        unsafe { ffi::PyObject_CallOneArg(callable.as_ptr(), argument.as_ptr()) }
    });
    owned_or_error(callable.py(), made)
}

/// # Errors
/// That which is set, where there is no object.
#[inline(never)]
fn owned_or_error(py: Python<'_>, made: *mut ffi::PyObject) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference or null with an error, made by the caller.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

/// Sets the exception of a panic.
#[cold]
fn fail_of_panic(panic: &(dyn std::any::Any + Send)) -> *mut ffi::PyObject {
    let said = panic.downcast_ref::<&str>().map(ToString::to_string);
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    fail(PanicException::new_err(said.unwrap_or_default()))
}

/// Sets the error.
#[cold]
fn fail(error: PyErr) -> *mut ffi::PyObject {
    // Attached by our own count too: an error holds references.
    Python::attach(|py| error.restore(py));
    std::ptr::null_mut()
}

/// As [`Signature::arrange`].
///
/// # Safety
/// As [`entry`].
#[cold]
unsafe fn arrange<F: Function>(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    n: usize,
    names: *mut ffi::PyObject,
    given: &mut [*mut ffi::PyObject; MOST],
) -> PyResult<()> {
    let signature = Signature {
        name: F::NAME,
        parameters: F::PARAMETERS,
        n_required: F::REQUIRED,
        n_positional: F::POSITIONAL,
    };
    // SAFETY: as this function was called.
    unsafe { signature.arrange(py, args, n, names, given) }
}

/// What [`Function`] says of the parameters.
struct Signature {
    name: &'static str,
    parameters: &'static [&'static str],
    n_required: usize,
    n_positional: usize,
}

impl Signature {
    /// Puts each argument of a call with keywords, or with too few or too many arguments, to the number of its parameter. A
    /// function of its own, so that its variables are off the stack when the call is made.
    ///
    /// # Safety
    /// As [`entry`].
    #[inline(never)]
    unsafe fn arrange(
        &self,
        py: Python<'_>,
        args: *const *mut ffi::PyObject,
        n: usize,
        names: *mut ffi::PyObject,
        given: &mut [*mut ffi::PyObject; MOST],
    ) -> PyResult<()> {
        // SAFETY: null or a tuple that the caller holds.
        let names = unsafe { Borrowed::from_ptr_or_opt(py, names) };
        let names = match names {
            Some(names) => names.to_owned().cast_into::<PyTuple>()?,
            None => PyTuple::empty(py),
        };
        let function = self.name;
        if n > self.n_positional {
            return Err(PyTypeError::new_err(format!(
                "{function}() takes at most {} {}arguments ({n} given)",
                self.n_positional,
                if self.n_positional < self.parameters.len() {
                    "positional "
                } else {
                    ""
                },
            )));
        }
        // SAFETY: as many positional arguments, held by the caller until we return.
        given[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(args, n) });
        for (i, name) in names.iter().enumerate() {
            let name = name.cast_into::<PyString>()?;
            let word = text::ascii(name.as_any().as_borrowed());
            let named = |p: &&str| word == Some(p.as_bytes());
            let at = self.parameters.iter().position(named);
            let Some(at) = at else {
                return Err(PyTypeError::new_err(format!(
                    "{function}() got an unexpected keyword argument '{name}'"
                )));
            };
            if !given[at].is_null() {
                return Err(PyTypeError::new_err(format!(
                    "{function}() got multiple values for argument '{name}'"
                )));
            }
            // SAFETY: one argument for each name after the positional ones.
            given[at] = unsafe { *args.add(n + i) };
        }
        if let Some(missing) = given[..self.n_required].iter().position(|p| p.is_null()) {
            return Err(PyTypeError::new_err(format!(
                "{function}() missing required argument '{}' (pos {})",
                self.parameters[missing],
                missing + 1
            )));
        }
        Ok(())
    }
}
