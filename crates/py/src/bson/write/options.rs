//! `BsonWriteOptions`: the keywords of the functions that write BSON.

use onecopy_text::Policy;
use onecopy_wire::bson::MOST_BYTES;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::choice::policy;
use crate::keywords::{Hook, choose, choose_many};
use crate::raw::encode::Natives;
use crate::raw::encode::bson::{Style, UuidForm};
use crate::raw::function::Args;
use crate::raw::ndarray::Choice;

/// The parameter names of a function that writes BSON: the `$first` names, and then the options in
/// the order in which [`BsonWriteOptions::take`] parses them.
macro_rules! with_options {
    ($($first:literal),*) => {
        &[
            $($first,)*
            "default", "check_keys", "uuid_representation", "errors", "datetime_range", "max_depth", "max_bytes",
            "passthrough",
        ]
    };
}
pub(super) use with_options;

/// The parameters of a function that writes BSON, as a Python signature. `$first` contains the
/// parameters before the options.
macro_rules! options_signature {
    ($first:literal) => {
        concat!(
            "(",
            $first,
            ", default=None, check_keys=False, uuid_representation='standard', errors='strict', ",
            "datetime_range='error', max_depth=1000, max_bytes=2147483647, passthrough=())"
        )
    };
}
pub(super) use options_signature;

/// The treatment of datetimes outside of the years 1 to 9999 in UTC (option `datetime_range`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Error,
    /// The datetime is replaced with the first or last millisecond of the years 1 to 9999.
    Clamp,
    /// The milliseconds of the datetime are written unchanged.
    Raw,
}

/// The types that the option `passthrough` can select. Their objects are passed to `default`,
/// although BSON can represent them.
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

/// The default of the option `max_depth`, which limits the depth of nested containers.
const MAX_DEPTH: usize = 1000;

/// The validated options of one call to a function that writes BSON.
#[derive(Debug)]
pub(super) struct BsonWriteOptions {
    pub(super) style: Style,
    pub(super) default: Option<Hook>,
    pub(super) range: Range,
    /// The types whose objects are passed to `default`, as a bit set with one bit for each variant
    /// of [`Passed`].
    pub(super) passed: u16,
}

impl BsonWriteOptions {
    /// Returns the options of a call without keyword arguments.
    #[inline]
    pub(super) fn new() -> BsonWriteOptions {
        BsonWriteOptions {
            style: Style {
                check_keys: false,
                surrogates: Policy::Strict,
                max_depth: MAX_DEPTH,
                max_bytes: MOST_BYTES,
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

    /// Parses the keyword arguments of a call. `from` is the index of the first parameter that is a
    /// keyword argument; all later parameters are keyword arguments too.
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
            self.style.surrogates = policy(object, &Policy::BASIC)?;
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
            self.style.max_bytes = object.extract()?;
            if self.style.max_bytes > MOST_BYTES {
                return Err(PyValueError::new_err(
                    "`max_bytes` must be at most 2147483647: BSON's lengths have 32 bits",
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

    /// Returns `true` if the option `passthrough` passes objects of the type `what` to `default`.
    #[inline]
    pub(super) fn passes(&self, what: Passed) -> bool {
        self.passed & 1 << what as u16 != 0
    }
}
