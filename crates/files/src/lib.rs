//! Files. [`AtomicFile`] is a file that gets its name only when it is complete. [`sendfile`] moves
//! bytes between files and sockets in the kernel. [`transcode`] converts files to another encoding.
//!
//! | module | contents |
//! |---|---|
//! | [`atomic_file`] | [`AtomicFile`]: written under a temporary name, synced, then renamed |
//! | [`sendfile`] | moves bytes between files and sockets in the kernel |
//! | [`transcode`] | converts files to another encoding, in constant memory |
//! | [`error`] | the error type of this crate |
//!
//! A process that opens a file by its final name gets either the old file or the complete new one.
//! If a crash ends a write, the incomplete file has a temporary name, `.name.<letters>.partial`.
#![deny(unsafe_code)]

pub mod atomic_file;
pub mod error;
pub mod sendfile;
pub mod transcode;

pub use atomic_file::{AtomicFile, OnFailure};
pub use error::{Action, Error};
