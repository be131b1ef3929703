//! `onecopy.text`: text between buffers and `str`.
//!
//! | module | what it holds |
//! |---|---|
//! | `cell` | short texts |
//! | `codec` | the encodings by their names |
//! | `decode` | buffer to `str` |
//! | `direct` | functions for one encoding each |
//! | `encode` | `str` to `bytes` or into a buffer |
//! | `look` | whether text is well-formed; views of UTF-8 that stands already |
//! | `legacy` | the encodings of the WHATWG Encoding Standard |
//! | `decoder`, `encoder` | a stream to `str` and back, part by part |
//! | `legacy_stream` | the same for the encodings of the WHATWG Encoding Standard |
//! | `named` | the encoding and the error handler of one |
//! | `transcode` | one encoding to another, between buffers and files |
//! | `column` | columns of fixed stride to lists |
//!
//! Well-formed text never meets CPython's codecs. What is malformed, or asks for an error handler, is handed to them with
//! the name of the handler: their exceptions, positions and replacements are then ours by construction.

mod cell;
mod codec;
mod column;
mod decode;
mod decoder;
mod direct;
mod encode;
mod encoder;
mod legacy;
mod legacy_stream;
mod look;
mod named;
mod transcode;

use pyo3::prelude::*;

/// Adds all functions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    decode::add(module)?;
    encode::add(module)?;
    look::add(module)?;
    decoder::add(module)?;
    encoder::add(module)?;
    transcode::add(module)?;
    column::add(module)
}
