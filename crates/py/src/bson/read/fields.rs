//! The fields of a raw document: found by their keys, and made.

use onecopy_text::convert::{self, Kernels, Work};
use onecopy_text::{Policy, Tally, Units};
use onecopy_wire::bson::read::{Element, Elements, ReadError, Reason, malformed, read, read_value};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::build::Build;
use super::decode::Failed;
use super::document::Parent;
use super::options::Given;
use crate::raw::codecs;
use crate::raw::text::{self, MakeError};

/// The key of an element as a `str`.
pub(super) fn key<'py>(
    py: Python<'py>,
    element: &Element<'_>,
    options: &Given<'py>,
) -> Result<Bound<'py, PyAny>, Failed> {
    let units = Units::Utf8(element.key);
    match text::make(py, units, Policy::Strict, &mut Tally::default()) {
        Ok(made) => Ok(made),
        Err(MakeError::Python(e)) => Err(Failed::Python(e)),
        Err(MakeError::Malformed(_)) => match &options.on_invalid_utf8 {
            Some(handler) => {
                let handler = Some(handler.as_borrowed());
                Ok(codecs::decode(py, element.key, c"utf-8", handler)?)
            }
            None => {
                let refusal = malformed(element.key);
                Err(read_failed(
                    refusal.reason,
                    element.at + 1 + refusal.at_bytes,
                ))
            }
        },
    }
}

pub(super) fn read_failed(reason: Reason, offset_bytes: usize) -> Failed {
    Failed::Read(ReadError {
        reason,
        offset_bytes,
    })
}

/// The last element with a key: all are looked at, so that it is the one that `decode` keeps.
#[inline]
pub(super) fn find<'a>(document: &'a [u8], key: &[u8]) -> Result<Option<Element<'a>>, Failed> {
    let mut elements = Elements::of(document).map_err(Failed::Read)?;
    let mut found = None;
    while let Some(element) = elements.next_element().map_err(Failed::Read)? {
        if element.key == key {
            found = Some(element);
        }
    }
    Ok(found)
}

/// The element of an array with this number.
pub(super) fn item<'a>(array: &'a [u8], number: &[u8]) -> Result<Option<Element<'a>>, Failed> {
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(number).ok().filter(|_| is_number);
    let Some(mut left) = number.and_then(|digits| digits.parse::<usize>().ok()) else {
        return Ok(None);
    };
    let mut elements = Elements::of(array).map_err(Failed::Read)?;
    while let Some(element) = elements.next_element().map_err(Failed::Read)? {
        if left == 0 {
            return Ok(Some(element));
        }
        left -= 1;
    }
    Ok(None)
}

/// Does something with the UTF-8 of a `str`; of what has none, or is none, no key is.
#[inline(always)]
pub(super) fn with_utf8<R: Default>(
    key: &Bound<'_, PyAny>,
    run: impl FnOnce(&[u8]) -> PyResult<R>,
) -> PyResult<R> {
    let Ok(key) = key.cast::<PyString>() else {
        return Ok(R::default());
    };
    match text::units(key.as_borrowed())? {
        Units::Utf8(key) => run(key),
        units => {
            let mut utf8 = Vec::new();
            match convert::to_utf8(units, Policy::Strict, &mut utf8) {
                Ok(_) => run(&utf8),
                Err(_) => Ok(R::default()),
            }
        }
    }
}

/// What of a document is to be made.
pub(super) enum Part<'a> {
    Value(&'a Element<'a>),
    All,
}

/// Something of a document that is to be made.
pub(super) struct Value<'a, 'py> {
    pub(super) py: Python<'py>,
    pub(super) document: &'a [u8],
    pub(super) part: Part<'a>,
    pub(super) options: &'a Given<'py>,
    pub(super) parent: Parent<'a>,
    pub(super) tally: Option<&'a mut Tally>,
}

impl<'py> Work for Value<'_, 'py> {
    type Output = Result<Bound<'py, PyAny>, Failed>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut build = Build::new(self.py, kernels, self.options, self.tally);
        build.keep_raw(self.parent);
        let (document, rules) = (self.document, self.options.rules);
        let told = match self.part {
            Part::Value(element) => read_value(kernels, document, element, rules, &mut build),
            Part::All => read(kernels, document, rules, &mut build).map(drop),
        };
        match told {
            Ok(()) => Ok(build.finish()),
            Err(e) => Err(match build.error.take() {
                Some(e) => Failed::Python(e),
                None => Failed::Read(e),
            }),
        }
    }
}
