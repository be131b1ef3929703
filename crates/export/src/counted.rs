//! [`CountedWrite`]: a writer that counts and hashes the bytes of a file, and keeps the first
//! error.

use std::io::{self, Write};

/// A writer that passes bytes on to `out`, counts them, and hashes them if requested.
///
/// Encoders wrap the error of their destination in an error of their own, and some write their
/// final bytes when they are dropped. So this writer keeps the first error of the destination for
/// [`CountedWrite::take_error`]. After an error or [`CountedWrite::close`], it writes nothing.
pub(crate) struct CountedWrite<'o> {
    out: &'o mut (dyn Write + Send),
    hasher: Option<blake3::Hasher>,
    n_bytes: u64,
    error: Option<io::Error>,
    is_closed: bool,
}

impl<'o> CountedWrite<'o> {
    /// Creates a writer that passes bytes on to `out`. If `hashed` is `true`, the writer also
    /// computes the BLAKE3 hash of the bytes.
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

    /// Returns the BLAKE3 hash of the bytes written so far; `None` if they are not hashed.
    pub(crate) fn hash(&self) -> Option<blake3::Hash> {
        self.hasher.as_ref().map(blake3::Hasher::finalize)
    }

    /// Makes all further writes fail. An encoder that is dropped after this call can therefore not
    /// write the end of the file, which would make a truncated output look complete.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns the first error of the destination, and removes it from this writer.
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
