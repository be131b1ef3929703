//! Lists the keys and values of an object before the object is written. Dataclasses, classes
//! derived from `dict`, and sorted dicts require such a list.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList, PyString};

use super::options::JsonWriteOptions;
use super::other_types::class_name;
use crate::raw::encode::json::{JsonStop, ObjectForm};

type MemberList<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>;

impl JsonWriteOptions {
    /// Returns the members of an instance of a class derived from `dict`.
    pub(super) fn derived_dict<'py>(
        &self,
        dict: &Bound<'py, PyDict>,
    ) -> Result<ObjectForm<'py>, JsonStop> {
        // orjson and ujson ignore an overridden `items` method.
        let items = match self.style.natives.orjson || self.keys_by_str {
            true => dict.items().into_any(),
            false => dict
                .as_any()
                .call_method0(pyo3::intern!(dict.py(), "items"))?,
        };
        Ok(ObjectForm::Pairs(self.members(&items)?))
    }

    /// Converts key-value pairs to a list of alternating keys and values. Converts every key to a
    /// `str`. Sorts the pairs if the option `sort_keys` is set.
    pub(super) fn members<'py>(
        &self,
        items: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyList>, JsonStop> {
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
            // ujson compares the keys as objects, which may raise an exception.
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

    /// Returns the fields of a dataclass instance.
    pub(super) fn dataclass<'py>(
        &self,
        object: &Bound<'py, PyAny>,
    ) -> Result<Option<ObjectForm<'py>>, JsonStop> {
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
        Ok(Some(ObjectForm::Pairs(pairs(py, members)?)))
    }

    /// Returns all attributes in the `__dict__` of a dataclass instance, as orjson does.
    fn instance_dict<'py>(
        &self,
        attributes: &Bound<'py, PyDict>,
    ) -> Result<ObjectForm<'py>, JsonStop> {
        let mut members = Vec::with_capacity(attributes.len());
        for (name, value) in attributes {
            let name = name.cast_into_exact::<PyString>();
            let name = name.map_err(|error| JsonStop::Key {
                class: class_name(&error.into_inner()),
            })?;
            if !self.is_hidden(&name)? {
                members.push((name, value));
            }
        }
        Ok(ObjectForm::Pairs(pairs(attributes.py(), members)?))
    }

    /// Returns `true` if the attribute `name` is omitted because of its underscore.
    fn is_hidden(&self, name: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(!self.style.natives.private_fields
            && name
                .as_any()
                .call_method1("startswith", ("_",))?
                .is_truthy()?)
    }
}

/// Sorts members by their keys, in Python's order of `str`.
fn sort(members: &mut MemberList<'_>) -> PyResult<()> {
    let mut error = None;
    members.sort_by(|(a, _), (b, _)| {
        a.compare(b).unwrap_or_else(|e| {
            error.get_or_insert(e);
            std::cmp::Ordering::Equal
        })
    });
    error.map_or(Ok(()), Err)
}

fn pairs<'py>(py: Python<'py>, members: MemberList<'py>) -> PyResult<Bound<'py, PyList>> {
    let mut all = Vec::with_capacity(2 * members.len());
    for (name, value) in members {
        all.push(name.into_any());
        all.push(value);
    }
    PyList::new(py, all)
}
