//! What the caller asks.

use onecopy_wire::json::read::{Limits, Surrogates};
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::choice::choice;
use crate::raw::method::Args;

/// What becomes of integers of more than 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BigInts {
    Exact,
    Float,
    Error,
}

/// The names of the options, in the order in which they stand in the arguments behind the data.
pub(super) const PARAMETERS: &[&str] = &[
    "data",
    "big_ints",
    "duplicate_keys",
    "surrogates",
    "nan",
    "object_hook",
    "float_hook",
    "max_depth",
];

/// As [`PARAMETERS`], for a file.
pub(super) const FILE_PARAMETERS: &[&str] = &[
    "file",
    "big_ints",
    "duplicate_keys",
    "surrogates",
    "nan",
    "object_hook",
    "float_hook",
    "max_depth",
];

/// What the caller asks.
pub(super) struct Options<'py> {
    pub(super) big_ints: BigInts,
    pub(super) refuse_duplicates: bool,
    pub(super) surrogates: Surrogates,
    pub(super) accept_nan: bool,
    pub(super) limits: Limits,
    pub(super) object_hook: Option<Bound<'py, PyAny>>,
    pub(super) float_hook: Option<Bound<'py, PyAny>>,
}

impl<'py> Options<'py> {
    /// What is asked where nothing is.
    #[inline]
    pub(super) fn usual() -> Options<'py> {
        Options {
            big_ints: BigInts::Exact,
            refuse_duplicates: false,
            surrogates: Surrogates::Error,
            accept_nan: false,
            object_hook: None,
            float_hook: None,
            limits: Limits::default(),
        }
    }

    /// The options behind the first argument.
    #[inline]
    pub(super) fn of(args: &Args<'_, 'py>) -> PyResult<Options<'py>> {
        if args.len() <= 1 {
            return Ok(Options::usual());
        }
        Options::given(args)
    }

    #[cold]
    fn given(args: &Args<'_, 'py>) -> PyResult<Options<'py>> {
        let mut options = Options::usual();
        if let Some(given) = args.get(1) {
            options.big_ints = choice(
                given,
                "big_ints",
                &[
                    (b"exact", BigInts::Exact),
                    (b"float", BigInts::Float),
                    (b"error", BigInts::Error),
                ],
            )?;
        }
        if let Some(given) = args.get(2) {
            let choices: &[(&[u8], bool)] = &[(b"last", false), (b"error", true)];
            options.refuse_duplicates = choice(given, "duplicate_keys", choices)?;
        }
        if let Some(given) = args.get(3) {
            options.surrogates = choice(
                given,
                "surrogates",
                &[
                    (b"error", Surrogates::Error),
                    (b"replace", Surrogates::Replace),
                    (b"pass", Surrogates::Pass),
                ],
            )?;
        }
        if let Some(given) = args.get(4) {
            let choices: &[(&[u8], bool)] = &[(b"error", false), (b"accept", true)];
            options.accept_nan = choice(given, "nan", choices)?;
        }
        options.object_hook = hook(args.get(5), "object_hook")?;
        options.float_hook = hook(args.get(6), "float_hook")?;
        if let Some(given) = args.get(7) {
            let depth: isize = given.extract()?;
            let max_depth = usize::try_from(depth)
                .map_err(|_| PyValueError::new_err("max_depth must not be negative"))?;
            options.limits = Limits { max_depth };
        }
        Ok(options)
    }

    /// Whether no code of others runs while objects are made.
    #[inline]
    pub(super) fn is_alone(&self) -> bool {
        self.object_hook.is_none() && self.float_hook.is_none()
    }
}

/// [`Options`] that outlive a call.
pub(super) struct Kept {
    big_ints: BigInts,
    refuse_duplicates: bool,
    surrogates: Surrogates,
    accept_nan: bool,
    limits: Limits,
    object_hook: Option<Py<PyAny>>,
    float_hook: Option<Py<PyAny>>,
}

impl Options<'_> {
    /// To be kept.
    pub(super) fn unbind(self) -> Kept {
        Kept {
            big_ints: self.big_ints,
            refuse_duplicates: self.refuse_duplicates,
            surrogates: self.surrogates,
            accept_nan: self.accept_nan,
            limits: self.limits,
            object_hook: self.object_hook.map(Bound::unbind),
            float_hook: self.float_hook.map(Bound::unbind),
        }
    }
}

impl Kept {
    /// To be used.
    pub(super) fn bind<'py>(&self, py: Python<'py>) -> Options<'py> {
        let bound = |hook: &Option<Py<PyAny>>| hook.as_ref().map(|hook| hook.bind(py).clone());
        Options {
            big_ints: self.big_ints,
            refuse_duplicates: self.refuse_duplicates,
            surrogates: self.surrogates,
            accept_nan: self.accept_nan,
            limits: self.limits,
            object_hook: bound(&self.object_hook),
            float_hook: bound(&self.float_hook),
        }
    }
}

/// Something to be called, or None.
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
