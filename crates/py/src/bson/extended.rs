//! `to_json`, `from_json` and `validate` of `onecopy.bson`.

use onecopy_text::{ByteSink, Chunk, Policy, Stage, Tally, Units};
use onecopy_wire::bson::extended::{
    BigInts, Form, FromJson, FromJsonError, Reason, ToJson, ToJsonError, from_json, to_json,
};
use onecopy_wire::bson::read::{self, ArrayKeys, ReadError, Rules};
use onecopy_wire::bson::{MOST_BYTES, check};
use onecopy_wire::json;
use onecopy_wire::json::read::{Latin1, Ucs2, Ucs4, Utf8};
use pyo3::Borrowed;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::read::error;
use crate::choice::{choice, policy};
use crate::json::raise;
use crate::ledger;
use crate::raw::binary::BytesMemory;
use crate::raw::buffer::{BufferBytes, of_bytes};
use crate::raw::function::{self, Args, Function};
use crate::raw::gil;
use crate::raw::text::{known_ascii, own_units};

/// Adds the Python functions of this file to `module`.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<Validate>(module)?;
    function::add::<ValidateAll>(module)?;
    function::add::<ToJsonOne>(module)?;
    function::add::<ToJsonLines>(module)?;
    function::add::<FromJsonOne>(module)?;
    function::add::<FromJsonLines>(module)
}

/// The minimum size in bytes of a `bytes` object for a conversion without the GIL.
const DETACHED_BYTES: usize = 64 << 10;

/// The minimum capacity of a result, in bytes.
const LEAST_BYTES: usize = 256;

struct Validate;

impl Function for Validate {
    const NAME: &'static str = "bson_validate";
    const SIGNATURE: &'static str =
        "(buffer, /, *, array_keys='any', max_depth=1000, max_bytes=2147483647)";
    const DOC: &'static str = "\
Checks that a buffer is one BSON document.

It accepts what :func:`decode` and :func:`to_json` accept, and dates that Python has no `datetime`
for. It checks lengths, terminators, tags and booleans, that all texts and keys are UTF-8, and that
binary of subtypes 3 and 4 has the 16 bytes of a UUID; ``array_keys='strict'`` requires the keys of
arrays to be their indices. ``max_depth`` limits the nesting of documents and arrays, ``max_bytes``
the bytes of a document.

Raises `BSONDecodeError` with byte and reason; `TypeError` without a buffer.
Copies: none. From 64 KiB of a `bytes` on, other threads run meanwhile.

>>> onecopy.bson.validate(b'\\x05\\x00\\x00\\x00\\x00')
";
    const PARAMETERS: &'static [&'static str] = &["buffer", "array_keys", "max_depth", "max_bytes"];
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let rules = rules(args, 1)?;
        with_bytes(py, args.required(0), |bytes| {
            one(bytes, |b| check(b, rules))
        })?
        .map_err(|e| error::to_py(py, e))?;
        Ok(py.None().into_bound(py))
    }
}

struct ValidateAll;

impl Function for ValidateAll {
    const NAME: &'static str = "bson_validate_all";
    const SIGNATURE: &'static str =
        "(buffer, /, *, array_keys='any', max_depth=1000, max_bytes=2147483647)";
    const DOC: &'static str = "\
As :func:`validate`, of concatenated documents, as mongodump writes them: returns their number.

>>> onecopy.bson.validate_all(b'\\x05\\x00\\x00\\x00\\x00' * 3)
3
";
    const PARAMETERS: &'static [&'static str] = Validate::PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let rules = rules(args, 1)?;
        let mut n = 0_usize;
        with_bytes(py, args.required(0), |bytes| {
            each(bytes, |document| {
                n += 1;
                check(document, rules)
            })
        })?
        .map_err(|e| error::to_py(py, e))?;
        Ok(n.into_pyobject(py)?.into_any())
    }
}

struct ToJsonOne;

