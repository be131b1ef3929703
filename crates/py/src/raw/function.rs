//! `Function`: module functions with arguments in a C array (vectorcall, PEP 590), without PyO3's
//! parser.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyTypeError;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pyo3::{Borrowed, ffi};

use super::{gil, stack, text};

/// A function of a Python module, implemented in Rust.
pub(crate) trait Function {
    const NAME: &'static str;
    /// The signature for `inspect`, such as `(buffer, errors='strict')`.
    const SIGNATURE: &'static str;
    /// The docstring of the function.
    const DOC: &'static str;
    /// The names of the parameters, at most [`MOST`].
    const PARAMETERS: &'static [&'static str];
    /// The number of required parameters.
    const REQUIRED: usize;
    /// The number of positional parameters. The others are keyword-only.
    const POSITIONAL: usize = Self::PARAMETERS.len();

    /// A fast path for short inputs without keyword arguments. Returns `None` for any other call.
    /// Implementations should be `#[inline(always)]`.
    #[inline(always)]
    fn quick<'py>(_: Python<'py>, _: &Args<'_, 'py>) -> Option<Bound<'py, PyAny>> {
        None
    }

    /// Runs the function with any arguments. It must drop its Python references before it returns,
    /// because the GIL is held until then.
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// The maximum number of parameters of a function.
const MOST: usize = 20;

/// The arguments of a call, in the order of [`Function::PARAMETERS`].
pub(crate) struct Args<'a, 'py>(&'a [*mut ffi::PyObject], Python<'py>);

impl<'a, 'py> Args<'a, 'py> {
    /// Returns the argument for a parameter, if it was passed.
    #[inline]
    pub(crate) fn get(&self, parameter: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        let given = *self.0.get(parameter)?;
        if given.is_null() {
            return None;
        }
        // SAFETY: an argument of the call under way, which holds it as long as `'a`.
        Some(unsafe { Borrowed::from_ptr(self.1, given) })
    }

    /// Returns the length of the array of arguments. Null for a skipped argument is counted too.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if an argument was passed for `parameter` or a later one.
    #[inline]
    pub(crate) fn any_from(&self, parameter: usize) -> bool {
        self.0.len() > parameter && self.0[parameter..].iter().any(|given| !given.is_null())
    }

    /// Returns the argument of a required parameter. The caller must have checked that it exists.
    #[inline]
    pub(crate) fn required(&self, parameter: usize) -> Borrowed<'a, 'py, PyAny> {
        self.get(parameter).expect("checked by the call")
    }
}

/// Adds the function `F` to a Python module.
pub(crate) fn add<F: Function>(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let name = CString::new(F::NAME).expect("no name has a zero byte");
    // CPython splits the signature from the docstring at the line `--`.
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
    // SAFETY: attached; the definition and its memory are never freed. A new reference, or null
    // with an error.
    let function = unsafe {
        let function =
            ffi::PyCFunction_NewEx(method, std::ptr::null_mut(), name_of_module.as_ptr());
        Bound::from_owned_ptr_or_err(module.py(), function)?
    };
    module.add(F::NAME, function)
}

/// The C function that CPython calls for the Python function `F`.
///
/// # Safety
/// Only CPython may call this function, with the GIL. `args` must contain the positional arguments,
/// then the values of the keyword arguments in the tuple `names`.
unsafe extern "C" fn entry<F: Function>(
    _module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    n_positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let n = n_positional as usize; // PEP 590: never negative
    // State that a panic may have left incomplete is not used again. The closure returns a pointer,
    // which fits into a register.
    let made = catch_unwind(AssertUnwindSafe(|| {
        if names.is_null() && (F::REQUIRED..=F::POSITIONAL).contains(&n) {
            // SAFETY: CPython calls attached, and the caller holds that many arguments until we
            // return.
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

/// Handles every call that [`Function::quick`] does not handle.
///
/// # Safety
/// The same requirements as for [`entry`].
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

/// Calls a Python object with one argument. It uses little of the C stack, because calls can be
/// nested.
///
/// # Errors
/// The exception that the object raises.
#[inline(always)]
pub(crate) fn call_one<'py>(
    callable: &Bound<'py, PyAny>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let made = gil::calls(callable.py(), || {
        // SAFETY: attached; both are alive. A new reference or null with an error.
        unsafe { ffi::PyObject_CallOneArg(callable.as_ptr(), argument.as_ptr()) }
    });
    owned_or_error(callable.py(), made)
}

/// Converts a result of CPython's C API. Returns the object, or the exception that CPython has set.
///
/// # Errors
/// The exception that is set if `made` is null.
#[inline(never)]
fn owned_or_error(py: Python<'_>, made: *mut ffi::PyObject) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new reference or null with an error, made by the caller.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

/// Sets Python's exception `PanicException` with a panic message. Returns null.
#[cold]
fn fail_of_panic(panic: &(dyn std::any::Any + Send)) -> *mut ffi::PyObject {
    let said = panic.downcast_ref::<&str>().map(ToString::to_string);
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    fail(PanicException::new_err(said.unwrap_or_default()))
}

/// Sets the Python exception `error`, and returns null.
#[cold]
fn fail(error: PyErr) -> *mut ffi::PyObject {
    // Dropping an error requires PyO3's own count of attachments, which `attach` increments.
    Python::attach(|py| error.restore(py));
    std::ptr::null_mut()
}

/// Calls [`Signature::arrange`] with the signature of `F`.
///
/// # Safety
/// The same requirements as for [`entry`].
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

/// The signature of a [`Function`] as a value, for code that is not generic.
struct Signature {
    name: &'static str,
    parameters: &'static [&'static str],
    n_required: usize,
    n_positional: usize,
}

impl Signature {
    /// Stores each argument of a call in `given`, at the index of its parameter. Returns a
    /// `TypeError` for too few or too many arguments. As a separate function, it keeps its
    /// variables off the stack of the Python function.
    ///
    /// # Safety
    /// The same requirements as for [`entry`].
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
