//! Converts lists and ranges to the text format of PostgreSQL.

use onecopy_rows::{Dialect, Value, text_of_value};
use onecopy_text::Tally;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::json_value::Json;
use crate::{parameters, range};

/// The maximum number of dimensions of an array in PostgreSQL.
const MOST_DIMENSIONS: usize = 6;

/// Converts a `Json` to a parameter value, and for PostgreSQL also lists and ranges. `None` for any
/// other object.
pub(crate) fn structured(
    item: &Bound<'_, PyAny>,
    position: usize,
    dialect: Dialect,
    tally: &mut Tally,
) -> PyResult<Option<Value>> {
    if let Ok(json) = item.cast::<Json>() {
        return json
            .get()
            .text(item.py())
            .map(|text| Some(Value::Text(text)));
    }
    match item.cast::<PyList>() {
        _ if dialect != Dialect::Postgres => Ok(None),
        Ok(list) => value(list, position, tally).map(Some),
        Err(_) => range::value(item, position, tally),
    }
}

/// Converts a list to an array.
fn value(list: &Bound<'_, PyList>, position: usize, tally: &mut Tally) -> PyResult<Value> {
    let mut array = Array {
        text: String::new(),
        type_name: None,
        position,
    };
    array.put_list(list, 1, tally)?;
    Ok(match array.type_name {
        None | Some("") => Value::Text(array.text),
        Some(name) => Value::Cast(array.text, name),
    })
}

struct Array {
    text: String,
    /// The array type in PostgreSQL, or `None` so far. If it is empty, the server determines the
    /// type.
    type_name: Option<&'static str>,
    position: usize,
}

impl Array {
    fn put_list(
        &mut self,
        list: &Bound<'_, PyList>,
        depth: usize,
        tally: &mut Tally,
    ) -> PyResult<()> {
        if depth > MOST_DIMENSIONS {
            return Err(PyValueError::new_err(format!(
                "parameter {} is a list of more than {MOST_DIMENSIONS} dimensions",
                self.position + 1
            )));
        }
        self.text.push('{');
        for (i, item) in list.iter().enumerate() {
            if i > 0 {
                self.text.push(',');
            }
            match item.cast::<PyList>() {
                Ok(inner) => self.put_list(inner, depth + 1, tally)?,
                Err(_) => {
                    let value =
                        parameters::plain_value(&item, self.position, Dialect::Postgres, tally)?;
                    self.put(&value);
                }
            }
        }
        self.text.push('}');
        Ok(())
    }

    fn put(&mut self, value: &Value) {
        let Some(text) = text_of_value(value) else {
            return self.text.push_str("NULL");
        };
        let name = array_type(value);
        if *self.type_name.get_or_insert(name) != name {
            self.type_name = Some("");
        }
        match value {
            Value::Bool(b) => self.text.push(if *b { 't' } else { 'f' }),
            _ if text.eq_ignore_ascii_case("null") => put_quoted(&text, &mut self.text),
            _ => put_element(&text, b"{},", &mut self.text),
        }
    }
}

/// Appends an array element or a range bound. Adds quotes only if the text requires them.
pub(crate) fn put_element(text: &str, syntax: &[u8], out: &mut String) {
    let is_space = |b: u8| b.is_ascii_whitespace() || b == 0x0b;
    let is_plain = |b: u8| !is_space(b) && !b"\"\\".contains(&b) && !syntax.contains(&b);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => out.push_str(text),
        false => put_quoted(text, out),
    }
}

fn put_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

fn array_type(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean[]",
        Value::I64(_) => "bigint[]",
        Value::F64(_) => "double precision[]",
        Value::Decimal(_) => "numeric[]",
        Value::Bytes(_) => "bytea[]",
        Value::Date(_) => "date[]",
        Value::Time(_) => "time[]",
        Value::Timestamp(stamp) if stamp.offset_minutes.is_some() => "timestamptz[]",
        Value::Timestamp(_) => "timestamp[]",
        Value::Uuid(_) => "uuid[]",
        Value::Cast(_, "numeric") => "numeric[]",
        Value::Cast(_, "interval") => "interval[]",
        Value::Cast(_, "time with time zone") => "timetz[]",
        _ => "",
    }
}
