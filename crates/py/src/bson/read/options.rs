//! `BsonReadOptions`: the keywords of the BSON decoders.

use onecopy_wire::bson::read::{ArrayKeys, Rules};
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::raw_document::RawDocument;
use crate::choice::choice;
use crate::raw::function::Args;

/// The library with the classes for BSON types without a Python equivalent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Types {
    Onecopy,
    Pymongo,
}

/// The conversion of BSON datetimes (option `datetime_range`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dates {
    /// Each datetime becomes a `datetime`. A datetime out of range is an error.
    Error,
    /// Each datetime becomes a `datetime`. A datetime out of range becomes the nearest limit.
    Clamp,
    /// Every datetime becomes a `DatetimeMS`.
    Raw,
    /// A datetime becomes a `datetime`, or a `DatetimeMS` if it is out of range.
    Auto,
}

/// The subtype and byte order of UUIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uuids {
    /// Subtype 4, in the byte order of RFC 9562.
    Standard,
    /// Subtype 3, in the byte order of RFC 9562.
    PythonLegacy,
    /// Subtype 3, with the bytes of each half reversed.
    JavaLegacy,
    /// Subtype 3, with the bytes of each of the first three fields reversed.
    CsharpLegacy,
    /// No binary value becomes a UUID.
    Unspecified,
}

/// The parameter names of a BSON decoder. `$first` is the name of the first parameter.
macro_rules! with_options {
    ($first:literal) => {
        &[
            $first,
            "compat",
            "tz_aware",
            "datetime_range",
            "uuid_representation",
            "errors",
            "decimals",
            "array_keys",
            "max_depth",
            "max_bytes",
            "document_class",
        ]
    };
}
pub(super) use with_options;

const NAMES: &[&str] = with_options!("buffer");

/// The accepted words of an option and their values.
type Choices<T> = &'static [(&'static [u8], T)];

const COMPAT: Choices<Types> = &[(b"pymongo", Types::Pymongo)];
const DATES: Choices<Dates> = &[
    (b"error", Dates::Error),
    (b"clamp", Dates::Clamp),
    (b"raw", Dates::Raw),
    (b"auto", Dates::Auto),
];
const UUIDS: Choices<Uuids> = &[
    (b"standard", Uuids::Standard),
    (b"python_legacy", Uuids::PythonLegacy),
    (b"java_legacy", Uuids::JavaLegacy),
    (b"csharp_legacy", Uuids::CsharpLegacy),
    (b"unspecified", Uuids::Unspecified),
];
const DECIMALS: Choices<bool> = &[(b"decimal128", false), (b"decimal", true)];
const ARRAY_KEYS: Choices<ArrayKeys> = &[(b"any", ArrayKeys::Any), (b"strict", ArrayKeys::Strict)];

/// Returns the word for the value `choice`.
fn word<T: PartialEq>(choices: Choices<T>, choice: T) -> &'static str {
    let found = choices.iter().find(|(_, known)| *known == choice);
    found
        .and_then(|(word, _)| str::from_utf8(word).ok())
        .expect("each choice has a word")
}

/// The Python signature of a BSON decoder. `$first` is the name of the first parameter.
macro_rules! options_signature {
    ($first:literal) => {
        concat!(
            "(",
            $first,
            ", /, *, compat=None, tz_aware=True, datetime_range='error', uuid_representation='standard', ",
            "errors='strict', decimals='decimal128', array_keys='any', max_depth=1000, ",
            "max_bytes=2147483647, document_class=dict)"
        )
    };
}
pub(super) use options_signature;

/// The Python type for documents (option `document_class`).
#[derive(Debug)]
pub(super) enum Document<O> {
    Dict,
    /// Each document becomes a `RawDocument`.
    Raw,
    /// Each document becomes an instance of this class or a result of this callable.
    Class(O),
}

/// The options of a call. `O` is a reference to a Python object: `Bound` or `Py`.
#[derive(Debug)]
pub(super) struct BsonReadOptions<O> {
    pub(super) types: Types,
    pub(super) tz_aware: bool,
    pub(super) dates: Dates,
    pub(super) uuids: Uuids,
    /// The name of an error handler of the module `codecs`; `None` for `strict`.
    pub(super) errors: Option<O>,
    /// `true` if Decimal128 values become `decimal.Decimal`.
    pub(super) as_decimal: bool,
    pub(super) rules: Rules,
    pub(super) document: Document<O>,
}

/// The options during a call.
pub(super) type Given<'py> = BsonReadOptions<Bound<'py, PyAny>>;
/// Options with owned references to Python objects.
pub(super) type OwnedBsonReadOptions = BsonReadOptions<Py<PyAny>>;

impl<O> BsonReadOptions<O> {
    /// Returns the options of a call without keyword arguments.
    #[inline]
    pub(super) fn usual() -> BsonReadOptions<O> {
        BsonReadOptions {
            types: Types::Onecopy,
            tz_aware: true,
            dates: Dates::Error,
            uuids: Uuids::Standard,
            errors: None,
            as_decimal: false,
            rules: Rules::default(),
            document: Document::Dict,
        }
    }

    /// Copies the options and converts each reference with `hold`.
    fn map<P>(&self, hold: impl Fn(&O) -> P) -> BsonReadOptions<P> {
        BsonReadOptions {
            types: self.types,
            tz_aware: self.tz_aware,
            dates: self.dates,
            uuids: self.uuids,
            errors: self.errors.as_ref().map(&hold),
            as_decimal: self.as_decimal,
            rules: self.rules,
            document: match &self.document {
                Document::Dict => Document::Dict,
                Document::Raw => Document::Raw,
                Document::Class(class) => Document::Class(hold(class)),
            },
        }
    }
}

