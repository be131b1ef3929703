//! The part of the input that is looked at.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use super::{Failure, Writing};
use crate::console::ByteProgress;

/// Bytes that are read at a time, where no document is longer.
const READ_BYTES: usize = 1 << 20;

/// A file or stdin, past the standard library's buffer.
pub(super) struct Input {
    /// How messages call it.
    pub(super) name: String,
    file: File,
    bytes: Vec<u8>,
    /// What is left to be looked at, in `bytes`.
    at: usize,
    end: usize,
    /// Bytes that stood before `bytes`.
    n_before: u64,
    /// Whether nothing comes behind it.
    pub(super) is_last: bool,
    progress: ByteProgress,
}

impl Input {
    pub(super) fn open(path: &Path, quiet: bool) -> Result<Input, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let name = match is_stdin {
            true => "stdin".to_owned(),
            false => path.display().to_string(),
        };
        let opened = || -> io::Result<(File, Option<u64>)> {
            let file = match is_stdin {
                true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
                false => File::open(path)?,
            };
            let found = file.metadata()?;
            if found.is_dir() {
                return Err(io::Error::other("it is a directory"));
            }
            Ok((file, found.is_file().then_some(found.len())))
        };
        let (file, len_bytes) = opened().map_err(|e| Failure::Read(name.clone(), e))?;
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

    /// What is there to be looked at.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..self.end]
    }

    /// Where it stands in the input, in bytes.
    pub(super) fn offset_bytes(&self) -> u64 {
        self.n_before + self.at as u64
    }

    /// So many bytes of it are done with.
    pub(super) fn pass(&mut self, n_bytes: usize) {
        self.at += n_bytes;
    }

    /// Sees that at least `n_bytes` are there, or all that there are. What was made until then is written first: whoever
    /// reads it need not wait for more input.
    pub(super) fn want(&mut self, n_bytes: usize, output: &mut Writing) -> Result<(), Failure> {
        while self.rest().len() < n_bytes && !self.is_last {
            output.flush()?;
            self.make_room()?;
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

    /// Room behind what is there: a length that lies takes no more memory than twice what came.
    fn make_room(&mut self) -> Result<(), Failure> {
        if self.at > 0 {
            self.bytes.copy_within(self.at..self.end, 0);
            self.n_before += self.at as u64;
            (self.at, self.end) = (0, self.end - self.at);
        }
        if self.end == self.bytes.len() {
            let len = 2 * self.bytes.len();
            let more = self.bytes.try_reserve_exact(len - self.bytes.len());
            more.map_err(|_| Failure::Memory(self.name.clone()))?;
            self.bytes.resize(len, 0);
        }
        Ok(())
    }

    /// Takes the progress bar away.
    pub(super) fn end(self) {
        self.progress.end();
    }
}
