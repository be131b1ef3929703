//! Files that appear whole or not at all.
//!
//! | module | what it holds |
//! |---|---|
//! | [`atomic_file`] | [`AtomicFile`]: written under a temporary name, synced, then renamed |
//! | [`moving`] | bytes that the kernel moves between files and sockets |
//! | [`transcode`] | files in one encoding to files in another, in constant memory |
//! | [`error`] | the one error type of this room |
//!
//! A file that is being written is never seen under its name: a reader sees the old one or the new one. What a crash
//! leaves behind has a temporary name, `.name.<letters>.partial`.
#![deny(unsafe_code)]

pub mod atomic_file;
pub mod error;
pub mod moving;
pub mod transcode;

pub use atomic_file::{AtomicFile, OnFailure};
pub use error::{Action, Error};
