//! What a decoder or encoder of a stream is told at its making.

use onecopy_text::Encoding;
use pyo3::prelude::*;

use super::codec::Codec;
use super::legacy;

/// What a stream is told: encoding and error handler.
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
        // A slip in the name is told now, not in the middle of a stream.
        legacy::handler(encoding.py(), &errors_name)?;
        Ok(Named {
            codec,
            errors: errors.map(|e| e.clone().unbind()),
            errors_name,
        })
    }

    /// The name of the encoding.
    pub(super) fn encoding_name(&self) -> &'static str {
        Encoding::from(self.codec).name()
    }

    /// As Python shows an object of `class` that was made of this.
    pub(super) fn repr(&self, class: &str) -> String {
        format!(
            "{class}('{}', '{}')",
            self.encoding_name(),
            self.errors_name
        )
    }
}
