//! Query results as files: rows in any format, with compression, and a manifest by which the files
//! can be verified. Memory is bounded: rows are written chunk by chunk or batch by batch.
//!
//! | module | contents |
//! |---|---|
//! | [`format`](mod@format) | [`FileFormat`]: the format and compression that an ending determines |
//! | [`writer`] | [`write_rows`]: the rows of a statement in any format |
//! | [`compress`] | [`Encoder`]: gzip and Zstandard around a text format |
//! | [`file`], [`folder`] | [`FileTarget`], [`FolderTarget`]: files that appear complete, manifest last |
//! | [`staging`], [`settings`] | [`Staging`]: an export of several parts, by several processes, that can be resumed |
//! | [`manifest`] | [`Manifest`]: the description of the files |
//! | [`verify`](mod@verify) | [`verify()`]: compares files with their manifest |
//! | [`plan`] | parts of a statement as data |
//! | [`observer`] | [`Observer`]: progress, and the end of an export that is stopped |
//! | [`error`] | [`Error`] |
//!
//! The modules `counted`, `arrow_array`, `count` and `json` are used by these. `arrow_array` is
//! the only one with `unsafe`.
#![deny(unsafe_code)]

mod arrow_array;
pub mod compress;
mod count;
mod counted;
pub mod error;
pub mod file;
pub mod folder;
pub mod format;
mod json;
pub mod manifest;
pub mod observer;
pub mod plan;
pub mod settings;
pub mod staging;
pub mod verify;
pub mod writer;

pub use compress::Encoder;
pub use error::Error;
pub use file::{FileTarget, IfExists};
pub use folder::FolderTarget;
pub use format::{Compression, FileFormat, Format};
pub use manifest::{FileEntry, Manifest};
pub use observer::Observer;
pub use settings::Settings;
pub use staging::{Begin, StagedPart, Staging};
pub use verify::{Report, verify};
pub use writer::{RowOptions, Written, write_rows};
