//! The sending end.

use std::fs;
use std::io;
use std::mem;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver as Hashed, channel};

use onecopy_files::moving::{FileSender, is_loopback};

use crate::code::Code;
use crate::error::Error;
use crate::link::Link;
use crate::message::{FileHead, Message, SKIP, VERSION};
use crate::tree::{Tree, block_hash};
use crate::walk::{Opened, Step, modified, walk};
use crate::watch::{Phase, Summary, Watch};

/// What a sender is told.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// Whether blocks and files are hashed.
    pub hashed: bool,
    /// Bytes of a block, as a power of two.
    pub block_log2: u8,
    /// What the receiver has printed.
    pub code: Option<Code>,
    /// Bytes that are hashed go by sendfile(2) over loopback too, where it is not the fastest way.
    pub by_sendfile: bool,
}

/// Bytes of a block where nobody says otherwise: 1 MiB. A file of a TiB has a million.
pub const BLOCK_LOG2: u8 = 20;
/// Buffers of blocks that are read, hashed and sent in turn: few, so that they stay in the processor's cache.
const IN_TURN: usize = 2;

/// Sends files and folders over one connection.
///
/// Copies: none of this end's where there is no TLS; one more read of what is hashed. Over loopback one, from which it is hashed and sent.
///
/// # Errors
/// [`Error`]; the receiver is told. After [`Error::Broken`] the same again goes on where it stopped.
pub fn send(
    options: &SenderOptions,
    link: &mut Link,
    watch: &mut dyn Watch,
) -> Result<Summary, Error> {
    let mut run = Run {
        options,
        link,
        watch,
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
        Err(error) => Err(link.reason_of(error)),
    }
}

struct Run<'a> {
    options: &'a SenderOptions,
    link: &'a mut Link,
    watch: &'a mut dyn Watch,
    summary: Summary,
    /// A block.
    buffer: Vec<u8>,
    mover: FileSender,
    /// Bytes of the block at hand that were announced and are not sent.
    owed: u64,
}

