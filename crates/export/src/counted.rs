//! [`CountedWrite`]: a writer that counts and hashes the bytes of a file, and keeps the first
//! error.

use std::io::{self, Write};

/// A writer that passes bytes on, and counts and hashes them.
///
/// Encoders convert the error of their destination to errors of their own, and some write their
/// final bytes when they are dropped. So this writer keeps the first error until
/// [`CountedWrite::take_error`], and writes nothing after an error or after
/// [`CountedWrite::close`].
pub(crate) struct CountedWrite<'o> {
    out: &'o mut (dyn Write + Send),
    hasher: Option<blake3::Hasher>,
    n_bytes: u64,
    error: Option<io::Error>,
    is_closed: bool,
}

impl<'o> CountedWrite<'o> {
    /// Creates a writer to `out`, with a hash of the bytes if `hashed`.
    pub(crate) fn new(out: &'o mut (dyn Write + Send), hashed: bool) -> CountedWrite<'o> {
        CountedWrite {
            out,
            hasher: hashed.then(blake3::Hasher::new),
            n_bytes: 0,
            error: None,
            is_closed: false,
        }
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Returns the BLAKE3 hash of the bytes; `None` if they were not hashed.
    pub(crate) fn hash(&self) -> Option<blake3::Hash> {
        self.hasher.as_ref().map(blake3::Hasher::finalize)
    }

    /// Refuses all further bytes, so that the end of a file that an encoder writes when it is
    /// dropped does not make a truncated output look complete.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns the first error of the destination.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

impl Write for CountedWrite<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match self.out.write(bytes) {
            Ok(n) => {
                if let Some(hasher) = &mut self.hasher {
                    hasher.update(&bytes[..n]);
                }
                self.n_bytes += n as u64;
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.is_closed = true;
                let kind = error.kind();
                self.error = Some(error);
                Err(kind.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
