//! The encodings of the WHATWG Encoding Standard: `str` by way of UTF-8, errors as CPython's codecs raise them.

use onecopy_text::convert::to_utf8;
use onecopy_text::{
    Encoding, Legacy, OnMalformed, OnUnencodable, Policy, Stage, Tally, TranscodeError,
    TranscodeOptions, Transcoder, Units,
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

/// Bytes that are looked at between two uses of the scratch.
const PIECE_BYTES: usize = 64 * 1024;

/// The name of an error handler; strict where none is given.
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

/// What a handler of this name does with malformed bytes, where we know it.
pub(super) fn on_malformed(name: &str) -> Option<OnMalformed> {
    Some(match name {
        "strict" => OnMalformed::Strict,
        "replace" => OnMalformed::Replace,
        "ignore" => OnMalformed::Ignore,
        "surrogatepass" => OnMalformed::SurrogatePass,
        "backslashreplace" => OnMalformed::BackslashReplace,
        _ => return None,
    })
}

/// What a handler of this name does with characters that cannot be encoded, where we know it.
pub(super) fn on_unencodable(name: &str) -> Option<OnUnencodable> {
    Some(match name {
        "strict" => OnUnencodable::Strict,
        "replace" => OnUnencodable::Replace,
        "ignore" => OnUnencodable::Ignore,
        "surrogatepass" => OnUnencodable::SurrogatePass,
        "backslashreplace" => OnUnencodable::BackslashReplace,
        "xmlcharrefreplace" => OnUnencodable::XmlCharRefReplace,
        _ => return None,
    })
}

/// A handler of :mod:`codecs`, by its name.
pub(super) fn handler<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("codecs")?.call_method1("lookup_error", (name,))
}

/// A `str` of UTF-8 that was just made.
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

/// An error that is none of the text's.
pub(super) fn no_memory(_: TranscodeError) -> PyErr {
    PyMemoryError::new_err(())
}

/// `UnicodeDecodeError` as an object, for a handler or to be raised.
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

/// `UnicodeEncodeError` as an object.
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

/// Asks a handler: what it puts in, and where to go on.
pub(super) fn ask<'py>(
    handler: &Bound<'py, PyAny>,
    error: &Bound<'py, PyAny>,
    len: usize,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let answer = handler.call1((error,))?;
    let answer = answer.cast_into::<PyTuple>().map_err(|_| {
        PyTypeError::new_err("error handlers give a tuple of what to put in and where to go on")
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

/// Decodes. Copies: none; two conversions: to UTF-8 or UCS-2, and into the `str` (ASCII: one).
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

/// As [`decode`], what is malformed.
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
    let policy = match on_malformed(&name) {
        Some(OnMalformed::SurrogatePass) | None => OnMalformed::Strict,
        Some(policy) => policy,
    };
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
            // A text of its own from there on.
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

/// A transcoder from the encoding to UTF-8.
pub(super) fn decoder(encoding: Legacy, on_malformed: OnMalformed) -> Transcoder {
    let options = TranscodeOptions {
        on_malformed,
        ..TranscodeOptions::default()
    };
    Transcoder::new(Encoding::Legacy(encoding), Encoding::Utf8, options)
}

/// Whether the bytes are well-formed.
pub(super) fn is_valid(bytes: &[u8], encoding: Legacy) -> bool {
    let mut transcoder = decoder(encoding, OnMalformed::Strict);
    let mut scratch = Vec::new();
    let mut parts = bytes.chunks(PIECE_BYTES);
    let good = parts.all(|part| {
        scratch.clear();
        transcoder.push(part, &mut scratch).is_ok()
    });
    good && transcoder.finish(&mut scratch).is_ok()
}

/// Encodes what no code of our own for whole texts does: by CPython's codec, or by the standard's tables.
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

/// The text as UTF-8, with lone surrogates in its manner.
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

/// A transcoder from UTF-8, with lone surrogates in its manner, to the encoding.
pub(super) fn encoder(encoding: Encoding, on_unencodable: OnUnencodable) -> Transcoder {
    let options = TranscodeOptions {
        on_malformed: OnMalformed::SurrogatePass,
        on_unencodable,
        ..TranscodeOptions::default()
    };
    Transcoder::new(Encoding::Utf8, encoding, options)
}

/// Encodes. Copies: none, two conversions: to UTF-8 and from there.
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
    let policy = match on_unencodable(&name) {
        Some(OnUnencodable::SurrogatePass) | None => OnUnencodable::Strict,
        Some(policy) => policy,
    };
    let utf8 = utf8_of(string)?;
    let mut out = with_capacity(utf8.len())?;
    let mut handler = None;
    // Bytes of the UTF-8 and characters before it that are done.
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
        // What came before is written; an encoding with states is back in ASCII there.
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
                let mut transcoder = encoder(Encoding::Legacy(encoding), OnUnencodable::Strict);
                let pushed = transcoder.push(&utf8, &mut out);
                // What a handler gives must be encodable: else it is the error that it was asked about.
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

/// By the table of pairs, or, with characters of four bytes or states, by encoding_rs.
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

/// # Errors
/// `MemoryError`.
fn with_capacity<T>(n: usize) -> PyResult<Vec<T>> {
    let mut items = Vec::new();
    let reserved = items.try_reserve_exact(n);
    reserved.map_err(|_| PyMemoryError::new_err(()))?;
    Ok(items)
}

/// The reason that CPython's codecs give.
pub(super) fn reason(encoding: Legacy) -> &'static str {
    match encoding.is_single_byte() {
        true => "character maps to <undefined>",
        false => "illegal multibyte sequence",
    }
}

/// How many characters at the start cannot be encoded: CPython tells them together where a byte is a character.
pub(super) fn run(utf8: &[u8], encoding: Legacy) -> usize {
    let mut starts = char_starts(utf8).chain([utf8.len()]).peekable();
    let mut n = 0;
    while let (Some(start), Some(&end)) = (starts.next(), starts.peek()) {
        let mut alone = encoder(Encoding::Legacy(encoding), OnUnencodable::Strict);
        let encodes = alone.push(&utf8[start..end], &mut Vec::new()).is_ok();
        // A character of few bytes may still be held as the start of a mark.
        if encodes && alone.finish(&mut Vec::new()).is_ok() {
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

/// Characters, lone surrogates too.
pub(super) fn count(utf8: &[u8]) -> usize {
    char_starts(utf8).count()
}

/// Bytes before the character of this number.
fn nth_char(utf8: &[u8], n: usize) -> usize {
    char_starts(utf8).nth(n).unwrap_or(utf8.len())
}