impl Function for ToJsonOne {
    const NAME: &'static str = "bson_to_json";
    const SIGNATURE: &'static str = "(buffer, /, *, canonical=False, errors='strict', array_keys='any', \
         max_depth=1000, max_bytes=2147483647)";
    const DOC: &'static str = "\
A BSON document as MongoDB Extended JSON v2, in a fresh `bytes` of UTF-8 without blanks.

Relaxed by default, with plain numbers and dates; the width of an integer is lost. With
``canonical=True`` each number is under the key of its type (``{\"$numberInt\":\"1\"}``), and
:func:`from_json` makes the same bytes of it. ``errors='replace'`` replaces malformed text
by U+FFFD; the other options are those of :func:`validate`.

Raises `BSONDecodeError` with byte and reason; `TypeError` for data without a buffer.
Copies: one, of each text into the result, which may be moved if it is more than a quarter longer
than the data. From 64 KiB of a `bytes` on, other threads run meanwhile.

>>> onecopy.bson.to_json(bytes.fromhex('0c0000001061000100000000'))
b'{\"a\":1}'
>>> onecopy.bson.to_json(bytes.fromhex('0c0000001061000100000000'), canonical=True)
b'{\"a\":{\"$numberInt\":\"1\"}}'
";
    const PARAMETERS: &'static [&'static str] = &[
        "buffer",
        "canonical",
        "errors",
        "array_keys",
        "max_depth",
        "max_bytes",
    ];
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = to_json_options(args)?;
        made(py, args.required(0), |bytes, sink| {
            one(bytes, |bytes| to_json(bytes, &options, sink))
        })
    }
}

struct ToJsonLines;

impl Function for ToJsonLines {
    const NAME: &'static str = "bson_to_json_lines";
    const SIGNATURE: &'static str = "(buffer, /, *, canonical=False, errors='strict', array_keys='any', \
         max_depth=1000, max_bytes=2147483647)";
    const DOC: &'static str = "\
As :func:`to_json`, of concatenated documents, as mongodump writes them: a line for each (NDJSON).

>>> onecopy.bson.to_json_lines(bytes.fromhex('0c0000001061000100000000') * 2)
b'{\"a\":1}\\n{\"a\":1}\\n'
";
    const PARAMETERS: &'static [&'static str] = ToJsonOne::PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = to_json_options(args)?;
        made(py, args.required(0), |bytes, sink| {
            each(bytes, |document| {
                let n_bytes = to_json(document, &options, sink)?;
                sink.put_byte(b'\n').map_err(ToJsonError::SinkFull)?;
                Ok::<_, ToJsonError>(n_bytes)
            })
        })
    }
}

struct FromJsonOne;

impl Function for FromJsonOne {
    const NAME: &'static str = "bson_from_json";
    const SIGNATURE: &'static str =
        "(data, /, *, errors='strict', big_ints='float', max_depth=1000, max_bytes=2147483647)";
    const DOC: &'static str = "\
The BSON document of one object of MongoDB Extended JSON v2, as `bytes`.

``data`` is a `str` or any buffer of UTF-8: canonical or relaxed text, type wrappers with their keys
in any order, ``$uuid``, and the legacy forms of binary (``$binary`` with ``$type``) and regular
expressions (``$regex`` with ``$options``). The outermost object is a document whatever its keys
are; DBRefs stay documents. Integers become int32 if they fit, else int64; longer ones become the
nearest double (``big_ints='error'`` refuses them). ``errors='replace'`` replaces a lone
surrogate by U+FFFD. ``max_depth`` and ``max_bytes`` are those of :func:`validate`.

Raises `onecopy.json.JSONDecodeError` with the position for text that is not valid JSON, and for
wrong wrappers; `TypeError` for data without a buffer.

Copies: one, of each text into the result; one more of texts with escapes and of wrappers of several
parts; the result may be moved if it is more than a quarter longer than the text. From 64 KiB of a
`str` or `bytes` on, other threads run meanwhile.

>>> onecopy.bson.from_json('{\"a\": {\"$numberLong\": \"1\"}}').hex()
'10000000126100010000000000000000'
";
    const PARAMETERS: &'static [&'static str] =
        &["data", "errors", "big_ints", "max_depth", "max_bytes"];
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        from_text(py, args, false)
    }
}

struct FromJsonLines;

impl Function for FromJsonLines {
    const NAME: &'static str = "bson_from_json_lines";
    const SIGNATURE: &'static str =
        "(data, /, *, errors='strict', big_ints='float', max_depth=1000, max_bytes=2147483647)";
    const DOC: &'static str = "\
As :func:`from_json`, of concatenated objects, on lines of their own or not: concatenated documents.

>>> len(onecopy.bson.from_json_lines(b'{}\\n{}\\n'))
10
";
    const PARAMETERS: &'static [&'static str] = FromJsonOne::PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        from_text(py, args, true)
    }
}

/// Converts the argument `name` to a non-negative integer.
fn unsigned(given: Option<Borrowed<'_, '_, PyAny>>, name: &str) -> PyResult<Option<usize>> {
    let Some(given) = given else {
        return Ok(None);
    };
    let number: isize = given.extract()?;
    let number = usize::try_from(number);
    let error = || PyValueError::new_err(format!("{name} must not be negative"));
    number.map(Some).map_err(|_| error())
}

