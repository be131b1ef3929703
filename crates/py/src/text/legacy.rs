//! The encodings of the WHATWG Encoding Standard. Text is converted through UTF-8. Errors are
//! reported like those of CPython's codecs.

use onecopy_text::convert::to_utf8;
use onecopy_text::{
    Encoding, Legacy, Policy, Stage, Tally, TranscodeError, TranscodeOptions, Transcoder, Units,
};
use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyTypeError, PyUnicodeDecodeError, PyUnicodeEncodeError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use pyo3::{Borrowed, PyTypeInfo};

use super::codec::Codec;
use crate::ledger;
use crate::raw::text::{self, MakeError};
use crate::raw::{binary, codecs};

/// The number of bytes per step of `is_valid`.
const PIECE_BYTES: usize = 64 * 1024;

/// Returns the name of an error handler; `strict` by default.
pub(super) fn handler_name(errors: Option<Borrowed<'_, '_, PyAny>>) -> PyResult<String> {
    let Some(errors) = errors else {
        return Ok("strict".to_owned());
    };
    if !PyString::is_type_of(&errors) {
        let kind = errors.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "errors must be str, not '{kind}'"
        )));
    }
    errors.extract()
}

/// Returns the transcoder policy for the error handler `name`. Returns `None` if the handler must
/// be called. The encodings have no surrogates, so `surrogatepass` is `strict`.
pub(super) fn policy_of_handler(name: &str) -> Option<Policy> {
    Policy::of_name(name, &Policy::ALL)
        .ok()
        .map(|policy| match policy {
            Policy::SurrogatePass => Policy::Strict,
            policy => policy,
        })
}

/// Returns the error handler `name` from the module `codecs`.
pub(super) fn handler<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("codecs")?.call_method1("lookup_error", (name,))
}

/// Creates a `str` from valid UTF-8, counted in `tally`.
pub(super) fn str_of<'py>(
    py: Python<'py>,
    utf8: &[u8],
    tally: &mut Tally,
) -> PyResult<Bound<'py, PyAny>> {
    text::make(py, Units::Utf8(utf8), Policy::Strict, tally).map_err(|e| match e {
        MakeError::Python(e) => e,
        MakeError::Malformed(_) => PyMemoryError::new_err(()),
    })
}

/// Creates a `MemoryError` for a transcoder error.
pub(super) fn no_memory(_: TranscodeError) -> PyErr {
    PyMemoryError::new_err(())
}

/// Creates a `UnicodeDecodeError` for a range of bytes.
pub(super) fn decode_error<'py>(
    py: Python<'py>,
    encoding: &str,
    object: &Bound<'py, PyAny>,
    start: usize,
    end: usize,
    reason: &str,
) -> PyResult<Bound<'py, PyAny>> {
    py.get_type::<PyUnicodeDecodeError>()
        .call1((encoding, object, start, end, reason))
}

/// Creates a `UnicodeEncodeError` for a range of characters.
pub(super) fn encode_error<'py>(
    py: Python<'py>,
    encoding: &str,
    object: &Bound<'py, PyString>,
    start: usize,
    end: usize,
    reason: &str,
) -> PyResult<Bound<'py, PyAny>> {
    py.get_type::<PyUnicodeEncodeError>()
        .call1((encoding, object, start, end, reason))
}

/// Calls an error handler with `error`. Returns the replacement and the next position. A negative
/// position counts from `len`, the end of the text.
pub(super) fn ask<'py>(
    handler: &Bound<'py, PyAny>,
    error: &Bound<'py, PyAny>,
    len: usize,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let answer = handler.call1((error,))?;
    let answer = answer.cast_into::<PyTuple>().map_err(|_| {
        PyTypeError::new_err("an error handler must return a tuple of the replacement and the position to continue at")
    })?;
    let (instead, at): (Bound<'py, PyAny>, isize) = answer.extract()?;
    let at = if at < 0 { at + len as isize } else { at };
    match usize::try_from(at) {
        Ok(at) if at <= len => Ok((instead, at)),
        _ => Err(PyIndexError::new_err(format!(
            "position {at} from error handler out of bounds"
        ))),
    }
}

