//! How far it is, told to whoever shows it.

use std::path::Path;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The sender looks at what there is to send.
    Looking,
    /// Bytes are on their way: so many in all, of which so many are there already.
    Moving {
        /// All of them.
        n_bytes: u64,
        /// From an earlier run.
        n_present: u64,
    },
    /// The disk is waited for.
    Syncing,
}

/// Somebody who is told, and may say stop.
pub trait Watch {
    /// A phase begins.
    fn phase(&mut self, _phase: Phase) {}
    /// So many bytes more: sent or received, or in [`Phase::Looking`] found.
    fn bytes(&mut self, _n_bytes: u64) {}
    /// A file is whole, with its hash where there is one.
    fn file(&mut self, _path: &str, _hash: Option<[u8; 32]>) {}
    /// Something is not sent: a symbolic link, a device.
    fn left_out(&mut self, _path: &Path, _what: &str) {}
    /// Whether to stop.
    fn stops(&self) -> bool {
        false
    }
}

/// Nobody.
impl Watch for () {}

/// What a transfer came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files, without folders.
    pub n_files: u64,
    /// Bytes of all files.
    pub n_bytes: u64,
    /// Bytes that went over the wire this time.
    pub n_moved: u64,
    /// Of these, bytes that went through a buffer of this process.
    pub n_copied: u64,
    /// Whether they were hashed.
    pub hashed: bool,
}