impl Run<'_> {
    fn all(&mut self) -> Result<(), Error> {
        let code = self.options.code.as_ref();
        self.link.say(&Message::Hello {
            version: VERSION,
            hashed: self.options.hashed,
            block_log2: self.options.block_log2,
            code: code.map_or(Vec::new(), |code| code.secret().to_vec()),
        })?;
        self.link.flush()?;
        match self.link.hear_answer()? {
            Message::Welcome { .. } => {}
            _ => return Err(out_of_turn()),
        }
        self.watch.phase(Phase::Looking);
        let n_bytes = self.list()?;
        match self.link.hear_answer()? {
            Message::Accepted { n_present } => {
                self.watch.phase(Phase::Moving { n_bytes, n_present });
            }
            _ => return Err(out_of_turn()),
        }
        let options = self.options;
        walk(&options.paths, &mut |step| match step {
            Step::Folder { name, mode } => self.link.say(&folder(name, mode)),
            Step::FolderEnd { modified } => self.link.say(&Message::FolderEnd { modified }),
            Step::File {
                path,
                name,
                follows,
            } => self.file(path, name, follows),
            Step::LeftOut { .. } => Ok(()),
        })?;
        self.link.say(&Message::Done)?;
        self.link.flush()?;
        self.watch.phase(Phase::Syncing);
        match self.link.hear_answer()? {
            Message::Finished => Ok(()),
            _ => Err(out_of_turn()),
        }
    }

    /// Tells what there is; its bytes.
    fn list(&mut self) -> Result<u64, Error> {
        let mut n_bytes = 0;
        let (link, watch) = (&mut *self.link, &mut *self.watch);
        walk(&self.options.paths, &mut |step| {
            if watch.stops() {
                return Err(Error::Stopped);
            }
            match step {
                Step::Folder { name, mode } => link.say(&folder(name, mode)),
                Step::FolderEnd { modified } => link.say(&Message::FolderEnd { modified }),
                Step::File {
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
                    watch.bytes(found.len());
                    link.say(&Message::File(FileHead {
                        len_bytes: found.len(),
                        modified: modified(&found),
                        mode: (found.mode() & 0o777) as u16,
                        name: name.as_bytes().to_vec(),
                    }))
                }
                Step::LeftOut { path, what } => {
                    watch.left_out(path, what);
                    Ok(())
                }
            }
        })?;
        self.link.say(&Message::EndOfList)?;
        self.link.flush()?;
        Ok(n_bytes)
    }

    fn file(&mut self, path: &Path, name: &str, follows: bool) -> Result<(), Error> {
        if self.watch.stops() {
            return Err(Error::Stopped);
        }
        let opened = Opened::open(path, follows)?;
        let head = opened.head(name);
        self.link.say(&Message::File(head.clone()))?;
        let hash = match head.len_bytes <= 1 << self.options.block_log2 {
            true => Some(self.small(&opened, &head)?),
            false => self.large(&opened, &head)?,
        };
        self.summary.n_files += 1;
        self.summary.n_bytes += head.len_bytes;
        let hash = hash.filter(|_| self.options.hashed);
        self.watch.file(&path.display().to_string(), hash);
        Ok(())
    }

    /// A file of one block at most: its bytes follow at once, together with those of its neighbours.
    fn small(&mut self, opened: &Opened, head: &FileHead) -> Result<[u8; 32], Error> {
        let n = head.len_bytes as usize;
        self.read(opened, 0, n)?;
        opened.check()?;
        if n > 0 {
            self.link.say(&Message::Block(n as u32))?;
            self.link.say_bytes(&self.buffer[..n])?;
            self.count(n as u64, n as u64);
        }
        let hash = match self.options.hashed {
            true => *blake3::hash(&self.buffer[..n]).as_bytes(),
            false => [0; 32],
        };
        self.link.say(&Message::FileEnd(hash))?;
        Ok(hash)
    }

    fn count(&mut self, n_moved: u64, n_copied: u64) {
        self.summary.n_moved += n_moved;
        self.summary.n_copied += n_copied;
        self.watch.bytes(n_moved);
    }

    fn read(&mut self, opened: &Opened, at: u64, n: usize) -> Result<(), Error> {
        if self.buffer.len() < n {
            self.buffer.resize(n, 0);
        }
        match opened.file.read_exact_at(&mut self.buffer[..n], at) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(opened.shorter()),
            Err(e) => Err(opened.failed()(e)),
        }
    }

    /// A file of several blocks; `None` where the receiver has it.
    fn large(&mut self, opened: &Opened, head: &FileHead) -> Result<Option<[u8; 32]>, Error> {
        self.link.flush()?;
        let (n_present, stack) = match self.link.hear_answer()? {
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
        self.link.say(&Message::FileEnd(hash))?;
        Ok(Some(hash))
    }

    /// Another thread reads and hashes the blocks. Where the kernel sends them from the file, they are read for that alone; over
    /// loopback, where the kernel's pages cost more (decision 0095), and through TLS what was read is what is sent.
    fn hashed(
        &mut self,
        opened: &Opened,
        head: &FileHead,
        n_blocks: u64,
        mut tree: Tree,
    ) -> Result<Tree, Error> {
        let log2 = self.options.block_log2;
        let first = tree.n_blocks();
        let by_kernel = self
            .link
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
                    // Nobody gives any back, or listens, where sending has failed.
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
                self.link.say(&Message::BlockHash(node))?;
                tree.push(node);
                let _ = give_back.send(block);
            }
            Ok(tree)
        })
    }

    /// Sends a block that was read.
    fn send_block(&mut self, block: &[u8]) -> Result<(), Error> {
        self.link.say(&Message::Block(block.len() as u32))?;
        self.link.say_bytes(block)?;
        // What is counted is on its way.
        self.link.flush()?;
        self.count(block.len() as u64, block.len() as u64);
        Ok(())
    }

    /// Whether the user or the receiver wants it to end.
    fn look_up(&mut self) -> Result<(), Error> {
        if self.watch.stops() {
            return Err(Error::Stopped);
        }
        if self.link.has_word() {
            self.link.hear_answer()?;
            return Err(out_of_turn());
        }
        Ok(())
    }

    /// Sends one block from the file.
    fn block(&mut self, opened: &Opened, head: &FileHead, index: u64) -> Result<(), Error> {
        self.look_up()?;
        let log2 = self.options.block_log2;
        let n = block_len(head, index, log2);
        let mut at = index << log2;
        if self.link.plain().is_none() {
            self.read(opened, at, n as usize)?;
            let buffer = mem::take(&mut self.buffer);
            let sent = self.send_block(&buffer[..n as usize]);
            self.buffer = buffer;
            return sent;
        }
        self.link.say(&Message::Block(n as u32))?;
        self.link.flush()?;
        self.owed = n;
        while let Some(socket) = self.link.plain().filter(|_| self.owed > 0) {
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

    /// Tells the receiver that it cannot go on: behind the block at hand, which is filled up, since its length was told.
    fn give_up(&mut self, error: &Error) {
        let zeros = vec![0; self.owed as usize];
        let _ = self.link.say_bytes(&zeros);
        let _ = self.link.say(&Message::Abort(error.to_string()));
        let _ = self.link.flush();
    }
}

/// What the hashing thread has made next.
fn next<T>(hashed: &Hashed<io::Result<T>>, opened: &Opened) -> Result<T, Error> {
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
    Error::Protocol("it answers what was not asked".to_owned())
}
