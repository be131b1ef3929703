//! [`send`] sends files and folders to a receiver.

use std::fs;
use std::io;
use std::mem;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver as Hashed, channel};

use onecopy_files::sendfile::{FileSender, is_loopback};

use crate::block_hashes::{Tree, block_hash};
use crate::channel::Channel;
use crate::code::Code;
use crate::error::Error;
use crate::message::{FileHead, Message, SKIP, VERSION};
use crate::observer::{Observer, Phase, Summary};
use crate::source_files::{OpenedFile, WalkStep, modified, walk};

/// The settings of a sender.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// The files and folders to send.
    pub paths: Vec<PathBuf>,
    /// `true` if blocks and files are hashed.
    pub hashed: bool,
    /// The base-2 logarithm of the block size in bytes.
    pub block_log2: u8,
    /// The code that the receiver printed; `None` if the receiver requires no code.
    pub code: Option<Code>,
    /// `true` to use sendfile(2) for hashed bytes over loopback also. The default is a buffer,
    /// which is faster there.
    pub by_sendfile: bool,
}

/// The base-2 logarithm of the default block size, 1 MiB. A file of 1 TiB then has a million
/// blocks.
pub const BLOCK_LOG2: u8 = 20;
/// The number of block buffers: while one block is sent, another thread reads and hashes the next
/// one. More buffers would not stay in the processor's cache.
const IN_TURN: usize = 2;

/// Sends files and folders to a receiver over one connection.
///
/// A file of more than one block is sent by sendfile(2), without a copy in this process. If the
/// file is hashed, this process also reads it. In the following cases the bytes are copied once,
/// through a buffer: for a file of at most one block, for a connection with TLS, and for a hashed
/// file over loopback unless `by_sendfile` is set.
///
/// # Errors
/// [`Error`]. If a local file caused the error, the receiver gets the message. After
/// [`Error::Broken`], another call with the same files continues the transfer.
pub fn send(
    options: &SenderOptions,
    channel: &mut Channel,
    observer: &mut dyn Observer,
) -> Result<Summary, Error> {
    let mut run = SenderRun {
        options,
        channel,
        observer,
        summary: Summary {
            hashed: options.hashed,
            ..Summary::default()
        },
        buffer: Vec::new(),
        mover: FileSender::new(),
        owed: 0,
    };
    match run.all() {
        Ok(()) => Ok(run.summary),
        Err(error @ (Error::Changed { .. } | Error::File { .. } | Error::Name { .. })) => {
            run.give_up(&error);
            Err(error)
        }
        Err(error) => Err(channel.reason_of(error)),
    }
}

struct SenderRun<'a> {
    options: &'a SenderOptions,
    channel: &'a mut Channel,
    observer: &'a mut dyn Observer,
    summary: Summary,
    /// A buffer for the block that is sent next. The same buffer is used for all blocks.
    buffer: Vec<u8>,
    mover: FileSender,
    /// The number of bytes of the current block that were announced by its header and not sent yet.
    owed: u64,
}

