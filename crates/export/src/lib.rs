//! Query results as files: rows in any format, with compression, and a manifest with which the
//! files can be verified. Memory is bounded: rows are written chunk by chunk or batch by batch.
//!
//! | module | contents |
//! |---|---|
//! | [`format`](mod@format) | [`FileFormat`]: the format and compression of a file, by its name |
//! | [`writer`] | [`write_rows`]: the rows of a statement in any format |
//! | [`compress`] | [`Encoder`]: compresses a text format with gzip or Zstandard |
//! | [`file`](mod@file), [`folder`] | [`FileTarget`], [`FolderTarget`]: complete files, and then a manifest |
//! | [`staging`], [`settings`] | [`Staging`]: an export of several parts, by several processes, that can be resumed |
//! | [`manifest`] | [`Manifest`]: the description of the files |
//! | [`verify`](mod@verify) | [`verify()`]: compares files with their manifest |
//! | [`plan`] | divides a statement into parts that can be exported separately |
//! | [`observer`] | [`Observer`]: receives the progress of an export, and can stop it |
//! | [`error`] | [`Error`] |
//!
//! The other modules use `counted`, `arrow_array`, `count` and `json`. Only `arrow_array` contains
//! `unsafe` code.
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