impl<'py> Given<'py> {
    /// Parses the options from the arguments after the first one.
    #[inline]
    pub(super) fn of(args: &Args<'_, 'py>) -> PyResult<Given<'py>> {
        if args.len() <= 1 {
            return Ok(BsonReadOptions::usual());
        }
        BsonReadOptions::given(|option| args.get(option + 1))
    }

    /// Parses the options of a call. `get` returns the argument at an index of [`with_options`].
    #[cold]
    pub(super) fn given<'a>(
        get: impl Fn(usize) -> Option<Borrowed<'a, 'py, PyAny>>,
    ) -> PyResult<Given<'py>>
    where
        'py: 'a,
    {
        let mut options = BsonReadOptions::usual();
        if let Some(given) = get(0).filter(|given| !given.is_none()) {
            options.types = choice(given, NAMES[1], COMPAT)?;
        }
        if let Some(given) = get(1) {
            options.tz_aware = given.is_truthy()?;
        }
        if let Some(given) = get(2) {
            options.dates = choice(given, NAMES[3], DATES)?;
        }
        if let Some(given) = get(3) {
            options.uuids = choice(given, NAMES[4], UUIDS)?;
        }
        options.errors = handler(get(4))?;
        if let Some(given) = get(5) {
            options.as_decimal = choice(given, NAMES[6], DECIMALS)?;
        }
        if let Some(given) = get(6) {
            options.rules.array_keys = choice(given, NAMES[7], ARRAY_KEYS)?;
        }
        if let Some(given) = get(7) {
            options.rules.max_depth = number(given, NAMES[8])?;
        }
        if let Some(given) = get(8) {
            options.rules.max_bytes = number(given, NAMES[9])?;
        }
        options.document = document(get(9))?;
        Ok(options)
    }

    /// Parses the keyword arguments of `function`, except `document_class`.
    #[cold]
    pub(super) fn of_keywords(
        function: &str,
        keywords: &Bound<'py, PyDict>,
    ) -> PyResult<Given<'py>> {
        let names = &NAMES[1..NAMES.len() - 1];
        for name in keywords.keys() {
            let is_known = names.iter().any(|known| name.eq(known).unwrap_or(false));
            if !is_known {
                return Err(PyTypeError::new_err(format!(
                    "{function}() got an unexpected keyword argument {}",
                    name.repr()?
                )));
            }
        }
        let values: Vec<_> = names
            .iter()
            .map(|name| keywords.get_item(name))
            .collect::<PyResult<_>>()?;
        BsonReadOptions::given(|option| values.get(option)?.as_ref().map(Bound::as_borrowed))
    }

    /// Returns the options as keyword arguments.
    pub(super) fn keywords(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        if self.types == Types::Pymongo {
            keywords.set_item(NAMES[1], word(COMPAT, self.types))?;
        }
        keywords.set_item(NAMES[2], self.tz_aware)?;
        keywords.set_item(NAMES[3], word(DATES, self.dates))?;
        keywords.set_item(NAMES[4], word(UUIDS, self.uuids))?;
        if let Some(handler) = &self.errors {
            keywords.set_item(NAMES[5], handler)?;
        }
        keywords.set_item(NAMES[6], word(DECIMALS, self.as_decimal))?;
        keywords.set_item(NAMES[7], word(ARRAY_KEYS, self.rules.array_keys))?;
        keywords.set_item(NAMES[8], self.rules.max_depth)?;
        keywords.set_item(NAMES[9], self.rules.max_bytes)?;
        Ok(keywords)
    }

    /// Copies the options with owned references.
    pub(super) fn kept(&self) -> OwnedBsonReadOptions {
        self.map(|object| object.clone().unbind())
    }

    /// Returns `true` if the decoder calls no Python code of the caller.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        !matches!(self.document, Document::Class(_))
    }
}

impl OwnedBsonReadOptions {
    /// Copies the options with references for one call.
    pub(super) fn bind<'py>(&self, py: Python<'py>) -> Given<'py> {
        self.map(|object| object.bind(py).clone())
    }
}

fn number(given: Borrowed<'_, '_, PyAny>, name: &str) -> PyResult<usize> {
    let number: isize = given.extract()?;
    usize::try_from(number)
        .map_err(|_| PyValueError::new_err(format!("{name} must not be negative")))
}

/// Returns the name of an error handler other than `strict`.
fn handler<'py>(given: Option<Borrowed<'_, 'py, PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(given) = given else {
        return Ok(None);
    };
    let Ok(name) = given.cast::<PyString>() else {
        let kind = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "errors must be str, not '{kind}'"
        )));
    };
    if *name == "strict" {
        return Ok(None);
    }
    // This lookup makes an unknown name an error for every input.
    let codecs = given.py().import("codecs")?;
    codecs.call_method1("lookup_error", (name,))?;
    Ok(Some(given.to_owned()))
}

fn document<'py>(given: Option<Borrowed<'_, 'py, PyAny>>) -> PyResult<Document<Bound<'py, PyAny>>> {
    let Some(given) = given else {
        return Ok(Document::Dict);
    };
    let py = given.py();
    if given.is(py.get_type::<PyDict>()) {
        return Ok(Document::Dict);
    }
    if given.is(py.get_type::<RawDocument>()) {
        return Ok(Document::Raw);
    }
    if !given.is_callable() {
        let kind = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "document_class must be a class, not '{kind}'"
        )));
    }
    Ok(Document::Class(given.to_owned()))
}