/// Parses the reading options, the arguments from index `first` on.
fn rules(args: &Args<'_, '_>, first: usize) -> PyResult<Rules> {
    let mut rules = Rules::default();
    if let Some(given) = args.get(first) {
        let choices: &[(&[u8], ArrayKeys)] =
            &[(b"any", ArrayKeys::Any), (b"strict", ArrayKeys::Strict)];
        rules.array_keys = choice(given, "array_keys", choices)?;
    }
    if let Some(depth) = unsigned(args.get(first + 1), "max_depth")? {
        rules.max_depth = depth;
    }
    if let Some(size) = unsigned(args.get(first + 2), "max_bytes")? {
        rules.max_bytes = size.min(MOST_BYTES);
    }
    Ok(rules)
}

fn to_json_options(args: &Args<'_, '_>) -> PyResult<ToJson> {
    let mut options = ToJson {
        rules: rules(args, 3)?,
        ..ToJson::default()
    };
    if let Some(given) = args.get(1)
        && given.is_truthy()?
    {
        options.form = Form::Canonical;
    }
    if let Some(given) = args.get(2) {
        options.policy = policy(given, &Policy::BASIC)?;
    }
    Ok(options)
}

fn from_json_options(args: &Args<'_, '_>) -> PyResult<FromJson> {
    let mut options = FromJson::default();
    if let Some(given) = args.get(1) {
        options.surrogates = policy(given, &Policy::BASIC)?;
    }
    if let Some(given) = args.get(2) {
        let choices: &[(&[u8], BigInts)] =
            &[(b"float", BigInts::Float), (b"error", BigInts::Error)];
        options.big_ints = choice(given, "big_ints", choices)?;
    }
    if let Some(depth) = unsigned(args.get(3), "max_depth")? {
        options.max_depth = depth;
    }
    if let Some(size) = unsigned(args.get(4), "max_bytes")? {
        options.max_bytes = size.min(MOST_BYTES);
    }
    Ok(options)
}

/// Calls `work` with the bytes of `object`. Releases the GIL for a long `bytes`.
fn with_bytes<'py, R: Send>(
    py: Python<'py>,
    object: Borrowed<'_, 'py, PyAny>,
    work: impl FnOnce(&[u8]) -> R + Send,
) -> PyResult<R> {
    match of_bytes(object) {
        Some(bytes) if bytes.len() >= DETACHED_BYTES => Ok(gil::detach(py, || work(bytes))),
        Some(bytes) => Ok(work(bytes)),
        None => {
            let bytes = BufferBytes::of(object)?;
            Ok(work(bytes.as_slice()))
        }
    }
}

/// A parse error with a byte offset. `later_by` adds the size of the preceding documents.
trait Later: From<ReadError> {
    fn later_by(self, n_bytes: usize) -> Self;
}

impl Later for ReadError {
    fn later_by(self, n_bytes: usize) -> Self {
        ReadError::later_by(self, n_bytes)
    }
}

/// A newtype of [`ToJsonError`]: Rust forbids a foreign trait on a foreign type.
struct ErrorText(ToJsonError);

impl From<ToJsonError> for ErrorText {
    fn from(e: ToJsonError) -> Self {
        ErrorText(e)
    }
}

impl From<ReadError> for ErrorText {
    fn from(e: ReadError) -> Self {
        ErrorText(ToJsonError::Read(e))
    }
}

impl Later for ErrorText {
    fn later_by(self, n_bytes: usize) -> Self {
        match self.0 {
            ToJsonError::Read(e) => e.later_by(n_bytes).into(),
            e => e.into(),
        }
    }
}

/// Calls `work` for the only document in `bytes`. Further bytes are an error.
fn one<E: From<ReadError>, F: Into<E>>(
    bytes: &[u8],
    work: impl FnOnce(&[u8]) -> Result<usize, F>,
) -> Result<(), E> {
    let n_bytes = work(bytes).map_err(Into::into)?;
    if n_bytes < bytes.len() {
        let reason = read::Reason::TrailingData;
        let offset_bytes = n_bytes;
        return Err(ReadError {
            reason,
            offset_bytes,
        }
        .into());
    }
    Ok(())
}

/// Calls `work` for each of the concatenated documents in `bytes`.
fn each<E: Later, F: Into<E>>(
    bytes: &[u8],
    mut work: impl FnMut(&[u8]) -> Result<usize, F>,
) -> Result<(), E> {
    let mut at = 0;
    while at < bytes.len() {
        at += work(&bytes[at..]).map_err(|e| e.into().later_by(at))?;
    }
    Ok(())
}

/// Returns the initial capacity, in bytes, for the JSON of `n_read` bytes of BSON.
fn likely_bytes(n_read: usize) -> usize {
    n_read + n_read / 4 + LEAST_BYTES
}

