//! Objects of which the members are listed before they are written: dataclasses, derived dicts,
//! dicts whose keys are sorted.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList, PyString};

use super::options::Options;
use super::other::class_name;
use crate::raw::walk::{Other, Stop};

type Members<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>;

impl Options {
    /// The members of an instance of a class derived from `dict`.
    pub(super) fn derived_dict<'py>(&self, dict: &Bound<'py, PyDict>) -> Result<Other<'py>, Stop> {
        // orjson and ujson read the contents, whatever its methods return.
        let items = match self.style.natives.orjson || self.keys_by_str {
            true => dict.items().into_any(),
            false => dict
                .as_any()
                .call_method0(pyo3::intern!(dict.py(), "items"))?,
        };
        Ok(Other::Pairs(self.members(&items)?))
    }

    /// The keys, as text, and values of these items, in turn; sorted where that is wanted.
    pub(super) fn members<'py>(
        &self,
        items: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyList>, Stop> {
        let py = items.py();
        let mut keyed: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = Vec::new();
        for item in items.try_iter()? {
            keyed.push(item?.extract()?);
        }
        let mut is_sorted = !self.style.sort_keys;
        if !is_sorted
            && self.keys_by_str
            && !keyed
                .iter()
                .all(|(key, _)| key.is_exact_instance_of::<PyString>())
        {
            // By the keys' own order, which may be an error.
            let list = PyList::new(py, &keyed)?;
            let by_key = py.import("operator")?.call_method1("itemgetter", (0,))?;
            let arguments = [(pyo3::intern!(py, "key"), by_key)].into_py_dict(py)?;
            list.call_method("sort", (), Some(&arguments))?;
            keyed = list.extract()?;
            is_sorted = true;
        }
        let mut members = Vec::with_capacity(keyed.len());
        for (key, value) in keyed {
            members.push((self.key_text(&key)?, value));
        }
        if !is_sorted {
            sort(&mut members)?;
        }
        Ok(pairs(py, members)?)
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

    /// True for the name of an attribute that is left out: it begins with an underscore.
    fn is_hidden(&self, name: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(!self.style.natives.private_fields
            && name
                .as_any()
                .call_method1("startswith", ("_",))?
                .is_truthy()?)
    }
}

/// Sorts members by their keys, by code points as Python does.
fn sort(members: &mut Members<'_>) -> PyResult<()> {
    let mut error = None;
    members.sort_by(|(a, _), (b, _)| {
        a.compare(b).unwrap_or_else(|e| {
            error.get_or_insert(e);
            std::cmp::Ordering::Equal
        })
    });
    error.map_or(Ok(()), Err)
}

fn pairs<'py>(py: Python<'py>, members: Members<'py>) -> PyResult<Bound<'py, PyList>> {
    let mut all = Vec::with_capacity(2 * members.len());
    for (name, value) in members {
        all.push(name.into_any());
        all.push(value);
    }
    PyList::new(py, all)
}
