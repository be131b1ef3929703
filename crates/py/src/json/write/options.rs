//! `JsonWriteOptions`: the keywords of the JSON encoders.

use onecopy_text::Policy;
use onecopy_wire::NonFinite;
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use crate::choice::policy;
use crate::keywords::{Hook, choose, choose_many};
use crate::raw::encode::Natives;
use crate::raw::encode::json::Style;
use crate::raw::function::Args;
use crate::raw::ndarray::Choice;
use crate::raw::text;

/// Expands to the parameter names of a JSON encoder: `$first`, and then the options.
macro_rules! with_options {
    ($($first:literal),*) => {
        &[
            $($first,)*
            "default", "sort_keys", "indent", "ensure_ascii", "nan", "errors", "big_ints", "non_str_keys",
            "max_depth", "naive_utc", "utc_z", "omit_microseconds", "passthrough", "private_fields", "compat",
        ]
    };
}
pub(super) use with_options;

/// Expands to the Python signature of a JSON encoder: `$first`, and then the options.
macro_rules! options_signature {
    ($first:literal) => {
        concat!(
            "(", $first, ", default=None, sort_keys=False, indent=None, ensure_ascii=False, nan='error', ",
            "errors='strict', big_ints='exact', non_str_keys=False, max_depth=1000, naive_utc=False, ",
            "utc_z=False, omit_microseconds=False, passthrough=(), private_fields=True, compat=None)"
        )
    };
}
pub(super) use options_signature;

/// The form of integers that other parsers may round (option `big_ints`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BigIntPolicy {
    /// Every integer has all its digits.
    Exact,
    /// An integer of more than 53 bits becomes a string.
    Text53,
    /// Integers of more than 64 bits are an error.
    Error,
    /// Integers of more than 53 bits are an error.
    Error53,
}

/// The library of the option `compat`. The encoder follows the rules of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compat {
    Orjson,
    Ujson,
}

/// The options of a JSON encoder call.
#[derive(Debug)]
pub(crate) struct JsonWriteOptions {
    pub(crate) style: Style,
    pub(crate) default: Option<Hook>,
    pub(crate) big_ints: BigIntPolicy,
    pub(crate) non_str_keys: bool,
    /// `true` if keys of any type become strings with `str()`. `sort_keys` sorts the original keys.
    pub(super) keys_by_str: bool,
    /// The accepted NumPy objects and their form.
    pub(super) numpy: Choice,
    /// The types for `default`, with one bit for each variant of [`Passed`].
    pub(super) passed: u16,
}

/// The types of the option `passthrough`. Their objects are passed to `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Dataclass,
    Datetime,
    Decimal,
    Enum,
    /// Instances of classes derived from `float`.
    Float,
    Numpy,
    /// Instances of classes derived from a built-in type.
    Subclass,
    /// Instances of classes derived from `tuple`, including named tuples.
    Tuple,
    Uuid,
}

impl From<Passed> for u16 {
    fn from(passed: Passed) -> u16 {
        passed as u16
    }
}

const PASSED: &[(&str, Passed)] = &[
    ("dataclass", Passed::Dataclass),
    ("datetime", Passed::Datetime),
    ("decimal", Passed::Decimal),
    ("enum", Passed::Enum),
    ("float", Passed::Float),
    ("numpy", Passed::Numpy),
    ("subclass", Passed::Subclass),
    ("tuple", Passed::Tuple),
    ("uuid", Passed::Uuid),
];

/// The default of the option `max_depth`.
const MAX_DEPTH: usize = 1000;

impl JsonWriteOptions {
    /// Returns the options of a call without keyword arguments.
    #[inline]
    pub(super) fn new() -> JsonWriteOptions {
        JsonWriteOptions {
            style: Style {
                sort_keys: false,
                indent: None,
                ensure_ascii: false,
                surrogates: Policy::Strict,
                nan: NonFinite::Error,
                exact_ints: true,
                text_ints: false,
                scalar_keys: false,
                max_depth: MAX_DEPTH,
                natives: Natives::ALL,
            },
            default: None,
            big_ints: BigIntPolicy::Exact,
            non_str_keys: false,
            keys_by_str: false,
            numpy: Choice::Any,
            passed: 0,
        }
    }

    /// Parses the keyword arguments from index `from` on.
    ///
    /// This method changes the options in place, because returning them would copy them.
    #[inline]
    pub(super) fn take(&mut self, args: &Args<'_, '_>, from: usize) -> PyResult<()> {
        match args.any_from(from) {
            true => self.read(args, from),
            false => Ok(()),
        }
    }

    /// Parses the keyword arguments of a function that writes one item per line. The option
    /// `indent` is an error.
    pub(super) fn take_for_items(&mut self, args: &Args<'_, '_>, from: usize) -> PyResult<()> {
        self.take(args, from)?;
        match self.style.indent {
            None => Ok(()),
            Some(_) => Err(PyValueError::new_err(
                "`indent` is only for a value that is written as a whole\nuse `dumps` or `dump`",
            )),
        }
    }

