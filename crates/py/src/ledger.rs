//! `onecopy.ledger()`: bytes of text taken in, converted and copied inside a `with` block.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use onecopy_text::{Entry, Ledger, Stage, Tally};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::guard::Guarded;
use crate::raw::context;

/// The variable that holds the innermost scope of the current context.
fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = VARIABLE.get_or_try_init(py, || {
        context::new(py, c"onecopy.ledger").map(Bound::unbind)
    })?;
    Ok(made.bind(py))
}

/// The scope that work started now is counted in; counts nothing outside of any.
pub(crate) fn current(py: Python<'_>) -> PyResult<Ledger> {
    let scope = context::get(variable(py)?)?;
    Ok(scope
        .cast::<LedgerScope>()
        .map_or_else(|_| Ledger::off(), |scope| scope.get().ledger.clone()))
}

/// `with` blocks under way in the process. Only a hint: where it is 0, no scope is looked for.
static N_SCOPES: AtomicUsize = AtomicUsize::new(0);

/// Whether anybody may be counting.
#[inline]
pub(crate) fn is_kept() -> bool {
    N_SCOPES.load(Relaxed) != 0
}

/// Enters the counts of one call under `stage`, where anybody counts.
#[inline]
pub(crate) fn enter(py: Python<'_>, tally: &mut Tally, stage: Stage) -> PyResult<()> {
    if is_kept() {
        tally.enter(&current(py)?, stage);
    }
    Ok(())
}

/// Counts of text handled in one scope.
#[pyclass(frozen, name = "Ledger", module = "onecopy")]
pub(crate) struct LedgerScope {
    ledger: Ledger,
    /// Tokens of the `with` blocks under way, innermost last.
    tokens: Guarded<Vec<Py<PyAny>>>,
}

#[pymethods]
impl LedgerScope {
    /// Bytes of text that were taken in, as their owner held them.
    #[getter]
    fn taken(&self) -> u64 {
        self.ledger.total().taken
    }

    /// Bytes of text that were converted from one encoding to another, or scanned for escapes on their way.
    #[getter]
    fn converted(&self) -> u64 {
        self.ledger.total().converted
    }

    /// Bytes of text that were copied as they are.
    #[getter]
    fn copied(&self) -> u64 {
        self.ledger.total().copied
    }

    /// How many texts were converted.
    #[getter]
    fn conversions(&self) -> u64 {
        self.ledger.total().conversions
    }

    /// The same four counts for each stage that handled any text, by its name.
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
        let token = self.tokens.lock(py)?.pop();
        match token {
            Some(token) => {
                N_SCOPES.fetch_sub(1, Relaxed);
                context::reset(variable(py)?, token.bind(py))
            }
            None => Ok(()),
        }
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

/// Counts the text that is handled inside a ``with`` block: bytes taken in, converted, and copied.
///
/// Work counts in the scope in which it was started, whichever thread does it, and in every scope around that one. A scope
/// belongs to its context (PEP 567): tasks of asyncio count apart.
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
