//! What the caller asks.

use onecopy_wire::bson::read::{ArrayKeys, Rules};
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

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
            "document_class",
            "max_depth",
            "max_size",
        ]
    };
}
pub(super) use with_options;

/// The options as a signature has them.
macro_rules! options_signature {
    ($first:literal) => {
        concat!(
            "(",
            $first,
            ", /, *, types='onecopy', tz_aware=True, datetime_range='error', uuid_representation='standard', ",
            "on_invalid_utf8='strict', decimals='decimal128', array_keys='any', document_class=dict, ",
            "max_depth=1000, max_size=2147483647)"
        )
    };
}
pub(super) use options_signature;

/// What the caller asks; `O` is how an object is held.
#[derive(Clone, Debug)]
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
    /// The class of documents, where it is not `dict`.
    pub(super) document_class: Option<O>,
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
            document_class: None,
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
            document_class: self.document_class.as_ref().map(&hold),
        }
    }
}

impl<'py> Given<'py> {
    /// The options behind the first argument.
    #[inline]
    pub(super) fn of(args: &Args<'_, 'py>) -> PyResult<Given<'py>> {
        if args.len() <= 1 {
            return Ok(Options::usual());
        }
        Options::given(args)
    }

    #[cold]
    fn given(args: &Args<'_, 'py>) -> PyResult<Given<'py>> {
        let mut options = Options::usual();
        if let Some(given) = args.get(1) {
            let choices: &[(&[u8], Types)] =
                &[(b"onecopy", Types::Onecopy), (b"pymongo", Types::Pymongo)];
            options.types = choice(given, "types", choices)?;
        }
        if let Some(given) = args.get(2) {
            options.tz_aware = given.is_truthy()?;
        }
        if let Some(given) = args.get(3) {
            let choices: &[(&[u8], Dates)] = &[
                (b"error", Dates::Error),
                (b"clamp", Dates::Clamp),
                (b"raw", Dates::Raw),
                (b"auto", Dates::Auto),
            ];
            options.dates = choice(given, "datetime_range", choices)?;
        }
        if let Some(given) = args.get(4) {
            let choices: &[(&[u8], Uuids)] = &[
                (b"standard", Uuids::Standard),
                (b"python_legacy", Uuids::PythonLegacy),
                (b"java_legacy", Uuids::JavaLegacy),
                (b"csharp_legacy", Uuids::CsharpLegacy),
                (b"unspecified", Uuids::Unspecified),
            ];
            options.uuids = choice(given, "uuid_representation", choices)?;
        }
        options.on_invalid_utf8 = handler(args.get(5))?;
        if let Some(given) = args.get(6) {
            let choices: &[(&[u8], bool)] = &[(b"decimal128", false), (b"decimal", true)];
            options.as_decimal = choice(given, "decimals", choices)?;
        }
        if let Some(given) = args.get(7) {
            let choices: &[(&[u8], ArrayKeys)] =
                &[(b"any", ArrayKeys::Any), (b"strict", ArrayKeys::Strict)];
            options.rules.array_keys = choice(given, "array_keys", choices)?;
        }
        options.document_class = class(args.get(8))?;
        if let Some(given) = args.get(9) {
            options.rules.max_depth = number(given, "max_depth")?;
        }
        if let Some(given) = args.get(10) {
            options.rules.max_size = number(given, "max_size")?;
        }
        Ok(options)
    }

    /// To be kept.
    pub(super) fn kept(&self) -> Kept {
        self.map(|object| object.clone().unbind())
    }

    /// Whether no code of others runs while objects are made.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.document_class.is_none()
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

/// A class, where it is not `dict`.
fn class<'py>(given: Option<Borrowed<'_, 'py, PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(given) = given else {
        return Ok(None);
    };
    if given.is(given.py().get_type::<PyDict>()) {
        return Ok(None);
    }
    if !given.is_callable() {
        let kind = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "document_class must be a class, not '{kind}'"
        )));
    }
    Ok(Some(given.to_owned()))
}
