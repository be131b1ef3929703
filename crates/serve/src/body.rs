//! [`SharedBytes`] and [`FileBody`]: response bodies that are sent without a copy in this process,
//! from the memory of another object or from a file.

use std::fmt;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Bytes in the memory of another object (such as a Python `bytes`), from which the kernel reads
/// them directly. The object is released when the kernel has accepted all bytes.
pub struct SharedBytes {
    owner: Box<dyn AsRef<[u8]> + Send + Sync>,
    len: usize,
}

impl SharedBytes {
    /// Shares all bytes of `owner`. The bytes must stay at the same address as long as `owner`
    /// exists.
    #[must_use]
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> SharedBytes {
        SharedBytes {
            len: owner.as_ref().len(),
            owner: Box::new(owner),
        }
    }

    /// Shortens the body to its first `len` bytes.
    pub fn cut(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[..self.len]
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

/// A range of a file, as the complete body or a part of the body of a response. The kernel copies
/// the range to the socket (sendfile(2)).
pub struct FileBody {
    file: Arc<dyn AsFd + Send + Sync>,
    pub(crate) offset: u64,
    pub(crate) n_bytes: usize,
}

impl FileBody {
    /// Creates a body of `n_bytes` bytes of `file`, beginning at `offset`. The current position of
    /// the file is not used. The file stays open until the bytes are sent. If the file is truncated
    /// before that, the response is aborted.
    #[must_use]
    pub fn new(file: impl AsFd + Send + Sync + 'static, offset: u64, n_bytes: usize) -> FileBody {
        FileBody {
            file: Arc::new(file),
            offset,
            n_bytes,
        }
    }

    /// Returns the number of bytes in the range.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns the part of this body that starts at its byte `first` and has `n_bytes` bytes, or
    /// fewer if the body ends earlier. The file stays open until this body and the part are
    /// dropped.
    #[must_use]
    pub fn part(&self, first: usize, n_bytes: usize) -> FileBody {
        let first = first.min(self.n_bytes);
        FileBody {
            file: Arc::clone(&self.file),
            offset: self.offset + first as u64,
            n_bytes: n_bytes.min(self.n_bytes - first),
        }
    }

    /// Returns the offset in the file at which the range starts.
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

/// One part of a response body that consists of bytes and ranges of files
/// ([`crate::Body::Pieces`]).
#[derive(Debug)]
pub enum BodyPart {
    /// Bytes in memory. They are copied to the output queue, so they should be few.
    Bytes(Vec<u8>),
    /// A range of a file.
    File(FileBody),
}

impl BodyPart {
    pub(crate) fn len_bytes(&self) -> usize {
        match self {
            BodyPart::Bytes(bytes) => bytes.len(),
            BodyPart::File(file) => file.n_bytes,
        }
    }

    pub(crate) fn cut(&mut self, len: usize) {
        match self {
            BodyPart::Bytes(bytes) => bytes.truncate(len),
            BodyPart::File(file) => file.cut(len),
        }
    }
}
