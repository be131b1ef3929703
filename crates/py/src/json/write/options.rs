//! The keywords that all functions that write JSON share.

use onecopy_wire::NonFinite;
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use crate::keywords::{Hook, choose, choose_many};
use crate::raw::method::Args;
use crate::raw::ndarray::Choice;
use crate::raw::text;
use crate::raw::walk::{Natives, Style, Surrogates};

/// Names of the keywords, in the order in which [`Options::take`] reads them.
macro_rules! with_options {
    ($($first:literal),*) => {
        &[
            $($first,)*
            "default", "sort_keys", "indent", "ensure_ascii", "nan", "surrogates", "big_ints", "non_str_keys",
            "max_depth", "naive_utc", "utc_z", "omit_microseconds", "passthrough", "private_fields", "compat",
        ]
    };
}
pub(super) use with_options;

/// The keywords as a signature has them.
macro_rules! options_signature {
    ($first:literal) => {
        concat!(
            "(", $first, ", default=None, sort_keys=False, indent=None, ensure_ascii=False, nan='error', ",
            "surrogates='error', big_ints='exact', non_str_keys=False, max_depth=1000, naive_utc=False, ",
            "utc_z=False, omit_microseconds=False, passthrough=(), private_fields=True, compat=None)"
        )
    };
}
pub(super) use options_signature;

/// What to do with an `int` that others may not read exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BigInts {
    /// Write all digits, of any size.
    Exact,
    /// Write a string of its digits past 53 bits, which is what a reader that has nothing but doubles takes.
    Text,
    /// Fail past 64 bits.
    Error,
    /// Fail past 53 bits.
    Strict,
}

/// A library whose classes, keys and defaults are those of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compat {
    Orjson,
    Ujson,
}

/// How objects that are none of CPython's own types are written.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) style: Style,
    pub(crate) default: Option<Hook>,
    pub(crate) big_ints: BigInts,
    pub(crate) non_str_keys: bool,
    /// Keys of any type are written as `str()` returns them, and sorted before that, as by ujson.
    pub(super) keys_by_str: bool,
    /// How NumPy's objects are written, and which of them, if they are not left to `default`.
    pub(super) numpy: Choice,
    /// A bit for each [`Passed`] that is left to `default`.
    passed: u16,
}

/// Objects that have a form in JSON, and can be left to `default` all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Dataclass,
    Datetime,
    Decimal,
    Enum,
    /// Classes derived from `float`.
    Float,
    Numpy,
    /// Classes derived from any of CPython's own types.
    Subclass,
    /// Classes derived from `tuple`, named ones too.
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

/// Levels of containers unless asked otherwise.
const MAX_DEPTH: usize = 1000;

impl Options {
    /// What is written where nothing is asked for.
    #[inline]
    pub(super) fn new() -> Options {
        Options {
            style: Style {
                sort_keys: false,
                indent: None,
                ensure_ascii: false,
                surrogates: Surrogates::Error,
                nan: NonFinite::Error,
                exact_ints: true,
                text_ints: false,
                max_depth: MAX_DEPTH,
                natives: Natives::ALL,
            },
            default: None,
            big_ints: BigInts::Exact,
            non_str_keys: false,
            keys_by_str: false,
            numpy: Choice::Any,
            passed: 0,
        }
    }

    /// Takes the keywords of a call, which stand from `from` on among its parameters.
    ///
    /// They stay where they are: to be moved just behind their making waits for each of its stores (7 ns).
    #[inline]
    pub(super) fn take(&mut self, args: &Args<'_, '_>, from: usize) -> PyResult<()> {
        match args.any_from(from) {
            true => self.read(args, from),
            false => Ok(()),
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
            self.style.surrogates = choose(
                object,
                "surrogates",
                &[
                    ("error", Surrogates::Error),
                    ("replace", Surrogates::Replace),
                    ("escape", Surrogates::Escape),
                ],
            )?;
        }
        if let Some(object) = given(6) {
            self.big_ints = choose(
                object,
                "big_ints",
                &[
                    ("exact", BigInts::Exact),
                    ("text", BigInts::Text),
                    ("error", BigInts::Error),
                    ("strict", BigInts::Strict),
                ],
            )?;
            self.style.exact_ints = matches!(self.big_ints, BigInts::Exact | BigInts::Error);
            self.style.text_ints = self.big_ints == BigInts::Text;
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
        Ok(())
    }

    /// The defaults of orjson; the other keywords come on top.
    fn begin_as_orjson(&mut self) {
        self.style.nan = NonFinite::Null;
        self.style.natives.private_fields = false;
        self.style.natives.orjson = true;
        self.numpy = Choice::Orjson;
        self.big_ints = BigInts::Error;
        self.pass(&[Passed::Decimal, Passed::Float, Passed::Tuple]);
    }

    /// The defaults of ujson, but for NaN.
    fn begin_as_ujson(&mut self) {
        self.style.surrogates = Surrogates::Escape;
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

    /// Whether such objects are left to `default`.
    #[inline]
    pub(super) fn passes(&self, what: Passed) -> bool {
        self.passed & 1 << what as u16 != 0
    }
}

/// What each level is moved in by: as many blanks, or the text itself.
fn indent(object: Borrowed<'_, '_, PyAny>) -> PyResult<Vec<u8>> {
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        // Below zero: as zero. What does not fit is too much.
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

/// Characters that a level is indented by at most: a nested list would take any memory otherwise.
const MOST_INDENT: usize = 1000;

fn too_wide() -> PyErr {
    PyValueError::new_err(format!("`indent` is at most {MOST_INDENT} characters"))
}
