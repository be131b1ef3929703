//! Objects of which members are listed before they are written: dataclasses, derived dicts, dicts whose keys are sorted.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::options::Options;
use super::other::class_name;
use crate::raw::walk::{Other, Stop};

type Members<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>;

impl Options {
    /// The members of an instance of a class derived from `dict`.
    pub(super) fn derived_dict<'py>(&self, dict: &Bound<'py, PyDict>) -> Result<Other<'py>, Stop> {
        let py = dict.py();
        let mut members = Vec::new();
        let items = match self.style.natives.orjson {
            // It has its own contents, whatever its methods return.
            true => dict.items().into_any(),
            false => dict.as_any().call_method0(pyo3::intern!(py, "items"))?,
        };
        for item in items.try_iter()? {
            let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
            members.push((self.key_text(&key)?, value));
        }
        if self.style.sort_keys {
            sort(&mut members)?;
        }
        Ok(Other::Pairs(pairs(py, members)?))
    }

    /// The fields of an instance of a dataclass.
    pub(super) fn dataclass<'py>(
        &self,
        object: &Bound<'py, PyAny>,
    ) -> Result<Option<Other<'py>>, Stop> {
        let py = object.py();
        let name = pyo3::intern!(py, "__dataclass_fields__");
        let Some(fields) = object.get_type().getattr_opt(name)? else {
            return Ok(None);
        };
        let Ok(fields) = fields.cast_into::<PyDict>() else {
            return Ok(None);
        };
        if self.style.natives.orjson {
            let own = object.get_type().getattr(pyo3::intern!(py, "__dict__"))?;
            if !own.contains(name)? {
                return Ok(None);
            }
            if !own.contains(pyo3::intern!(py, "__slots__"))?
                && let Ok(members) = object.getattr(pyo3::intern!(py, "__dict__"))
                && let Ok(members) = members.cast_into::<PyDict>()
            {
                return self.instance_dict(&members).map(Some);
            }
        }
        let kind = py.import("dataclasses")?.getattr("_FIELD")?;
        let mut members = Vec::with_capacity(fields.len());
        for (name, field) in fields {
            if !field.getattr(pyo3::intern!(py, "_field_type"))?.is(&kind) {
                continue; // a ClassVar or InitVar
            }
            let Ok(name) = name.cast_into::<PyString>() else {
                continue;
            };
            if self.is_hidden(&name)? {
                continue;
            }
            let value = object.getattr(&name)?;
            members.push((name, value));
        }
        if self.style.sort_keys && !self.style.natives.orjson {
            sort(&mut members)?;
        }
        Ok(Some(Other::Pairs(pairs(py, members)?)))
    }

    /// All attributes of an instance, as orjson writes a dataclass.
    fn instance_dict<'py>(&self, attributes: &Bound<'py, PyDict>) -> Result<Other<'py>, Stop> {
        let mut members = Vec::with_capacity(attributes.len());
        for (name, value) in attributes {
            let name = name.cast_into_exact::<PyString>();
            let name = name.map_err(|error| Stop::Key {
                class: class_name(&error.into_inner()),
            })?;
            if !self.is_hidden(&name)? {
                members.push((name, value));
            }
        }
        Ok(Other::Pairs(pairs(attributes.py(), members)?))
    }

    /// Whether the name of an attribute begins with an underscore, where such are left out.
    fn is_hidden(&self, name: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(!self.style.natives.private_fields
            && name
                .as_any()
                .call_method1("startswith", ("_",))?
                .is_truthy()?)
    }
}

/// Sorts members by their keys, by code points as Python does.
pub(super) fn sort(members: &mut Members<'_>) -> PyResult<()> {
    let mut error = None;
    members.sort_by(|(a, _), (b, _)| {
        a.compare(b).unwrap_or_else(|e| {
            error.get_or_insert(e);
            std::cmp::Ordering::Equal
        })
    });
    error.map_or(Ok(()), Err)
}

pub(super) fn pairs<'py>(py: Python<'py>, members: Members<'py>) -> PyResult<Bound<'py, PyList>> {
    let mut all = Vec::with_capacity(2 * members.len());
    for (name, value) in members {
        all.push(name.into_any());
        all.push(value);
    }
    PyList::new(py, all)
}