/// Decodes bytes to a `str`. Copies: none. ASCII is converted once, any other text twice.
pub(super) fn decode<'py>(
    py: Python<'py>,
    bytes: &[u8],
    encoding: Legacy,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut tally = Tally::default();
    let made = match encoding.byte_table() {
        _ if encoding.is_ascii_compatible() && bytes.is_ascii() => {
            text::make(py, Units::Latin1(bytes), Policy::Strict, &mut tally)
        }
        Some(table) => {
            let mut wide = with_capacity(bytes.len())?;
            if !table.decode(bytes, &mut wide) {
                return decode_malformed(py, bytes, encoding, errors);
            }
            tally.converted_again(bytes.len());
            text::make(py, Units::Ucs2(&wide), Policy::Strict, &mut tally)
        }
        None => {
            let utf8 = encoding.decode_whole(bytes);
            let Some(utf8) = utf8.map_err(|_| PyMemoryError::new_err(()))? else {
                return decode_malformed(py, bytes, encoding, errors);
            };
            tally.converted_again(utf8.len());
            text::make(py, Units::Utf8(&utf8), Policy::Strict, &mut tally)
        }
    };
    let made = made.map_err(|e| match e {
        MakeError::Python(e) => e,
        MakeError::Malformed(_) => PyMemoryError::new_err(()),
    })?;
    ledger::enter(py, &mut tally, Stage::Decode)?;
    Ok(made)
}

/// Decodes malformed text. Calls the error handler for each malformed sequence.
#[cold]
fn decode_malformed<'py>(
    py: Python<'py>,
    bytes: &[u8],
    encoding: Legacy,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let name = handler_name(errors)?;
    let mut tally = Tally::default();
    let mut utf8 = with_capacity(bytes.len() + bytes.len() / 2)?;
    let mut from = 0;
    let mut handler = None;
    let policy = policy_of_handler(&name).unwrap_or_default();
    let mut transcoder = decoder(encoding, policy);
    let mut base = 0;
    let mut parts: Option<Bound<'py, PyList>> = None;
    loop {
        let pushed = transcoder.push(&bytes[from..], &mut utf8);
        let error = match pushed.and_then(|()| transcoder.finish(&mut utf8)) {
            Ok(()) => break,
            Err(TranscodeError::Malformed(error)) => error,
            Err(e) => return Err(no_memory(e)),
        };
        let start = base + error.at_bytes as usize;
        let end = start + error.bytes().len();
        let reason = error.reason.to_string();
        let object = binary::make(py, bytes)?;
        let error = decode_error(py, encoding.name(), &object, start, end, &reason)?;
        if name == "strict" {
            return Err(PyErr::from_value(error));
        }
        let handler = match &handler {
            Some(handler) => handler,
            None => handler.insert(self::handler(py, &name)?),
        };
        let (instead, at) = ask(handler, &error, bytes.len())?;
        let parts = match &parts {
            Some(parts) => parts,
            None => parts.insert(PyList::empty(py)),
        };
        parts.append(str_of(py, &utf8, &mut tally)?)?;
        parts.append(instead.cast_into::<PyString>()?)?;
        utf8.clear();
        from = base + transcoder.taken_bytes().unwrap_or_default() as usize;
        if at != end {
            // The handler has changed the position, so a new decoder starts there.
            transcoder = decoder(encoding, policy);
            (from, base) = (at, at);
        }
    }
    tally.copied_again(utf8.len());
    let made = str_of(py, &utf8, &mut tally)?;
    ledger::enter(py, &mut tally, Stage::Decode)?;
    match parts {
        None => Ok(made),
        Some(parts) => {
            parts.append(made)?;
            PyString::new(py, "").call_method1("join", (parts,))
        }
    }
}

pub(super) fn decoder(encoding: Legacy, on_malformed: Policy) -> Transcoder {
    let options = TranscodeOptions {
        on_malformed,
        ..TranscodeOptions::default()
    };
    Transcoder::new(Encoding::Legacy(encoding), Encoding::Utf8, options)
}

