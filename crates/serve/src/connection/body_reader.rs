//! [`BodyReader`]: the state of a request body while it is received.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use onecopy_text::{ByteSink, Chunk};
use onecopy_wire::http::{BodyChunk, ChunkedReader, HeadIndex};

use super::exchange::Exchange;
use crate::awaited::{BodyError, BodyRequest};
use crate::request::RequestBody;

/// A request whose head is complete and whose body is being read.
pub(super) struct BodyReader {
    pub(super) then: BodyReceiver,
    pub(super) exchange: Exchange,
    pub(super) coding: BodyCoding,
    pub(super) body: BodyStorage,
    pub(super) complete: bool,
}

/// The receiver of a complete request body.
pub(super) enum BodyReceiver {
    /// A handler that is called when the body is complete. The first field is a copy of the
    /// request's head. The second field contains the positions of the head's parts in this copy.
    Call(Vec<u8>, HeadIndex),
    /// A handler that is already running. The handler has requested the body and waits for it.
    Tell(Arc<BodyRequest>),
}

/// The storage of a request body: memory, or a temporary file if the body is long.
pub(super) enum BodyStorage {
    Memory(Chunk),
    File(File, u64),
}

impl BodyStorage {
    /// Appends `bytes`, the next bytes of the body. If the body is in memory and would become
    /// longer than `most_in_memory` bytes, first moves it to a temporary file in `folder`.
    fn put(&mut self, bytes: &[u8], most_in_memory: usize, folder: &Path) -> io::Result<()> {
        if let BodyStorage::Memory(chunk) = self
            && chunk.len() + bytes.len() > most_in_memory
        {
            let mut file = tempfile::tempfile_in(folder)?;
            file.write_all(chunk)?;
            *self = BodyStorage::File(file, chunk.len() as u64);
        }
        match self {
            BodyStorage::Memory(chunk) => {
                let full = |_| io::Error::from(io::ErrorKind::OutOfMemory);
                chunk.put(bytes).map_err(full)
            }
            BodyStorage::File(file, n_bytes) => {
                *n_bytes += bytes.len() as u64;
                file.write_all(bytes)
            }
        }
    }

    pub(super) fn finish(self) -> io::Result<RequestBody> {
        Ok(match self {
            BodyStorage::Memory(chunk) => RequestBody::Memory(chunk),
            BodyStorage::File(mut file, n_bytes) => {
                file.rewind()?;
                RequestBody::File(file, n_bytes)
            }
        })
    }
}

/// The way in which the end of a request body is determined.
pub(super) enum BodyCoding {
    /// The request has `Content-Length`. The number is the count of body bytes that have not
    /// arrived yet.
    Length(usize),
    Chunked(ChunkedReader),
}

impl BodyCoding {
    /// Returns the value of `Content-Length`, or `None` for a body in the chunked coding. This
    /// method must be called before the first byte of the body is read.
    pub(super) fn announced(&self) -> Option<u64> {
        match self {
            BodyCoding::Length(n) => Some(*n as u64),
            BodyCoding::Chunked(_) => None,
        }
    }
}

impl BodyReader {
    /// If a running handler waits for the body, returns the request's properties and the
    /// [`BodyRequest`] of this handler. Returns `None` if the handler was not called yet.
    pub(super) fn into_told(self) -> Option<(Exchange, Arc<BodyRequest>)> {
        match self.then {
            BodyReceiver::Tell(awaiting) => Some((self.exchange, awaiting)),
            BodyReceiver::Call(..) => None,
        }
    }

    /// Returns the number of bytes that can be appended to the body without allocating memory. The
    /// number is 0 for a body in a file.
    pub(super) fn spare_capacity(&self) -> usize {
        match &self.body {
            BodyStorage::Memory(chunk) => chunk.capacity() - chunk.len(),
            BodyStorage::File(..) => 0,
        }
    }

    /// Appends bytes of `data` to the body, up to the end of the body. Returns the number of bytes
    /// that were appended. Any further bytes of `data` belong to the next request.
    pub(super) fn add(
        &mut self,
        data: &[u8],
        most_in_memory: usize,
        folder: &Path,
    ) -> Result<usize, BodyError> {
        let body = &mut self.body;
        let mut put = |bytes: &[u8]| {
            body.put(bytes, most_in_memory, folder)
                .map_err(|_| BodyError::Store)
        };
        match &mut self.coding {
            BodyCoding::Length(left) => {
                let n = data.len().min(*left);
                put(&data[..n])?;
                *left -= n;
                self.complete = *left == 0;
                Ok(n)
            }
            BodyCoding::Chunked(_) if self.complete => Ok(0),
            BodyCoding::Chunked(reader) => {
                let mut used = 0;
                loop {
                    let (n, piece) = reader.next(&data[used..]).map_err(BodyError::Coding)?;
                    used += n;
                    match piece {
                        BodyChunk::Data(bytes) => put(bytes)?,
                        BodyChunk::NeedMore => return Ok(used),
                        BodyChunk::End => {
                            self.complete = true;
                            return Ok(used);
                        }
                    }
                }
            }
        }
    }
}
