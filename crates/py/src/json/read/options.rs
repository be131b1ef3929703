//! The keywords of the functions that read JSON.

use onecopy_text::Policy;
use onecopy_wire::json::read::Limits;
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::choice::{choice, policy};
use crate::raw::function::Args;

/// The option `big_ints`, for integers of more than 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BigIntType {
    Exact,
    Float,
    Error,
}

/// The parameter names of a function that reads JSON. Their order is that of
/// [`JsonReadOptions::given`].
pub(super) const PARAMETERS: &[&str] = &[
    "data",
    "big_ints",
    "duplicate_keys",
    "errors",
    "nan",
    "object_hook",
    "parse_float",
    "max_depth",
];

/// The parameter names of a function that reads a file.
pub(super) const FILE_PARAMETERS: &[&str] = &[
    "file",
    "big_ints",
    "duplicate_keys",
    "errors",
    "nan",
    "object_hook",
    "parse_float",
    "max_depth",
];

/// The options of one call.
pub(super) struct JsonReadOptions<'py> {
    pub(super) big_ints: BigIntType,
    pub(super) refuse_duplicates: bool,
    pub(super) surrogates: Policy,
    pub(super) accept_nan: bool,
    pub(super) limits: Limits,
    pub(super) object_hook: Option<Bound<'py, PyAny>>,
    pub(super) parse_float: Option<Bound<'py, PyAny>>,
}

impl<'py> JsonReadOptions<'py> {
    /// Returns the default options.
    #[inline]
    pub(super) fn usual() -> JsonReadOptions<'py> {
        JsonReadOptions {
            big_ints: BigIntType::Exact,
            refuse_duplicates: false,
            surrogates: Policy::Strict,
            accept_nan: false,
            object_hook: None,
            parse_float: None,
            limits: Limits::default(),
        }
    }

    /// Parses the options. They follow the first argument.
    #[inline]
    pub(super) fn of(args: &Args<'_, 'py>) -> PyResult<JsonReadOptions<'py>> {
        if args.len() <= 1 {
            return Ok(JsonReadOptions::usual());
        }
        JsonReadOptions::given(args)
    }

    #[cold]
    fn given(args: &Args<'_, 'py>) -> PyResult<JsonReadOptions<'py>> {
        let mut options = JsonReadOptions::usual();
        if let Some(given) = args.get(1) {
            options.big_ints = choice(
                given,
                "big_ints",
                &[
                    (b"exact", BigIntType::Exact),
                    (b"float", BigIntType::Float),
                    (b"error", BigIntType::Error),
                ],
            )?;
        }
        if let Some(given) = args.get(2) {
            let choices: &[(&[u8], bool)] = &[(b"last", false), (b"error", true)];
            options.refuse_duplicates = choice(given, "duplicate_keys", choices)?;
        }
        if let Some(given) = args.get(3) {
            const SUPPORTED: &[Policy] = &[Policy::Strict, Policy::Replace, Policy::SurrogatePass];
            options.surrogates = policy(given, SUPPORTED)?;
        }
        if let Some(given) = args.get(4) {
            let choices: &[(&[u8], bool)] = &[(b"error", false), (b"literal", true)];
            options.accept_nan = choice(given, "nan", choices)?;
        }
        options.object_hook = hook(args.get(5), "object_hook")?;
        options.parse_float = hook(args.get(6), "parse_float")?;
        if let Some(given) = args.get(7) {
            let depth: isize = given.extract()?;
            let max_depth = usize::try_from(depth)
                .map_err(|_| PyValueError::new_err("max_depth must not be negative"))?;
            options.limits = Limits { max_depth };
        }
        Ok(options)
    }

    /// Returns `true` if no Python code of the caller creates objects.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.object_hook.is_none() && self.parse_float.is_none()
    }
}

/// The options with owned references. They can be stored after the call.
pub(super) struct OwnedJsonReadOptions {
    big_ints: BigIntType,
    refuse_duplicates: bool,
    surrogates: Policy,
    accept_nan: bool,
    limits: Limits,
    object_hook: Option<Py<PyAny>>,
    parse_float: Option<Py<PyAny>>,
}

impl JsonReadOptions<'_> {
    /// Converts the references to owned ones.
    pub(super) fn unbind(self) -> OwnedJsonReadOptions {
        OwnedJsonReadOptions {
            big_ints: self.big_ints,
            refuse_duplicates: self.refuse_duplicates,
            surrogates: self.surrogates,
            accept_nan: self.accept_nan,
            limits: self.limits,
            object_hook: self.object_hook.map(Bound::unbind),
            parse_float: self.parse_float.map(Bound::unbind),
        }
    }
}

impl OwnedJsonReadOptions {
    /// Returns the options for one call.
    pub(super) fn bind<'py>(&self, py: Python<'py>) -> JsonReadOptions<'py> {
        let bound = |hook: &Option<Py<PyAny>>| hook.as_ref().map(|hook| hook.bind(py).clone());
        JsonReadOptions {
            big_ints: self.big_ints,
            refuse_duplicates: self.refuse_duplicates,
            surrogates: self.surrogates,
            accept_nan: self.accept_nan,
            limits: self.limits,
            object_hook: bound(&self.object_hook),
            parse_float: bound(&self.parse_float),
        }
    }
}

/// Parses the argument `name`: a callable or `None`.
fn hook<'py>(
    given: Option<Borrowed<'_, 'py, PyAny>>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match given {
        Some(given) if !given.is_none() => {
            if !given.is_callable() {
                let kind = given.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "{name} must be callable or None, not '{kind}'"
                )));
            }
            Ok(Some(given.to_owned()))
        }
        _ => Ok(None),
    }
}