/// Returns `true` if the bytes are well-formed in this encoding.
pub(super) fn is_valid(bytes: &[u8], encoding: Legacy) -> bool {
    let mut transcoder = decoder(encoding, Policy::Strict);
    let mut scratch = Vec::new();
    let mut parts = bytes.chunks(PIECE_BYTES);
    let good = parts.all(|part| {
        scratch.clear();
        transcoder.push(part, &mut scratch).is_ok()
    });
    good && transcoder.finish(&mut scratch).is_ok()
}

/// Encodes a `str` with `codec`. For other codecs than [`Codec::Legacy`], CPython's codec is
/// called.
pub(super) fn encode_or<'py>(
    string: Borrowed<'_, 'py, PyString>,
    codec: Codec,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match codec {
        Codec::Legacy(encoding) => encode(string, encoding, errors),
        _ => codecs::encode(string, codec.name(), errors),
    }
}

/// Returns the text as UTF-8, with lone surrogates as three bytes each (WTF-8).
pub(super) fn utf8_of(string: Borrowed<'_, '_, PyString>) -> PyResult<Vec<u8>> {
    let units = text::units(string)?;
    let mut utf8 = Vec::new();
    if to_utf8(units, Policy::Strict, &mut utf8).is_ok() {
        return Ok(utf8);
    }
    let py = string.py();
    let pass = PyString::new(py, "surrogatepass");
    let made = codecs::encode(string, c"utf-8", Some(pass.as_any().as_borrowed()))?;
    Ok(binary::bytes_of(&made).to_vec())
}

/// Creates a transcoder to this encoding from UTF-8 with lone surrogates.
pub(super) fn encoder(encoding: Encoding, on_unencodable: Policy) -> Transcoder {
    let options = TranscodeOptions {
        on_malformed: Policy::SurrogatePass,
        on_unencodable,
        ..TranscodeOptions::default()
    };
    Transcoder::new(Encoding::Utf8, encoding, options)
}

/// Encodes a `str` through UTF-8. Copies: none.
fn encode<'py>(
    string: Borrowed<'_, 'py, PyString>,
    encoding: Legacy,
    errors: Option<Borrowed<'_, 'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = string.py();
    let units = text::own_units(string)?;
    let whole = match (units, encoding.byte_table()) {
        (Units::Latin1(u), _) if encoding.is_ascii_compatible() && u.is_ascii() => {
            let mut tally = Tally::default();
            tally.encoded(units);
            ledger::enter(py, &mut tally, Stage::Encode)?;
            return binary::make(py, u);
        }
        (_, Some(table)) => {
            let mut out = with_capacity(units.len_units())?;
            table.encode(units, &mut out).then_some(out)
        }
        (_, None) => encode_pairs(units, encoding)?,
    };
    if let Some(out) = whole {
        let mut tally = Tally::default();
        tally.converted(units.len_bytes());
        tally.copied_again(out.len());
        ledger::enter(py, &mut tally, Stage::Encode)?;
        return binary::make(py, &out);
    }
    let name = handler_name(errors)?;
    let policy = policy_of_handler(&name).unwrap_or_default();
    let utf8 = utf8_of(string)?;
    let mut out = with_capacity(utf8.len())?;
    let mut handler = None;
    // The numbers of encoded bytes of UTF-8 and of their characters.
    let (mut done, mut n_chars) = (0, 0);
    loop {
        let mut transcoder = encoder(Encoding::Legacy(encoding), policy);
        let rest = &utf8[done..];
        let pushed = transcoder.push(rest, &mut out);
        let at = match pushed.and_then(|()| transcoder.finish(&mut out)) {
            Ok(()) => break,
            Err(TranscodeError::Unencodable { at_bytes, .. }) => at_bytes as usize,
            Err(e) => return Err(no_memory(e)),
        };
        // The text before the character was written. An encoding with escape sequences is in ASCII
        // again.
        let start = n_chars + count(&rest[..at]);
        let n_bad = run(&rest[at..], encoding);
        let error = encode_error(
            py,
            encoding.name(),
            &string.to_owned(),
            start,
            start + n_bad,
            reason(encoding),
        )?;
        if name == "strict" {
            return Err(PyErr::from_value(error));
        }
        let handler = match &handler {
            Some(handler) => handler,
            None => handler.insert(self::handler(py, &name)?),
        };
        let len = count(&utf8);
        let (instead, go_on) = ask(handler, &error, len)?;
        match instead.cast::<PyBytes>() {
            Ok(bytes) => out.extend_from_slice(bytes.as_bytes()),
            Err(_) => {
                let instead = instead.cast::<PyString>()?;
                let utf8 = utf8_of(instead.as_borrowed())?;
                let mut transcoder = encoder(Encoding::Legacy(encoding), Policy::Strict);
                let pushed = transcoder.push(&utf8, &mut out);
                // If the replacement cannot be encoded either, the original error is raised.
                pushed
                    .and_then(|()| transcoder.finish(&mut out))
                    .map_err(|_| PyErr::from_value(error))?;
            }
        }
        n_chars = go_on;
        done = nth_char(&utf8, go_on);
    }
    let mut tally = Tally::default();
    tally.converted(utf8.len());
    tally.converted_again(utf8.len());
    ledger::enter(py, &mut tally, Stage::Encode)?;
    binary::make(py, &out)
}

