//! `text REGEXP pattern`, by the `regex` crate.

use std::sync::{Mutex, PoisonError};

use regex::Regex;

use super::functions::{Function, Scalar};
use crate::value::Value;

/// Compiled patterns that are kept for a connection.
const KEPT: usize = 16;

/// The function that SQLite calls for the operator: pattern and text. NULL if one of them is NULL.
pub(super) fn function() -> Function {
    let kept: Mutex<Vec<(String, Regex)>> = Mutex::default();
    let call: Box<Scalar> = Box::new(move |arguments| {
        let [pattern, text] = &*arguments else {
            return Err("REGEXP takes a pattern and a text".to_owned());
        };
        let (Some(pattern), Some(text)) = (as_text(pattern), as_text(text)) else {
            return Ok(Value::Null);
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match kept.iter().position(|(of, _)| *of == pattern) {
            Some(at) => at,
            None => {
                let compiled = Regex::new(&pattern).map_err(|e| format!("REGEXP: {e}"))?;
                if kept.len() == KEPT {
                    kept.remove(0);
                }
                kept.push((pattern, compiled));
                kept.len() - 1
            }
        };
        Ok(Value::Bool(kept[at].1.is_match(&text)))
    });
    Function::Scalar {
        call,
        is_deterministic: true,
    }
}

/// A value as text, as SQLite's other operators on text take it.
fn as_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Text(text) => text.clone(),
        Value::I64(i) => i.to_string(),
        Value::F64(f) => format!("{f:?}"),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    })
}
