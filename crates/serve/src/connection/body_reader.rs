//! The body of a request while it is received.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use onecopy_text::{ByteSink, Chunk};
use onecopy_wire::http::{ChunkedReader, HeadIndex, Piece};

use super::exchange::Exchange;
use crate::awaited::{BodyError, BodyRequest};
use crate::request::RequestBody;

/// A request whose head is whole and whose body is being read.
pub(super) struct BodyReader {
    pub(super) then: BodyReceiver,
    pub(super) exchange: Exchange,
    pub(super) coding: BodyCoding,
    pub(super) body: BodyStorage,
    pub(super) complete: bool,
}

/// Whom a body is for.
pub(super) enum BodyReceiver {
    /// A handler that is called with it, and the head: its bytes, and the offsets of all its parts.
    /// Copies: one, of the head only.
    Call(Vec<u8>, HeadIndex),
    /// A handler that runs, and waits for it.
    Tell(Arc<BodyRequest>),
}

/// Where a body comes into: memory, or a file where it is long.
pub(super) enum BodyStorage {
    Memory(Chunk),
    File(File, u64),
}

impl BodyStorage {
    /// Takes the next bytes; past `most_in_memory` all go to a file in `folder`.
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

/// The coding of a request body.
pub(super) enum BodyCoding {
    /// Bytes still to come.
    Length(usize),
    Chunked(ChunkedReader),
}

impl BodyCoding {
    /// Bytes of a body that was not begun.
    pub(super) fn announced(&self) -> Option<u64> {
        match self {
            BodyCoding::Length(n) => Some(*n as u64),
            BodyCoding::Chunked(_) => None,
        }
    }
}

impl BodyReader {
    /// The request of the handler that waits for the body, if one does.
    pub(super) fn into_told(self) -> Option<(Exchange, Arc<BodyRequest>)> {
        match self.then {
            BodyReceiver::Tell(awaiting) => Some((self.exchange, awaiting)),
            BodyReceiver::Call(..) => None,
        }
    }

    /// Bytes that it has room for in memory.
    pub(super) fn room(&self) -> usize {
        match &self.body {
            BodyStorage::Memory(chunk) => chunk.capacity() - chunk.len(),
            BodyStorage::File(..) => 0,
        }
    }

    /// Adds the next bytes of the request; returns how many of them were the body's.
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
                        Piece::Data(bytes) => put(bytes)?,
                        Piece::NeedMore => return Ok(used),
                        Piece::End => {
                            self.complete = true;
                            return Ok(used);
                        }
                    }
                }
            }
        }
    }
}
