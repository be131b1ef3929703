//! What the caller asks.

use onecopy_wire::bson::read::{ArrayKeys, Rules};
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::document::RawDocument;
use crate::choice::choice;
use crate::raw::method::Args;

/// Whose classes the values have that Python has no type for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Types {
    Onecopy,
    Pymongo,
}

/// What becomes of a datetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dates {
    /// A `datetime`; one outside of the years 1 to 9999 is refused.
    Error,
    /// A `datetime`, the first or the last one where it is outside.
    Clamp,
    /// A `DatetimeMS`.
    Raw,
    /// A `datetime`, and a `DatetimeMS` where it is outside.
    Auto,
}

/// In which order the bytes of a UUID stand; what is in no such order stays binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uuids {
    /// Subtype 4.
    Standard,
    /// Subtype 3, in the same order.
    PythonLegacy,
    /// Subtype 3, each half reversed.
    JavaLegacy,
    /// Subtype 3, the first three fields reversed.
    CsharpLegacy,
    /// All stay binary.
    Unspecified,
}

/// The names of the options, in the order in which they stand in the arguments behind the first.
macro_rules! with_options {
    ($first:literal) => {
        &[
            $first,
            "types",
            "tz_aware",
            "datetime_range",
            "uuid_representation",
            "on_invalid_utf8",
            "decimals",
            "array_keys",
            "max_depth",
            "max_size",
            "document_class",
        ]
    };
}
pub(super) use with_options;

const NAMES: &[&str] = with_options!("buffer");

/// A word of an option and what it stands for.
type Choices<T> = &'static [(&'static [u8], T)];

const TYPES: Choices<Types> = &[(b"onecopy", Types::Onecopy), (b"pymongo", Types::Pymongo)];
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

/// The word of a choice.
fn word<T: PartialEq>(choices: Choices<T>, choice: T) -> &'static str {
    let found = choices.iter().find(|(_, known)| *known == choice);
    found
        .and_then(|(word, _)| str::from_utf8(word).ok())
        .expect("each choice has a word")
}

/// The options as a signature has them.
macro_rules! options_signature {
    ($first:literal) => {
        concat!(
            "(",
            $first,
            ", /, *, types='onecopy', tz_aware=True, datetime_range='error', uuid_representation='standard', ",
            "on_invalid_utf8='strict', decimals='decimal128', array_keys='any', max_depth=1000, ",
            "max_size=2147483647, document_class=dict)"
        )
    };
}
pub(super) use options_signature;

/// What a document becomes.
#[derive(Debug)]
pub(super) enum Document<O> {
    Dict,
    /// A `RawDocument`.
    Raw,
    /// An instance of a class, or what a call of it gives.
    Class(O),
}

/// What the caller asks; `O` is how an object is held.
#[derive(Debug)]
pub(super) struct Options<O> {
    pub(super) types: Types,
    pub(super) tz_aware: bool,
    pub(super) dates: Dates,
    pub(super) uuids: Uuids,
    /// The name of an error handler, where it is not the strict one.
    pub(super) on_invalid_utf8: Option<O>,
    /// Whether decimals become `decimal.Decimal`.
    pub(super) as_decimal: bool,
    pub(super) rules: Rules,
    pub(super) document: Document<O>,
}

/// [`Options`] for a call.
pub(super) type Given<'py> = Options<Bound<'py, PyAny>>;
/// [`Options`] that outlive a call.
pub(super) type Kept = Options<Py<PyAny>>;

impl<O> Options<O> {
    /// What is asked where nothing is.
    #[inline]
    pub(super) fn usual() -> Options<O> {
        Options {
            types: Types::Onecopy,
            tz_aware: true,
            dates: Dates::Error,
            uuids: Uuids::Standard,
            on_invalid_utf8: None,
            as_decimal: false,
            rules: Rules::default(),
            document: Document::Dict,
        }
    }

    /// The same, its objects held otherwise.
    fn map<P>(&self, hold: impl Fn(&O) -> P) -> Options<P> {
        Options {
            types: self.types,
            tz_aware: self.tz_aware,
            dates: self.dates,
            uuids: self.uuids,
            on_invalid_utf8: self.on_invalid_utf8.as_ref().map(&hold),
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
    /// The options behind the first argument, in the order of [`with_options`].
    #[inline]
    pub(super) fn of(args: &Args<'_, 'py>) -> PyResult<Given<'py>> {
        if args.len() <= 1 {
            return Ok(Options::usual());
        }
        Options::given(|option| args.get(option + 1))
    }

    /// The options by their numbers in [`with_options`], from 0.
    #[cold]
    pub(super) fn given<'a>(
        get: impl Fn(usize) -> Option<Borrowed<'a, 'py, PyAny>>,
    ) -> PyResult<Given<'py>>
    where
        'py: 'a,
    {
        let mut options = Options::usual();
        if let Some(given) = get(0) {
            options.types = choice(given, NAMES[1], TYPES)?;
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
        options.on_invalid_utf8 = handler(get(4))?;
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
            options.rules.max_size = number(given, NAMES[9])?;
        }
        options.document = document(get(9))?;
        Ok(options)
    }

    /// The options of a call of `function` with keywords, all but the class of documents.
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
        Options::given(|option| values.get(option)?.as_ref().map(Bound::as_borrowed))
    }

    /// The keywords that say the same.
    pub(super) fn keywords(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        keywords.set_item(NAMES[1], word(TYPES, self.types))?;
        keywords.set_item(NAMES[2], self.tz_aware)?;
        keywords.set_item(NAMES[3], word(DATES, self.dates))?;
        keywords.set_item(NAMES[4], word(UUIDS, self.uuids))?;
        if let Some(handler) = &self.on_invalid_utf8 {
            keywords.set_item(NAMES[5], handler)?;
        }
        keywords.set_item(NAMES[6], word(DECIMALS, self.as_decimal))?;
        keywords.set_item(NAMES[7], word(ARRAY_KEYS, self.rules.array_keys))?;
        keywords.set_item(NAMES[8], self.rules.max_depth)?;
        keywords.set_item(NAMES[9], self.rules.max_size)?;
        Ok(keywords)
    }

    /// To be kept.
    pub(super) fn kept(&self) -> Kept {
        self.map(|object| object.clone().unbind())
    }

    /// Whether no code of others runs while objects are made.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        !matches!(self.document, Document::Class(_))
    }
}

impl Kept {
    /// To be used.
    pub(super) fn bind<'py>(&self, py: Python<'py>) -> Given<'py> {
        self.map(|object| object.bind(py).clone())
    }
}

fn number(given: Borrowed<'_, '_, PyAny>, name: &str) -> PyResult<usize> {
    let number: isize = given.extract()?;
    usize::try_from(number)
        .map_err(|_| PyValueError::new_err(format!("{name} must not be negative")))
}

/// The name of an error handler, where it is not `strict`.
fn handler<'py>(given: Option<Borrowed<'_, 'py, PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(given) = given else {
        return Ok(None);
    };
    let Ok(name) = given.cast::<PyString>() else {
        let kind = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "on_invalid_utf8 must be str, not '{kind}'"
        )));
    };
    if *name == "strict" {
        return Ok(None);
    }
    // An unknown one is an error here, not where a text is malformed.
    let codecs = given.py().import("codecs")?;
    codecs.call_method1("lookup_error", (name,))?;
    Ok(Some(given.to_owned()))
}

/// What documents are to become.
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
