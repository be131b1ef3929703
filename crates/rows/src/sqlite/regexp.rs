//! The operator `REGEXP`, implemented with the `regex` crate.

use std::ffi::CStr;
use std::sync::Mutex;

use onecopy_wire::lock::lock;

use libsqlite3_sys as ffi;
use regex::Regex;

use super::functions::{Function, Scalar};
use crate::value::Value;

/// The largest number of compiled patterns that a connection keeps for later calls of `REGEXP`.
const KEPT: usize = 16;

/// The largest size of a pattern in bytes. Parsing a pattern uses memory of some hundred times its
/// size.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The largest size in bytes of a pattern that an error message quotes.
const MAX_QUOTED_BYTES: usize = 200;

/// Returns the function that SQLite calls for the operator `REGEXP`, with the pattern and the text
/// as arguments. The function returns NULL if an argument is NULL.
pub(super) fn function() -> Function {
    let kept: Mutex<Vec<(String, Regex)>> = Mutex::default();
    let call: Box<Scalar> = Box::new(move |arguments| {
        let [pattern, text] = &*arguments else {
            return Err("REGEXP takes a pattern and a text".to_owned());
        };
        let (Some(pattern), Some(text)) = (as_text(pattern), as_text(text)) else {
            return Ok(Value::Null);
        };
        let mut kept = lock(&kept);
        let at = match kept.iter().position(|(of, _)| *of == pattern) {
            Some(at) => at,
            None => {
                let compiled = compile(&pattern)?;
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

fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!(
            "REGEXP: the pattern has {} bytes, more than {MAX_PATTERN_BYTES}",
            pattern.len()
        ));
    }
    Regex::new(pattern).map_err(|e| {
        let message = e.to_string();
        // The last line of the message contains the reason; the lines before contain the pattern
        // and the position.
        match message.lines().last() {
            Some(reason) if pattern.len() > MAX_QUOTED_BYTES => format!("REGEXP: {reason}"),
            _ => format!("REGEXP: {message}"),
        }
    })
}

/// Converts a value to text as SQLite's operator `||` does; `None` for NULL. Malformed UTF-8 in a
/// blob becomes U+FFFD.
fn as_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Text(text) => text.clone(),
        Value::I64(i) => i.to_string(),
        Value::F64(f) => {
            let mut text = [0_u8; 32];
            // SAFETY: the format is SQLite's own for a REAL, with one double; it writes at most 32
            // bytes, including a NUL.
            unsafe { ffi::sqlite3_snprintf(32, text.as_mut_ptr().cast(), c"%!.15g".as_ptr(), *f) };
            let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
            text.to_string_lossy().into_owned()
        }
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    })
}
