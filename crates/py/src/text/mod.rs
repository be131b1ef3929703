//! `onecopy.text`: converts between bytes in buffers and `str`.
//!
//! | module | contents |
//! |---|---|
//! | `cell` | fast paths for short texts |
//! | `codec` | the encodings, and their names |
//! | `decode` | decodes a buffer to a `str` |
//! | `direct` | declares functions for one encoding each |
//! | `encode` | encodes a `str` to `bytes` or into a buffer |
//! | `inspect` | validation of text; views of existing UTF-8 |
//! | `legacy` | the encodings of the WHATWG Encoding Standard |
//! | `decoder`, `encoder` | decode and encode a stream, part by part |
//! | `legacy_stream` | streams in the encodings of the WHATWG Encoding Standard |
//! | `named` | the encoding and the error handler of a stream |
//! | `transcode` | converts one encoding to another, between buffers and files |
//! | `column` | decodes columns with cells at a fixed distance |
//!
//! CPython's codecs decode and encode only malformed text, and text that requires an error handler.
//! Therefore exceptions, positions and replacements are the same as in CPython.

mod cell;
mod codec;
mod column;
mod decode;
mod decoder;
mod direct;
mod encode;
mod encoder;
mod inspect;
mod legacy;
mod legacy_stream;
mod named;
mod transcode;

use pyo3::prelude::*;

/// Adds all functions and classes of `onecopy.text` to the extension module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    decode::add(module)?;
    encode::add(module)?;
    inspect::add(module)?;
    decoder::add(module)?;
    encoder::add(module)?;
    transcode::add(module)?;
    column::add(module)
}
