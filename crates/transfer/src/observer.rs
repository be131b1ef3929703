//! [`Observer`] and [`Summary`]: the progress and the result of a transfer.

use std::path::Path;

/// A phase of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The sender examines the files to send.
    Looking,
    /// The files are being transferred.
    Moving {
        /// The total size of all files in bytes.
        n_bytes: u64,
        /// The number of bytes that are not sent again, because the receiver already has them from
        /// an earlier transfer.
        n_present: u64,
    },
    /// The receiver syncs the files to disk.
    Syncing,
}

/// Receives progress reports, and can stop the transfer.
pub trait Observer {
    /// Called when a phase begins.
    fn phase(&mut self, _phase: Phase) {}
    /// Called with the number of bytes that were sent or received since the last call. In
    /// [`Phase::Looking`], called once for each file that the search has found, with the file's
    /// size.
    fn bytes(&mut self, _n_bytes: u64) {}
    /// Called when a file is complete. `_hash` is the hash of the file; `None` if the transfer does
    /// not hash files.
    fn file(&mut self, _path: &str, _hash: Option<[u8; 32]>) {}
    /// Called for each file that is not sent, because it is a symbolic link or not a regular file.
    /// `_what` is this reason, as a phrase for the user.
    fn left_out(&mut self, _path: &Path, _what: &str) {}
    /// Returns `true` to stop the transfer. It is called before each file, block or message.
    fn stops(&self) -> bool {
        false
    }
}

/// An observer that does nothing.
impl Observer for () {}

/// The result of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of files, not counting folders.
    pub n_files: u64,
    /// The total size of all files in bytes.
    pub n_bytes: u64,
    /// The number of bytes that this transfer moved. An earlier, interrupted transfer may have
    /// moved other bytes of the files.
    pub n_moved: u64,
    /// The number of transferred bytes that were copied through a buffer of this process.
    pub n_copied: u64,
    /// `true` if the files were hashed.
    pub hashed: bool,
}
