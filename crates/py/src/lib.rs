//! The Python module `onecopy._core`.

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
