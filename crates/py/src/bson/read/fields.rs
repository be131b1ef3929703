//! Finds the fields of a raw document by key and decodes them.

use onecopy_text::convert::{self, Kernels, Work};
use onecopy_text::{Policy, Tally, Units};
use onecopy_wire::bson::read::{Element, Elements, malformed, read, read_value};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::build::Build;
use super::failure::{DecodeFailure, read_failed};
use super::options::Given;
use super::raw_document::Parent;
use crate::raw::codecs;
use crate::raw::text::{self, MakeError};

/// Returns the key of a BSON element as a `str`. The caller's error handler replaces a malformed
/// key.
pub(super) fn key<'py>(
    py: Python<'py>,
    element: &Element<'_>,
    options: &Given<'py>,
) -> Result<Bound<'py, PyAny>, DecodeFailure> {
    let units = Units::Utf8(element.key);
    match text::make(py, units, Policy::Strict, &mut Tally::default()) {
        Ok(made) => Ok(made),
        Err(MakeError::Python(e)) => Err(DecodeFailure::Python(e)),
        Err(MakeError::Malformed(_)) => match &options.errors {
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

/// Returns the last element with the key `key`, as `decode` does.
#[inline]
pub(super) fn find<'a>(
    document: &'a [u8],
    key: &[u8],
) -> Result<Option<Element<'a>>, DecodeFailure> {
    let mut elements = Elements::of(document).map_err(DecodeFailure::Read)?;
    let mut found = None;
    while let Some(element) = elements.next_element().map_err(DecodeFailure::Read)? {
        if element.key == key {
            found = Some(element);
        }
    }
    Ok(found)
}

/// Returns the array element at the index `number`, a string of ASCII digits.
pub(super) fn item<'a>(
    array: &'a [u8],
    number: &[u8],
) -> Result<Option<Element<'a>>, DecodeFailure> {
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let number = str::from_utf8(number).ok().filter(|_| is_number);
    let Some(mut left) = number.and_then(|digits| digits.parse::<usize>().ok()) else {
        return Ok(None);
    };
    let mut elements = Elements::of(array).map_err(DecodeFailure::Read)?;
    while let Some(element) = elements.next_element().map_err(DecodeFailure::Read)? {
        if left == 0 {
            return Ok(Some(element));
        }
        left -= 1;
    }
    Ok(None)
}

/// Calls a function with the UTF-8 of a `str`. Returns the default value for an invalid key.
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

/// The decoded part of a document: one value or all elements.
pub(super) enum DocumentPart<'a> {
    Value(&'a Element<'a>),
    All,
}

/// The arguments for decoding a value or some fields. [`Work::run`] decodes them.
pub(super) struct PartInput<'a, 'py> {
    pub(super) py: Python<'py>,
    pub(super) document: &'a [u8],
    pub(super) part: DocumentPart<'a>,
    pub(super) options: &'a Given<'py>,
    pub(super) parent: Parent<'a>,
    pub(super) tally: Option<&'a mut Tally>,
}

impl<'py> Work for PartInput<'_, 'py> {
    type Output = Result<Bound<'py, PyAny>, DecodeFailure>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut build = Build::new(self.py, kernels, self.options, self.tally);
        build.keep_raw(self.parent);
        let (document, rules) = (self.document, self.options.rules);
        let result = match self.part {
            DocumentPart::Value(element) => {
                read_value(kernels, document, element, rules, &mut build)
            }
            DocumentPart::All => read(kernels, document, rules, &mut build).map(drop),
        };
        match result {
            Ok(()) => Ok(build.finish()),
            Err(e) => Err(match build.error.take() {
                Some(e) => DecodeFailure::Python(e),
                None => DecodeFailure::Read(e),
            }),
        }
    }
}
