//! The keywords that all functions that write BSON share.

use onecopy_wire::bson::MOST_BYTES;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::keywords::{Hook, choose, choose_many};
use crate::raw::method::Args;
use crate::raw::ndarray::Choice;
use crate::raw::walk::Natives;
use crate::raw::walk::bson::{Style, UuidForm};

/// Names of the keywords, in the order in which [`Options::take`] reads them.
macro_rules! with_options {
    ($($first:literal),*) => {
        &[
            $($first,)*
            "default", "check_keys", "uuid_representation", "surrogates", "datetime_range", "max_depth", "max_size",
            "passthrough",
        ]
    };
}
pub(super) use with_options;

/// The keywords as a signature has them.
macro_rules! options_signature {
    ($first:literal) => {
        concat!(
            "(", $first, ", default=None, check_keys=False, uuid_representation='standard', surrogates='error', ",
            "datetime_range='error', max_depth=1000, max_size=2147483647, passthrough=())"
        )
    };
}
pub(super) use options_signature;

/// What becomes of moments that are outside of the years 1 to 9999 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Error,
    /// The first or last moment of those years.
    Clamp,
    /// They are written as they are.
    Raw,
}

/// Objects that have a form in BSON, and can be left to `default` all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    Buffer,
    Dataclass,
    Date,
    Decimal,
    Enum,
    Numpy,
}

impl From<Passed> for u16 {
    fn from(passed: Passed) -> u16 {
        passed as u16
    }
}

const PASSED: &[(&str, Passed)] = &[
    ("buffer", Passed::Buffer),
    ("dataclass", Passed::Dataclass),
    ("date", Passed::Date),
    ("decimal", Passed::Decimal),
    ("enum", Passed::Enum),
    ("numpy", Passed::Numpy),
];

/// Levels of containers unless asked otherwise.
const MAX_DEPTH: usize = 1000;

/// How documents are written.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) style: Style,
    pub(super) default: Option<Hook>,
    pub(super) range: Range,
    /// A bit for each [`Passed`] that is left to `default`.
    passed: u16,
}

impl Options {
    /// What is written where nothing is asked for.
    #[inline]
    pub(super) fn new() -> Options {
        Options {
            style: Style {
                check_keys: false,
                replace: false,
                max_depth: MAX_DEPTH,
                max_size: MOST_BYTES,
                uuid: UuidForm::Standard,
                natives: Natives {
                    marked: false,
                    ..Natives::ALL
                },
            },
            default: None,
            range: Range::Error,
            passed: 0,
        }
    }

    /// Takes the keywords of a call, which stand from `from` on among its parameters.
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
        if let Some(object) = given(0) {
            self.default = Some(Hook::new(object, "default")?);
        }
        if let Some(object) = given(1) {
            self.style.check_keys = object.is_truthy()?;
        }
        if let Some(object) = given(2) {
            self.style.uuid = choose(
                object,
                "uuid_representation",
                &[
                    ("standard", UuidForm::Standard),
                    ("python_legacy", UuidForm::PythonLegacy),
                    ("java_legacy", UuidForm::JavaLegacy),
                    ("csharp_legacy", UuidForm::CsharpLegacy),
                    ("unspecified", UuidForm::Unspecified),
                ],
            )?;
        }
        if let Some(object) = given(3) {
            let choices = [("error", false), ("replace", true)];
            self.style.replace = choose(object, "surrogates", &choices)?;
        }
        if let Some(object) = given(4) {
            self.range = choose(
                object,
                "datetime_range",
                &[
                    ("error", Range::Error),
                    ("clamp", Range::Clamp),
                    ("raw", Range::Raw),
                ],
            )?;
        }
        if let Some(object) = given(5) {
            self.style.max_depth = object.extract()?;
        }
        if let Some(object) = given(6) {
            self.style.max_size = object.extract()?;
            if self.style.max_size > MOST_BYTES {
                return Err(PyValueError::new_err(
                    "`max_size` must be at most 2147483647: BSON's lengths have 32 bits",
                ));
            }
        }
        if let Some(object) = given(7) {
            self.passed = choose_many(object, "passthrough", PASSED)?;
            self.style.natives = Natives {
                temporal: !self.passes(Passed::Date),
                enums: !self.passes(Passed::Enum),
                dataclasses: !self.passes(Passed::Dataclass),
                numpy: match self.passes(Passed::Numpy) {
                    true => Choice::Left,
                    false => Choice::Any,
                },
                ..self.style.natives
            };
        }
        Ok(())
    }

    /// Whether such objects are left to `default`.
    #[inline]
    pub(super) fn passes(&self, what: Passed) -> bool {
        self.passed & 1 << what as u16 != 0
    }
}