/// Encodes text in a legacy multi-byte encoding. Returns `None` if a character cannot be encoded.
/// If the table does not suffice, encoding_rs encodes the whole text.
fn encode_pairs(units: Units<'_>, encoding: Legacy) -> PyResult<Option<Vec<u8>>> {
    if let Some(table) = encoding.pair_table() {
        let mut out = with_capacity(2 * units.len_units())?;
        if table.encode(units, &mut out) {
            return Ok(Some(out));
        }
    }
    let mut utf8 = with_capacity(units.len_bytes() + units.len_bytes() / 2)?;
    if to_utf8(units, Policy::Strict, &mut utf8).is_err() {
        return Ok(None);
    }
    let encoded = encoding.encode_whole(&utf8);
    encoded.map_err(|_| PyMemoryError::new_err(()))
}

/// Allocates a vector with capacity for `n` items.
///
/// # Errors
/// `MemoryError` if the allocation fails.
fn with_capacity<T>(n: usize) -> PyResult<Vec<T>> {
    let mut items = Vec::new();
    let reserved = items.try_reserve_exact(n);
    reserved.map_err(|_| PyMemoryError::new_err(()))?;
    Ok(items)
}

/// Returns the `reason` of CPython's exception for malformed bytes in this encoding.
pub(super) fn reason(encoding: Legacy) -> &'static str {
    match encoding.is_single_byte() {
        true => "character maps to <undefined>",
        false => "illegal multibyte sequence",
    }
}

/// Returns how many characters at the start of `utf8` one error reports. Only single-byte encodings
/// report more than 1.
pub(super) fn run(utf8: &[u8], encoding: Legacy) -> usize {
    let mut starts = char_starts(utf8).chain([utf8.len()]).peekable();
    let mut n = 0;
    while let (Some(start), Some(&end)) = (starts.next(), starts.peek()) {
        let mut single = encoder(Encoding::Legacy(encoding), Policy::Strict);
        let encodes = single.push(&utf8[start..end], &mut Vec::new()).is_ok();
        // The encoder may wait for the rest of a byte order mark, so the text is finished here.
        if encodes && single.finish(&mut Vec::new()).is_ok() {
            break;
        }
        n += 1;
        if !encoding.is_single_byte() {
            break;
        }
    }
    n.max(1)
}

fn char_starts(utf8: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let starts = utf8.iter().enumerate().filter(|(_, b)| **b & 0xC0 != 0x80);
    starts.map(|(at, _)| at)
}

/// Returns the number of characters in `utf8`, with lone surrogates.
pub(super) fn count(utf8: &[u8]) -> usize {
    char_starts(utf8).count()
}

/// Returns the offset in bytes of character `n` from 0, or the total length.
fn nth_char(utf8: &[u8], n: usize) -> usize {
    char_starts(utf8).nth(n).unwrap_or(utf8.len())
}