/// Returns the output of `work` for the bytes of `object`.
fn made<'py>(
    py: Python<'py>,
    object: Borrowed<'_, 'py, PyAny>,
    work: impl FnOnce(&[u8], &mut Chunk) -> Result<(), ErrorText> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let mut n_read = 0;
    let done = with_bytes(py, object, |bytes| {
        n_read = bytes.len();
        let mut chunk = BytesMemory::whole(likely_bytes(bytes.len()))?;
        Ok::<_, PyErr>(work(bytes, &mut chunk).map(|()| chunk))
    })??;
    match done {
        Ok(chunk) => finish(py, chunk, n_read),
        Err(ErrorText(ToJsonError::Read(e))) => Err(error::to_py(py, e)),
        Err(ErrorText(_)) => Err(PyMemoryError::new_err(())),
    }
}

/// Returns the chunk as a `bytes` object, and counts `n_read` bytes in the active ledger.
fn finish(py: Python<'_>, mut chunk: Chunk, n_read: usize) -> PyResult<Bound<'_, PyAny>> {
    if ledger::is_kept() {
        let mut tally = Tally::default();
        tally.converted(n_read);
        tally.copied_again(chunk.take_moved_bytes());
        ledger::enter(py, &mut tally, Stage::Encode)?;
    }
    Ok(BytesMemory::finish(py, chunk)?.into_any())
}

/// Converts Extended JSON to BSON: one document, or any number if `all` is `true`.
fn from_text<'py>(py: Python<'py>, args: &Args<'_, 'py>, all: bool) -> PyResult<Bound<'py, PyAny>> {
    let options = from_json_options(args)?;
    let data = args.required(0);
    let buffer;
    let (units, is_fixed) = if let Ok(string) = data.cast::<PyString>() {
        match known_ascii(string)? {
            Some(ascii) => (Units::Utf8(ascii), true),
            None => (own_units(string)?, true),
        }
    } else if let Some(bytes) = of_bytes(data) {
        (Units::Utf8(bytes), true)
    } else if BufferBytes::is_buffer(data) {
        buffer = BufferBytes::of(data)?;
        (Units::Utf8(buffer.as_slice()), false)
    } else {
        let kind = data.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "the data must be a str or a bytes-like object, not '{kind}'"
        )));
    };
    let n_read = units.len_bytes();
    let work = || {
        let mut chunk = BytesMemory::whole(likely_bytes(n_read))?;
        let done = documents(units, &options, all, &mut chunk);
        Ok::<_, PyErr>(done.map(|()| chunk))
    };
    let done = match is_fixed && n_read >= DETACHED_BYTES {
        true => gil::detach(py, work)?,
        false => work()?,
    };
    match done {
        Ok(chunk) => finish(py, chunk, n_read),
        Err(FromJsonError {
            reason: Reason::SinkFull(_),
            ..
        }) => Err(PyMemoryError::new_err(())),
        Err(e) => Err(raise(&data, units, &e.reason.to_string(), e.at_units)),
    }
}

fn documents(
    units: Units<'_>,
    options: &FromJson,
    all: bool,
    sink: &mut Chunk,
) -> Result<(), FromJsonError> {
    let len = units.len_units();
    let mut at = 0;
    // If any number of documents is permitted, an empty text is valid.
    if all && blank(units) == len {
        return Ok(());
    }
    loop {
        at = match units {
            Units::Utf8(text) => from_json::<Utf8, _>(text, at, options, sink),
            Units::Latin1(text) => from_json::<Latin1, _>(text, at, options, sink),
            Units::Ucs2(text) | Units::Utf16(text) => from_json::<Ucs2, _>(text, at, options, sink),
            Units::Utf32(text) => from_json::<Ucs4, _>(text, at, options, sink),
        }?;
        at += blank(units.skip(at));
        if at == len {
            return Ok(());
        }
        if !all {
            return Err(FromJsonError {
                reason: Reason::Json(json::read::Reason::TrailingData),
                at_units: at,
            });
        }
    }
}

/// Returns the number of white space characters at the start.
fn blank(units: Units<'_>) -> usize {
    let is_blank = |unit: u32| matches!(unit, 0x20 | 0x0A | 0x0D | 0x09);
    match units {
        Units::Utf8(u) | Units::Latin1(u) => u.iter().take_while(|&&b| is_blank(b.into())).count(),
        Units::Ucs2(u) | Units::Utf16(u) => u.iter().take_while(|&&b| is_blank(b.into())).count(),
        Units::Utf32(u) => u.iter().take_while(|&&c| is_blank(c)).count(),
    }
}
