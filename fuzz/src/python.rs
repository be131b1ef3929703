//! A Python interpreter in the target's own process, with onecopy's extension module.
//!
//! The checks are written in Python (`oracles/`), and the fuzzer measures the coverage of onecopy's
//! code.

use std::ffi::{CString, c_int};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCFunction, PyList};

use crate::writer;

/// Calls `check` of `oracles/<name>.py` with the input; panics if it raises, which is a finding.
pub fn check(name: &str, data: &[u8]) {
    static CHECK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    start();
    Python::attach(|py| {
        let check = CHECK.get_or_try_init(py, || oracle(py, name));
        let done = check.and_then(|check| check.call1(py, (PyBytes::new(py, data),)));
        if let Err(e) = done {
            e.print(py);
            panic!("`{name}` found something");
        }
    });
}

fn oracle(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    let here = env!("CARGO_MANIFEST_DIR");
    let path = py.import("sys")?.getattr("path")?.cast_into::<PyList>()?;
    path.insert(0, format!("{here}/../python"))?;
    path.insert(0, format!("{here}/oracles"))?;
    let module = PyCFunction::new_closure(py, None, None, |args, _| {
        onecopy_python::fuzzing::module(args.py()).unbind()
    })?;
    py.import("embedded")?.call_method1("take", (module,))?;
    let modules = py.import("sys")?.getattr("modules")?;
    modules.set_item("native_writer", writer::module(py)?)?;
    Ok(py.import(name)?.getattr("check")?.unbind())
}

/// `PYMEM_ALLOCATOR_MALLOC`, a constant that `pyo3::ffi` lacks.
const MALLOC: c_int = 3;

/// Starts the interpreter for which the target was built. Each Python object is an allocation of
/// its own, so that the sanitizer detects accesses past its end. Hashes are the same in each run.
fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        let program = CString::new(env!("PYTHON_EXECUTABLE")).expect("a path has no NUL");
        // SAFETY: no interpreter was in this process before, and no other thread is. The
        // configurations are filled by their
        // `Init`, `program` outlives its copy, and the lock that the start takes is given up for `attach` to take.
        unsafe {
            let mut early = MaybeUninit::uninit();
            ffi::PyPreConfig_InitIsolatedConfig(early.as_mut_ptr());
            let mut early = early.assume_init();
            early.allocator = MALLOC;
            early.utf8_mode = 1;
            demand(ffi::Py_PreInitialize(&early));
            let mut config = MaybeUninit::uninit();
            ffi::PyConfig_InitIsolatedConfig(config.as_mut_ptr());
            let config = config.assume_init_mut();
            config.use_hash_seed = 1;
            config.write_bytecode = 0;
            let place = ptr::addr_of_mut!(config.program_name);
            demand(ffi::PyConfig_SetBytesString(
                config,
                place,
                program.as_ptr(),
            ));
            demand(ffi::Py_InitializeFromConfig(config));
            ffi::PyConfig_Clear(config);
            ffi::PyEval_SaveThread();
        }
    });
}

fn demand(status: ffi::PyStatus) {
    // SAFETY: a status may be looked at any time.
    let failed = unsafe { ffi::PyStatus_Exception(status) } != 0;
    assert!(!failed, "the interpreter does not start");
}
