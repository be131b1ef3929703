//! [`Input`]: the input of a BSON command, read into a buffer that grows to the size of the longest
//! document.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::Writing;
use crate::console::ByteProgress;
use crate::failure::Failure;
use crate::input;

/// The initial size of the buffer in bytes. The buffer grows only for a document that is longer.
const READ_BYTES: usize = 1 << 20;

/// The input file or stdin of a command, read without the buffer of the standard library.
pub(super) struct Input {
    /// The path of the file as given, or `stdin`; used in messages.
    pub(super) name: String,
    file: File,
    bytes: Vec<u8>,
    /// The index in `bytes` of the first byte that was not processed.
    at: usize,
    end: usize,
    /// The number of bytes of the input that precede the first byte of the buffer `bytes`.
    n_before: u64,
    /// `true` if the end of the input has been read.
    pub(super) is_last: bool,
    progress: ByteProgress,
}

impl Input {
    pub(super) fn open(path: &Path, quiet: bool) -> Result<Input, Failure> {
        let name = input::name(path);
        let (file, found) = input::open(path).map_err(|e| Failure::Read(name.clone(), e))?;
        let len_bytes = found.is_file().then_some(found.len());
        Ok(Input {
            name,
            file,
            bytes: vec![0; READ_BYTES],
            at: 0,
            end: 0,
            n_before: 0,
            is_last: false,
            progress: ByteProgress::new(!quiet, len_bytes),
        })
    }

    /// Returns the buffered bytes that were not processed.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..self.end]
    }

    /// Returns the position in the input of the first byte that was not processed.
    pub(super) fn offset_bytes(&self) -> u64 {
        self.n_before + self.at as u64
    }

    /// Marks the next `n_bytes` of the buffered input as processed.
    pub(super) fn pass(&mut self, n_bytes: usize) {
        self.at += n_bytes;
    }

    /// Reads until at least `n_bytes` unprocessed bytes are buffered, or the input ends. Before
    /// each read, which may block, the converted output is written, so that a program that reads
    /// the output does not have to wait for further input.
    pub(super) fn want(&mut self, n_bytes: usize, output: &mut Writing) -> Result<(), Failure> {
        while self.rest().len() < n_bytes && !self.is_last {
            output.flush()?;
            self.ensure_space()?;
            let n = match self.file.read(&mut self.bytes[self.end..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                n => n.map_err(|e| Failure::Read(self.name.clone(), e))?,
            };
            self.end += n;
            self.is_last = n == 0;
            self.progress.set(self.n_before + self.end as u64);
        }
        Ok(())
    }

    /// Makes space after the buffered bytes for the next read. The buffer starts with 1 MiB, and
    /// doubles only when received bytes fill it. So a wrong length in a BSON document cannot make
    /// the buffer large.
    fn ensure_space(&mut self) -> Result<(), Failure> {
        if self.at > 0 {
            self.bytes.copy_within(self.at..self.end, 0);
            self.n_before += self.at as u64;
            (self.at, self.end) = (0, self.end - self.at);
        }
        if self.end == self.bytes.len() {
            let len = 2 * self.bytes.len();
            let more = self.bytes.try_reserve_exact(len - self.bytes.len());
            more.map_err(|_| super::no_memory(&self.name))?;
            self.bytes.resize(len, 0);
        }
        Ok(())
    }

    /// Ends the input, and removes the progress bar from the terminal.
    pub(super) fn end(self) {
        self.progress.end();
    }
}
