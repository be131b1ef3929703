//! The encoding and error handler of a `Decoder` or `Encoder`.

use onecopy_text::Encoding;
use pyo3::prelude::*;

use super::codec::Codec;
use super::legacy;

pub(super) struct Named {
    pub(super) codec: Codec,
    pub(super) errors: Option<Py<PyAny>>,
    pub(super) errors_name: String,
}

impl Named {
    pub(super) fn parse(
        encoding: &Bound<'_, PyAny>,
        errors: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Named> {
        let codec = Codec::of(encoding.as_borrowed())?;
        let errors_name = legacy::handler_name(errors.map(|e| e.as_borrowed()))?;
        // An unknown handler is an error even if no text is malformed.
        legacy::handler(encoding.py(), &errors_name)?;
        Ok(Named {
            codec,
            errors: errors.map(|e| e.clone().unbind()),
            errors_name,
        })
    }

    pub(super) fn encoding_name(&self) -> &'static str {
        Encoding::from(self.codec).name()
    }

    /// Returns the `repr` of a `Decoder` or `Encoder`. `class` is the name of the class.
    pub(super) fn repr(&self, class: &str) -> String {
        format!(
            "{class}('{}', '{}')",
            self.encoding_name(),
            self.errors_name
        )
    }
}
