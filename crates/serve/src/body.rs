//! Bodies that somebody else owns: bytes held until they are sent, files.

use std::fmt;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Bytes of somebody else's object (a Python `bytes`), sent from where they lie and given back when the kernel has them all.
pub struct Held {
    owner: Box<dyn AsRef<[u8]> + Send + Sync>,
    len: usize,
}

impl Held {
    /// All bytes of `owner`, which stay where they are for as long as it lives.
    #[must_use]
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Held {
        Held {
            len: owner.as_ref().len(),
            owner: Box::new(owner),
        }
    }

    /// Leaves out what stands behind the first `len` bytes.
    pub fn cut(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[..self.len]
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

/// A part of a file, which the kernel moves to the socket (sendfile(2)).
pub struct FileBody {
    file: Arc<dyn AsFd + Send + Sync>,
    pub(crate) offset: u64,
    pub(crate) n_bytes: usize,
}

impl FileBody {
    /// `n_bytes` from `offset` on, whatever the position of `file`, which is held until they are sent. A file that has become
    /// shorter by then breaks the answer off.
    #[must_use]
    pub fn new(file: impl AsFd + Send + Sync + 'static, offset: u64, n_bytes: usize) -> FileBody {
        FileBody {
            file: Arc::new(file),
            offset,
            n_bytes,
        }
    }

    /// Bytes of it.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.n_bytes
    }

    /// `n_bytes` of it, from its byte `first` on; what would lie behind its end is left out. The file stays open for both.
    #[must_use]
    pub fn part(&self, first: usize, n_bytes: usize) -> FileBody {
        let first = first.min(self.n_bytes);
        FileBody {
            file: Arc::clone(&self.file),
            offset: self.offset + first as u64,
            n_bytes: n_bytes.min(self.n_bytes - first),
        }
    }

    /// Where it begins in its file, in bytes.
    #[must_use]
    pub fn offset_bytes(&self) -> u64 {
        self.offset
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn cut(&mut self, len: usize) {
        self.n_bytes = self.n_bytes.min(len);
    }
}

impl AsFd for FileBody {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

impl fmt::Debug for FileBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of a file from {}", self.n_bytes, self.offset)
    }
}

/// A piece of a body that is several.
#[derive(Debug)]
pub enum Piece {
    /// A few bytes, copied behind what was put before them.
    Bytes(Vec<u8>),
    /// A part of a file.
    File(FileBody),
}

impl Piece {
    pub(crate) fn len_bytes(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::File(file) => file.n_bytes,
        }
    }

    pub(crate) fn cut(&mut self, len: usize) {
        match self {
            Piece::Bytes(bytes) => bytes.truncate(len),
            Piece::File(file) => file.cut(len),
        }
    }
}
