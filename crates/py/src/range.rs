//! `onecopy.Range`: a PostgreSQL range in a cell or a parameter.

use onecopy_rows::{Dialect, Value, text_of_value};
use onecopy_text::Tally;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::{array, parameters};

/// An immutable PostgreSQL range. As a parameter, it gets the range type that the statement
/// requires. A multirange is a tuple of ranges.
///
/// Args:
///     lower: the lower bound; ``None`` if the range has none.
///     upper: the upper bound; ``None`` if the range has none.
///     bounds: ``"[)"``, ``"[]"``, ``"(]"`` or ``"()"``: a square bracket includes the bound in the
///         range, a parenthesis excludes it. A bound that is ``None`` is never included.
///     empty: ``True`` for the empty range, whose attribute `bounds` is ``""``.
///
/// >>> to_five = onecopy.Range(1, 5)
/// >>> to_five, 1 in to_five, 5 in to_five
/// (Range(1, 5, '[)'), True, False)
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Range {
    /// The lower bound, or ``None``.
    #[pyo3(get)]
    lower: Py<PyAny>,
    /// The upper bound, or ``None``.
    #[pyo3(get)]
    upper: Py<PyAny>,
    includes_lower: bool,
    includes_upper: bool,
    /// ``True`` if the range contains no value.
    #[pyo3(get, name = "isempty")]
    is_empty: bool,
}

impl Range {
    /// Creates a range. The bound `None` means that the range has no end on this side.
    pub(crate) fn of(
        lower: Bound<'_, PyAny>,
        upper: Bound<'_, PyAny>,
        (includes_lower, includes_upper): (bool, bool),
        is_empty: bool,
    ) -> Range {
        Range {
            includes_lower: includes_lower && !lower.is_none(),
            includes_upper: includes_upper && !upper.is_none(),
            lower: lower.unbind(),
            upper: upper.unbind(),
            is_empty,
        }
    }

    /// Appends the range in PostgreSQL's text format.
    fn put(
        &self,
        py: Python<'_>,
        position: usize,
        tally: &mut Tally,
        out: &mut String,
    ) -> PyResult<()> {
        if self.is_empty {
            out.push_str("empty");
            return Ok(());
        }
        out.push(if self.includes_lower { '[' } else { '(' });
        for (bound, end) in [
            (&self.lower, ','),
            (&self.upper, if self.includes_upper { ']' } else { ')' }),
        ] {
            let value =
                parameters::plain_value(bound.bind(py), position, Dialect::Postgres, tally)?;
            if let Some(text) = text_of_value(&value) {
                array::put_element(&text, b"()[],", out);
            }
            out.push(end);
        }
        Ok(())
    }

    fn to_tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (&self.lower, &self.upper, self.bounds(), self.is_empty).into_pyobject(py)
    }
}

#[pymethods]
impl Range {
    #[new]
    #[pyo3(signature = (lower=None, upper=None, bounds="[)", empty=false))]
    fn new(
        py: Python<'_>,
        lower: Option<Bound<'_, PyAny>>,
        upper: Option<Bound<'_, PyAny>>,
        bounds: &str,
        empty: bool,
    ) -> PyResult<Range> {
        let includes = match bounds {
            "[)" => (true, false),
            "[]" => (true, true),
            "(]" => (false, true),
            "()" => (false, false),
            "" if empty => (false, false),
            _ => {
                return Err(PyValueError::new_err(
                    "`bounds` is one of \"[)\", \"[]\", \"(]\" and \"()\"",
                ));
            }
        };
        let bound = |bound: Option<Bound<'_, PyAny>>| match bound {
            Some(bound) if !empty => bound.unbind(),
            _ => py.None(),
        };
        let (lower, upper) = (bound(lower).into_bound(py), bound(upper).into_bound(py));
        Ok(Range::of(lower, upper, includes, empty))
    }

    /// The brackets of the bounds: ``"[)"``, ``"[]"``, ``"(]"`` or ``"()"``. It is ``""`` for the
    /// empty range.
    #[getter]
    fn bounds(&self) -> &'static str {
        match (self.includes_lower, self.includes_upper) {
            _ if self.is_empty => "",
            (true, false) => "[)",
            (true, true) => "[]",
            (false, true) => "(]",
            (false, false) => "()",
        }
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = value.py();
        let (lower, upper) = (self.lower.bind(py), self.upper.bind(py));
        let is_above = match self.includes_lower {
            true => value.ge(lower)?,
            false => lower.is_none() || value.gt(lower)?,
        };
        let is_below = match self.includes_upper {
            true => value.le(upper)?,
            false => upper.is_none() || value.lt(upper)?,
        };
        Ok(is_above && is_below && !self.is_empty)
    }

    fn __eq__(&self, other: &Bound<'_, Range>) -> PyResult<bool> {
        let py = other.py();
        self.to_tuple(py)?.eq(other.get().to_tuple(py)?)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.to_tuple(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        if self.is_empty {
            return Ok("Range(empty=True)".to_owned());
        }
        let (lower, upper) = (self.lower.bind(py).repr()?, self.upper.bind(py).repr()?);
        Ok(format!("Range({lower}, {upper}, '{}')", self.bounds()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Range>) -> PyResult<Bound<'py, PyTuple>> {
        let arguments = slf.get().to_tuple(slf.py())?;
        (slf.get_type(), arguments).into_pyobject(slf.py())
    }
}

/// Converts a range, or a tuple of ranges, to a parameter value. `None` for any other object.
pub(crate) fn value(
    item: &Bound<'_, PyAny>,
    position: usize,
    tally: &mut Tally,
) -> PyResult<Option<Value>> {
    let py = item.py();
    let mut text = String::new();
    if let Ok(range) = item.cast::<Range>() {
        range.get().put(py, position, tally, &mut text)?;
        return Ok(Some(Value::Text(text)));
    }
    let Ok(ranges) = item.cast::<PyTuple>() else {
        return Ok(None);
    };
    text.push('{');
    for (i, range) in ranges.iter().enumerate() {
        let Ok(range) = range.cast::<Range>() else {
            return Ok(None);
        };
        if i > 0 {
            text.push(',');
        }
        range.get().put(py, position, tally, &mut text)?;
    }
    text.push('}');
    Ok(Some(Value::Text(text)))
}