impl SenderRun<'_> {
    fn all(&mut self) -> Result<(), Error> {
        let code = self.options.code.as_ref();
        self.channel.send(&Message::Hello {
            version: VERSION,
            hashed: self.options.hashed,
            block_log2: self.options.block_log2,
            code: code.map_or(Vec::new(), |code| code.secret().to_vec()),
        })?;
        self.channel.flush()?;
        match self.channel.recv_reply()? {
            Message::Welcome { .. } => {}
            _ => return Err(out_of_turn()),
        }
        self.observer.phase(Phase::Looking);
        let n_bytes = self.list()?;
        match self.channel.recv_reply()? {
            Message::Accepted { n_present } => {
                self.observer.phase(Phase::Moving { n_bytes, n_present });
            }
            _ => return Err(out_of_turn()),
        }
        let options = self.options;
        walk(&options.paths, &mut |step| match step {
            WalkStep::Folder { name, mode } => self.channel.send(&folder(name, mode)),
            WalkStep::FolderEnd { modified } => self.channel.send(&Message::FolderEnd { modified }),
            WalkStep::File {
                path,
                name,
                follows,
            } => self.file(path, name, follows),
            WalkStep::LeftOut { .. } => Ok(()),
        })?;
        self.channel.send(&Message::Done)?;
        self.channel.flush()?;
        self.observer.phase(Phase::Syncing);
        match self.channel.recv_reply()? {
            Message::Finished => Ok(()),
            _ => Err(out_of_turn()),
        }
    }

    /// Sends the list of files and folders; returns the total size of the files in bytes.
    fn list(&mut self) -> Result<u64, Error> {
        let mut n_bytes = 0;
        let (channel, observer) = (&mut *self.channel, &mut *self.observer);
        walk(&self.options.paths, &mut |step| {
            if observer.stops() {
                return Err(Error::Stopped);
            }
            match step {
                WalkStep::Folder { name, mode } => channel.send(&folder(name, mode)),
                WalkStep::FolderEnd { modified } => channel.send(&Message::FolderEnd { modified }),
                WalkStep::File {
                    path,
                    name,
                    follows,
                } => {
                    let found = match follows {
                        true => fs::metadata(path),
                        false => fs::symlink_metadata(path),
                    };
                    let found = found.map_err(Error::file("look at", path))?;
                    n_bytes += found.len();
                    observer.bytes(found.len());
                    channel.send(&Message::File(FileHead {
                        len_bytes: found.len(),
                        modified: modified(&found),
                        mode: (found.mode() & 0o777) as u16,
                        name: name.as_bytes().to_vec(),
                    }))
                }
                WalkStep::LeftOut { path, what } => {
                    observer.left_out(path, what);
                    Ok(())
                }
            }
        })?;
        self.channel.send(&Message::EndOfList)?;
        self.channel.flush()?;
        Ok(n_bytes)
    }

    fn file(&mut self, path: &Path, name: &str, follows: bool) -> Result<(), Error> {
        if self.observer.stops() {
            return Err(Error::Stopped);
        }
        let opened = OpenedFile::open(path, follows)?;
        let head = opened.head(name);
        self.channel.send(&Message::File(head.clone()))?;
        let hash = match head.len_bytes <= 1 << self.options.block_log2 {
            true => Some(self.small(&opened, &head)?),
            false => self.large(&opened, &head)?,
        };
        self.summary.n_files += 1;
        self.summary.n_bytes += head.len_bytes;
        let hash = hash.filter(|_| self.options.hashed);
        self.observer.file(&path.display().to_string(), hash);
        Ok(())
    }

    /// Sends a file of at most one block without waiting for a reply, so that one write to the
    /// socket can contain several files. Returns the hash of the file, or zeros if files are not
    /// hashed.
    fn small(&mut self, opened: &OpenedFile, head: &FileHead) -> Result<[u8; 32], Error> {
        let n = head.len_bytes as usize;
        self.read(opened, 0, n)?;
        opened.check()?;
        if n > 0 {
            self.channel.send(&Message::Block(n as u32))?;
            self.channel.send_bytes(&self.buffer[..n])?;
            self.count(n as u64, n as u64);
        }
        let hash = match self.options.hashed {
            true => *blake3::hash(&self.buffer[..n]).as_bytes(),
            false => [0; 32],
        };
        self.channel.send(&Message::FileEnd(hash))?;
        Ok(hash)
    }

    fn count(&mut self, n_moved: u64, n_copied: u64) {
        self.summary.n_moved += n_moved;
        self.summary.n_copied += n_copied;
        self.observer.bytes(n_moved);
    }

    fn read(&mut self, opened: &OpenedFile, at: u64, n: usize) -> Result<(), Error> {
        if self.buffer.len() < n {
            self.buffer.resize(n, 0);
        }
        match opened.file.read_exact_at(&mut self.buffer[..n], at) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(opened.shorter()),
            Err(e) => Err(opened.failed()(e)),
        }
    }

    /// Sends a file of several blocks, and returns its hash. If files are not hashed, the hash
    /// consists of zeros. Returns `None` if the receiver already has the file.
    fn large(&mut self, opened: &OpenedFile, head: &FileHead) -> Result<Option<[u8; 32]>, Error> {
        self.channel.flush()?;
        let (n_present, stack) = match self.channel.recv_reply()? {
            Message::Start { n_blocks: SKIP, .. } => return Ok(None),
            Message::Start { n_blocks, stack } => (n_blocks, stack),
            _ => return Err(out_of_turn()),
        };
        let n_blocks = head.len_bytes.div_ceil(1 << self.options.block_log2);
        if n_present >= n_blocks {
            return Err(Error::Protocol("it has more than there is".to_owned()));
        }
        let mut hash = [0; 32];
        if !self.options.hashed {
            for index in n_present..n_blocks {
                self.block(opened, head, index)?;
            }
        } else {
            let tree = Tree::resumed(n_present, stack)
                .ok_or_else(|| Error::Protocol("hashes of other blocks".to_owned()))?;
            let done = self.hashed(opened, head, n_blocks, tree)?;
            hash = done.root().ok_or_else(out_of_turn)?;
        }
        opened.check()?;
        self.channel.send(&Message::FileEnd(hash))?;
        Ok(Some(hash))
    }

    /// Sends the blocks of a file, starting with the first block whose hash `tree` does not
    /// contain. A second thread reads and hashes the blocks. This thread sends them by sendfile(2),
    /// or, with TLS and over loopback, from the buffers of the second thread, which is faster over
    /// loopback. If `by_sendfile` is set, sendfile(2) is also used over loopback.
    fn hashed(
        &mut self,
        opened: &OpenedFile,
        head: &FileHead,
        n_blocks: u64,
        mut tree: Tree,
    ) -> Result<Tree, Error> {
        let log2 = self.options.block_log2;
        let first = tree.n_blocks();
        let by_kernel = self
            .channel
            .plain()
            .is_some_and(|socket| self.options.by_sendfile || !is_loopback(socket));
        std::thread::scope(|scope| {
            let (out, hashed) = channel();
            let (give_back, empty) = channel();
            for _ in 0..IN_TURN {
                let _ = give_back.send(Vec::new());
            }
            scope.spawn(move || {
                for index in first..n_blocks {
                    // The channel is closed after an error of the sending thread; this thread then
                    // ends too.
                    let Ok(mut block) = empty.recv() else {
                        return;
                    };
                    block.resize(block_len(head, index, log2) as usize, 0);
                    let read = opened.file.read_exact_at(&mut block, index << log2);
                    let done = read.map(|()| (block_hash(&block, index, log2), block));
                    let is_last = done.is_err();
                    if out.send(done).is_err() || is_last {
                        return;
                    }
                }
            });
            for index in first..n_blocks {
                if by_kernel {
                    self.block(opened, head, index)?;
                } else {
                    self.look_up()?;
                }
                let (node, block) = next(&hashed, opened)?;
                if !by_kernel {
                    self.send_block(&block)?;
                }
                self.channel.send(&Message::BlockHash(node))?;
                tree.push(node);
                let _ = give_back.send(block);
            }
            Ok(tree)
        })
    }

    /// Sends a block that is in a buffer: first the header of the block, and then its bytes
    /// `block`.
    fn send_block(&mut self, block: &[u8]) -> Result<(), Error> {
        self.channel.send(&Message::Block(block.len() as u32))?;
        self.channel.send_bytes(block)?;
        // The observer counts bytes only after they were sent.
        self.channel.flush()?;
        self.count(block.len() as u64, block.len() as u64);
        Ok(())
    }

    /// Returns an error if the observer stops the transfer, or if the receiver has sent a refusal.
    fn look_up(&mut self) -> Result<(), Error> {
        if self.observer.stops() {
            return Err(Error::Stopped);
        }
        if self.channel.is_readable() {
            self.channel.recv_reply()?;
            return Err(out_of_turn());
        }
        Ok(())
    }

    /// Sends the block with the index `index`, counted from 0, of a file: by sendfile(2), or
    /// through a buffer for a connection with TLS.
    fn block(&mut self, opened: &OpenedFile, head: &FileHead, index: u64) -> Result<(), Error> {
        self.look_up()?;
        let log2 = self.options.block_log2;
        let n = block_len(head, index, log2);
        let mut at = index << log2;
        if self.channel.plain().is_none() {
            self.read(opened, at, n as usize)?;
            let buffer = mem::take(&mut self.buffer);
            let sent = self.send_block(&buffer[..n as usize]);
            self.buffer = buffer;
            return sent;
        }
        self.channel.send(&Message::Block(n as u32))?;
        self.channel.flush()?;
        self.owed = n;
        while let Some(socket) = self.channel.plain().filter(|_| self.owed > 0) {
            match self.mover.step(socket, &opened.file, at, self.owed) {
                Ok(moved) if moved.n_bytes == 0 => return Err(opened.shorter()),
                Ok(moved) => {
                    at += moved.n_bytes;
                    self.owed -= moved.n_bytes;
                    self.count(moved.n_bytes, moved.n_copied);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::Broken(e)),
            }
        }
        Ok(())
    }

    /// Sends the receiver a [`Message::Abort`] with the message of `error`. If the current block is
    /// incomplete, zeros are sent for its missing bytes first, because its header has announced its
    /// length.
    fn give_up(&mut self, error: &Error) {
        let zeros = vec![0; self.owed as usize];
        let _ = self.channel.send_bytes(&zeros);
        let _ = self.channel.send(&Message::Abort(error.to_string()));
        let _ = self.channel.flush();
    }
}

/// Waits for the next block that the hashing thread has read and hashed.
fn next<T>(hashed: &Hashed<io::Result<T>>, opened: &OpenedFile) -> Result<T, Error> {
    match hashed.recv() {
        Ok(Ok(hashed)) => Ok(hashed),
        Ok(Err(e)) if e.kind() == io::ErrorKind::UnexpectedEof => Err(opened.shorter()),
        Ok(Err(e)) => Err(opened.failed()(e)),
        Err(_) => Err(opened.failed()(io::Error::other(
            "the hashing thread has ended",
        ))),
    }
}

fn block_len(head: &FileHead, index: u64, log2: u8) -> u64 {
    (head.len_bytes - (index << log2)).min(1 << log2)
}

fn folder(name: &str, mode: u16) -> Message {
    Message::Folder {
        mode,
        name: name.as_bytes().to_vec(),
    }
}

fn out_of_turn() -> Error {
    Error::Protocol("it replied without a request".to_owned())
}