    #[inline(never)]
    fn read(&mut self, args: &Args<'_, '_>, from: usize) -> PyResult<()> {
        let given = |i: usize| args.get(from + i).filter(|object| !object.is_none());
        let flag = |i: usize| given(i).map_or(Ok(false), |object| object.is_truthy());
        if let Some(object) = given(14) {
            let choices = &[("orjson", Compat::Orjson), ("ujson", Compat::Ujson)];
            match choose(object, "compat", choices)? {
                Compat::Orjson => self.begin_as_orjson(),
                Compat::Ujson => self.begin_as_ujson(),
            }
        }
        if let Some(default) = given(0) {
            self.default = Some(Hook::new(default, "default")?);
        }
        self.style.sort_keys = flag(1)?;
        self.style.indent = given(2).map(indent).transpose()?;
        self.style.ensure_ascii = flag(3)?;
        if let Some(object) = given(4) {
            self.style.nan = choose(
                object,
                "nan",
                &[
                    ("error", NonFinite::Error),
                    ("null", NonFinite::Null),
                    ("text", NonFinite::Text),
                    ("literal", NonFinite::Literal),
                ],
            )?;
        }
        if let Some(object) = given(5) {
            const SUPPORTED: &[Policy] =
                &[Policy::Strict, Policy::Replace, Policy::BackslashReplace];
            self.style.surrogates = policy(object, SUPPORTED)?;
        }
        if let Some(object) = given(6) {
            self.big_ints = choose(
                object,
                "big_ints",
                &[
                    ("exact", BigIntPolicy::Exact),
                    ("text53", BigIntPolicy::Text53),
                    ("error", BigIntPolicy::Error),
                    ("error53", BigIntPolicy::Error53),
                ],
            )?;
            self.style.exact_ints =
                matches!(self.big_ints, BigIntPolicy::Exact | BigIntPolicy::Error);
            self.style.text_ints = self.big_ints == BigIntPolicy::Text53;
        }
        self.non_str_keys |= flag(7)?;
        if let Some(object) = given(8) {
            self.style.max_depth = object.extract()?;
        }
        let natives = &mut self.style.natives;
        natives.naive_utc = flag(9)?;
        natives.utc_z = flag(10)?;
        natives.omit_microseconds = flag(11)?;
        if let Some(object) = given(12) {
            self.passed |= choose_many(object, "passthrough", PASSED)?;
        }
        if let Some(object) = given(13) {
            natives.private_fields = object.is_truthy()?;
        }
        self.style.natives = Natives {
            numpy: match self.passes(Passed::Numpy) {
                true => Choice::Left,
                false => self.numpy,
            },
            temporal: !self.passes(Passed::Datetime),
            uuid: !self.passes(Passed::Uuid),
            enums: !self.passes(Passed::Enum),
            dataclasses: !self.passes(Passed::Dataclass),
            subclasses: !self.passes(Passed::Subclass),
            floats: !self.passes(Passed::Float),
            tuples: !self.passes(Passed::Tuple),
            decimals: !self.passes(Passed::Decimal),
            exact_ints: self.style.exact_ints,
            ..self.style.natives
        };
        self.style.scalar_keys = self.non_str_keys && !self.keys_by_str;
        Ok(())
    }

    /// Sets the defaults of orjson. Later arguments override them.
    fn begin_as_orjson(&mut self) {
        self.style.nan = NonFinite::Null;
        self.style.natives.private_fields = false;
        self.style.natives.orjson = true;
        self.numpy = Choice::Orjson;
        self.big_ints = BigIntPolicy::Error;
        self.pass(&[Passed::Decimal, Passed::Float, Passed::Tuple]);
    }

    /// Sets the defaults of ujson, except for NaN.
    fn begin_as_ujson(&mut self) {
        self.style.surrogates = Policy::BackslashReplace;
        self.non_str_keys = true;
        self.keys_by_str = true;
        self.pass(&[
            Passed::Dataclass,
            Passed::Datetime,
            Passed::Uuid,
            Passed::Enum,
        ]);
    }

    fn pass(&mut self, all: &[Passed]) {
        self.passed = all
            .iter()
            .fold(0, |bits, passed| bits | 1 << *passed as u16);
    }

    /// Returns `true` if `passthrough` passes the type `what` to `default`.
    #[inline]
    pub(super) fn passes(&self, what: Passed) -> bool {
        self.passed & 1 << what as u16 != 0
    }
}

/// Parses the option `indent`: a number of spaces, or a string.
fn indent(object: Borrowed<'_, '_, PyAny>) -> PyResult<Vec<u8>> {
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        // A number above `i64::MAX` is too large in any case.
        let n = object.extract::<i64>().unwrap_or(i64::MAX).max(0);
        return match usize::try_from(n) {
            Ok(n) if n <= MOST_INDENT => Ok(vec![b' '; n]),
            _ => Err(too_wide()),
        };
    }
    let blank = text::ascii(object).filter(|u| u.iter().all(|b| b" \t\n\r".contains(b)));
    match blank {
        Some(blank) if blank.len() > MOST_INDENT => Err(too_wide()),
        Some(blank) => Ok(blank.to_vec()),
        None => Err(PyValueError::new_err(
            "`indent` must be a number of blanks, or a str of blanks and tabs",
        )),
    }
}

/// The maximum size of an indent, which limits the memory for nested lists.
const MOST_INDENT: usize = 1000;

fn too_wide() -> PyErr {
    PyValueError::new_err(format!("`indent` is at most {MOST_INDENT} characters"))
}
