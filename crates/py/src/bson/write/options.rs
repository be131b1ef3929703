//! The keywords of the functions that write BSON.

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

/// The parameter names of a function that writes BSON. Their order is that of
/// [`BsonWriteOptions::take`].
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

/// The Python signature of a function that writes BSON.
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

/// The option `datetime_range`: datetimes outside of the years 1 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Error,
    /// Writes the nearest millisecond of the years 1 to 9999.
    Clamp,
    /// Writes the milliseconds unchanged.
    Raw,
}

/// The types that the option `passthrough` can select.
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

/// The default of the option `max_depth`.
const MAX_DEPTH: usize = 1000;

/// The validated options of one call.
#[derive(Debug)]
pub(super) struct BsonWriteOptions {
    pub(super) style: Style,
    pub(super) default: Option<Hook>,
    pub(super) range: Range,
    /// A bit set of [`Passed`].
    pub(super) passed: u16,
}

impl BsonWriteOptions {
    /// Returns the default options.
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

    /// Parses the keyword arguments of a call. The first one has the index `from`.
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

    /// Returns `true` if `default` receives objects of this type.
    #[inline]
    pub(super) fn passes(&self, what: Passed) -> bool {
        self.passed & 1 << what as u16 != 0
    }
}
