//! Converts parameters that are NumPy scalars.

use onecopy_rows::Value;
use onecopy_wire::float16::Half;
use onecopy_wire::number::widen_parameter;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDelta;

use crate::raw::ndarray::{self, Choice, Described, NOT_A_TIME, Scalar};

/// A converted NumPy scalar.
pub(crate) enum Converted<'py> {
    Value(Value),
    /// A converted `timedelta64`.
    Delta(Bound<'py, PyDelta>),
}

/// Converts a NumPy scalar to a parameter. `NaT` becomes NULL.
pub(crate) fn convert<'py>(item: &Bound<'py, PyAny>) -> PyResult<Option<Converted<'py>>> {
    let scalar = match ndarray::describe(item, Choice::Any)? {
        Some(Described::Memory(memory)) => memory.view.item().and_then(|item| item.scalar()),
        _ => None,
    };
    let value = match scalar {
        Some(Scalar::Bool(b)) => Value::Bool(b),
        Some(Scalar::Int32(n)) => Value::I64(n.into()),
        Some(Scalar::Int64(n)) => Value::I64(n),
        Some(Scalar::Uint64(n)) => match i64::try_from(n) {
            Ok(n) => Value::I64(n),
            Err(_) => Value::Decimal(n.to_string()),
        },
        Some(Scalar::Half(bits)) => Value::F64(Half(bits).widen_parameter()),
        Some(Scalar::Float(f)) => Value::F64(widen_parameter(f)),
        Some(Scalar::Double(f)) => Value::F64(f),
        Some(Scalar::Moment(NOT_A_TIME, _)) => Value::Null,
        Some(Scalar::Moment(count, step)) => {
            let Some((step, stamp)) = step.and_then(|step| Some((step, step.timestamp(count)?)))
            else {
                return Ok(None);
            };
            match step.unit.is_of_days() {
                true => Value::Date(stamp.date),
                false => Value::Timestamp(stamp),
            }
        }
        None => return delta(item),
    };
    Ok(Some(Converted::Value(value)))
}

/// Converts a `timedelta64` to a `timedelta`, truncated to microseconds. `None` for other scalars
/// and for values without a `timedelta`.
fn delta<'py>(item: &Bound<'py, PyAny>) -> PyResult<Option<Converted<'py>>> {
    let py = item.py();
    let dtype = item.getattr(intern!(py, "dtype"))?;
    if !dtype.getattr(intern!(py, "kind"))?.eq("m")? {
        return Ok(None);
    }
    let to_plain = |item: &Bound<'py, PyAny>| item.call_method0(intern!(py, "item"));
    let mut plain = to_plain(item)?;
    let name: String = dtype.getattr(intern!(py, "str"))?.extract()?;
    let is_below_micro = ["ns]", "ps]", "fs]", "as]"]
        .iter()
        .any(|unit| name.ends_with(unit));
    if !plain.is_none() && is_below_micro {
        // NumPy converts a `timedelta64` of such a unit to an `int`.
        plain = to_plain(&item.call_method1(intern!(py, "astype"), ("timedelta64[us]",))?)?;
    }
    if plain.is_none() {
        return Ok(Some(Converted::Value(Value::Null)));
    }
    Ok(plain.cast_into().ok().map(Converted::Delta))
}
