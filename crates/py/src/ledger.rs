//! `onecopy.ledger()`: counts the bytes of text that are read, converted and copied inside a `with`
//! block.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use onecopy_text::{Entry, Ledger, Stage, Tally};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::guard::Guarded;
use crate::raw::context;

/// Returns the context variable that contains the scope of the innermost active `with
/// onecopy.ledger()` block.
fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = VARIABLE.get_or_try_init(py, || {
        context::new(py, c"onecopy.ledger").map(Bound::unbind)
    })?;
    Ok(made.bind(py))
}

/// Returns the ledger of the innermost scope. Outside of any scope, the returned ledger counts
/// nothing.
pub(crate) fn current(py: Python<'_>) -> PyResult<Ledger> {
    let scope = context::get(variable(py)?)?;
    Ok(scope
        .cast::<LedgerScope>()
        .map_or_else(|_| Ledger::off(), |scope| scope.get().ledger.clone()))
}

/// The number of active `with onecopy.ledger()` blocks in the process. If it is 0, the context
/// variable does not have to be read.
static N_SCOPES: AtomicUsize = AtomicUsize::new(0);

/// Returns `true` if a `with onecopy.ledger()` block is active in any context of the process.
#[inline]
pub(crate) fn is_kept() -> bool {
    N_SCOPES.load(Relaxed) != 0
}

/// If a scope of `onecopy.ledger()` is active, adds the counts of one call to its counts for
/// `stage`.
#[inline]
pub(crate) fn enter(py: Python<'_>, tally: &mut Tally, stage: Stage) -> PyResult<()> {
    if is_kept() {
        tally.enter(&current(py)?, stage);
    }
    Ok(())
}

/// The number of bytes of text that were read, converted and copied inside one `with` block.
#[pyclass(frozen, name = "Ledger", module = "onecopy")]
pub(crate) struct LedgerScope {
    ledger: Ledger,
    /// The tokens of the context variable, one for each active `with` block of this scope. A token
    /// resets the variable at the end of its block. The last token belongs to the innermost block.
    tokens: Guarded<Vec<Py<PyAny>>>,
}

#[pymethods]
impl LedgerScope {
    /// The number of bytes of text that were read, measured in the encoding of the source object.
    #[getter]
    fn taken(&self) -> u64 {
        self.ledger.total().taken
    }

    /// The number of bytes of text that were converted between encodings, or copied while being
    /// scanned for escapes.
    #[getter]
    fn converted(&self) -> u64 {
        self.ledger.total().converted
    }

    /// The number of bytes of text that onecopy copied without changing their encoding.
    #[getter]
    fn copied(&self) -> u64 {
        self.ledger.total().copied
    }

    /// The number of strings that were converted.
    #[getter]
    fn conversions(&self) -> u64 {
        self.ledger.total().conversions
    }

    /// A dict that maps the name of each stage that handled text to its four counts: `taken`,
    /// `converted`, `copied` and `conversions`.
    #[getter]
    fn stages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stages = PyDict::new(py);
        for stage in Stage::ALL {
            let entry = self.ledger.stage(stage);
            if entry == Entry::default() {
                continue;
            }
            let counts = PyDict::new(py);
            counts.set_item("taken", entry.taken)?;
            counts.set_item("converted", entry.converted)?;
            counts.set_item("copied", entry.copied)?;
            counts.set_item("conversions", entry.conversions)?;
            stages.set_item(stage.name(), counts)?;
        }
        Ok(stages)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let py = slf.py();
        let token = context::set(variable(py)?, slf.as_any())?;
        slf.get().tokens.lock(py)?.push(token.unbind());
        N_SCOPES.fetch_add(1, Relaxed);
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        let mut tokens = self.tokens.lock(py)?;
        // Threads and tasks that use one ledger at the same time have one token each, and the
        // context variable accepts only a token of the current context. The tokens are therefore
        // tried, from the last one on.
        let mut refused = None;
        for i in (0..tokens.len()).rev() {
            match context::reset(variable(py)?, tokens[i].bind(py)) {
                Ok(()) => {
                    tokens.remove(i);
                    N_SCOPES.fetch_sub(1, Relaxed);
                    return Ok(());
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn __repr__(&self) -> String {
        let total = self.ledger.total();
        let mut text = format!(
            "<onecopy.Ledger: {} bytes of text taken, {} converted in {} conversions, {} copied",
            total.taken, total.converted, total.conversions, total.copied
        );
        for stage in Stage::ALL {
            let e = self.ledger.stage(stage);
            if e != Entry::default() {
                text.push_str(&format!(
                    "; {}: {} taken, {} converted, {} copied",
                    stage.name(),
                    e.taken,
                    e.converted,
                    e.copied
                ));
            }
        }
        text.push('>');
        text
    }
}

/// Counts the text that is handled inside a ``with`` block: the bytes read, converted and copied.
///
/// Work is counted in the scope that is active when it starts, and in every enclosing scope, even
/// if another thread does the work. A scope belongs to a context (PEP 567), so each asyncio task
/// has its own.
///
/// >>> con = onecopy.connect("sqlite::memory:")
/// >>> with onecopy.ledger() as ledger:
/// ...     _ = con.execute("select 'Zürich'").fetchall()
/// >>> ledger.taken, ledger.converted, ledger.copied
/// (7, 7, 0)
#[pyfunction]
pub(crate) fn ledger(py: Python<'_>) -> PyResult<LedgerScope> {
    Ok(LedgerScope {
        ledger: Ledger::within(&current(py)?),
        tokens: Guarded::new("ledger", Vec::new()),
    })
}
