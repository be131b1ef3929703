//! `onecopy.ledger()`: counts the text bytes of a `with` block.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use onecopy_text::{Entry, Ledger, Stage, Tally};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::guard::Guarded;
use crate::raw::context;

/// Returns the context variable of the innermost scope.
fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = VARIABLE.get_or_try_init(py, || {
        context::new(py, c"onecopy.ledger").map(Bound::unbind)
    })?;
    Ok(made.bind(py))
}

/// Returns the ledger of the innermost scope. Outside of a scope, it counts nothing.
pub(crate) fn current(py: Python<'_>) -> PyResult<Ledger> {
    let scope = context::get(variable(py)?)?;
    Ok(scope
        .cast::<LedgerScope>()
        .map_or_else(|_| Ledger::off(), |scope| scope.get().ledger.clone()))
}

/// The number of active scopes in the process.
static N_SCOPES: AtomicUsize = AtomicUsize::new(0);

/// Returns `true` if any scope is active in the process.
#[inline]
pub(crate) fn is_kept() -> bool {
    N_SCOPES.load(Relaxed) != 0
}

/// Adds the counts of a call to `stage` in the active scope.
#[inline]
pub(crate) fn enter(py: Python<'_>, tally: &mut Tally, stage: Stage) -> PyResult<()> {
    if is_kept() {
        tally.enter(&current(py)?, stage);
    }
    Ok(())
}

/// The number of text bytes that one `with` block read, converted and copied.
#[pyclass(frozen, name = "Ledger", module = "onecopy")]
pub(crate) struct LedgerScope {
    ledger: Ledger,
    /// The tokens of the context variable, one per active `with` block, the innermost last.
    tokens: Guarded<Vec<Py<PyAny>>>,
}

#[pymethods]
impl LedgerScope {
    /// The number of text bytes that were read, in the encoding of the source object.
    #[getter]
    fn taken(&self) -> u64 {
        self.ledger.total().taken
    }

    /// The number of text bytes that were converted between encodings, or copied during the search
    /// for escapes.
    #[getter]
    fn converted(&self) -> u64 {
        self.ledger.total().converted
    }

    /// The number of text bytes that were copied in the same encoding.
    #[getter]
    fn copied(&self) -> u64 {
        self.ledger.total().copied
    }

    /// The number of strings that were converted.
    #[getter]
    fn conversions(&self) -> u64 {
        self.ledger.total().conversions
    }

    /// A dict from the name of each stage that handled text to its four counts: `taken`,
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
        // Each thread and task has its own token. The context variable accepts only a token of its
        // context, so this loop tries all.
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

/// Counts the text bytes that a ``with`` block reads, converts and copies.
///
/// The scope that is active at the start of work counts the work, and every enclosing scope does
/// too. Another thread may do the work. A scope belongs to a context (PEP 567), so each asyncio
/// task has its own.
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
