//! The receiving end.

use std::io;
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use onecopy_files::moving::FileReceiver;

use crate::code::{Code, CodeCheck};
use crate::error::{Error, Reason};
use crate::folder::{Folder, Part, There};
use crate::journal::{Identity, Journal};
use crate::link::{Incoming, Link};
use crate::message::{FileHead, MAX_BLOCK_LOG2, Message, SKIP, VERSION};
use crate::name;
use crate::order::{Limits, Order};
use crate::tree::{Tree, block_hash};
use crate::watch::{Phase, Summary, Watch};

/// What a receiver is told.
#[derive(Clone, Debug)]
pub struct ReceiverOptions {
    /// Where files go.
    pub folder: PathBuf,
    /// Whether files that stand there are replaced.
    pub replace: bool,
    /// What it takes.
    pub limits: Limits,
    /// How long it waits for the next word.
    pub timeout: Duration,
    /// What a sender must know.
    pub code: Option<Code>,
}

/// Receives transfers, each over its own connection. Several senders may greet it at once;
/// transfers come one after the other.
#[derive(Debug)]
pub struct Receiver {
    options: ReceiverOptions,
    codes: CodeCheck,
}

/// A sender that has given the code, if one is needed.
pub struct Greeted {
    link: Link,
    order: Order,
    block_log2: u8,
}

impl Greeted {
    /// The connection's socket.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        self.link.socket()
    }
}

impl Receiver {
    /// One that nobody has spoken to yet.
    #[must_use]
    pub fn new(options: ReceiverOptions) -> Receiver {
        let codes = CodeCheck::new(options.code.clone());
        Receiver { options, codes }
    }

    /// Reads a sender's greeting, within the time that [`Link::receiving`] was given for the
    /// handshake. Nothing is written or looked at before the code is right.
    ///
    /// # Errors
    /// [`Error`], of which the sender gets the reason; [`Error::TooManyCodes`] from the last wrong
    /// code on.
    pub fn greet(&self, mut link: Link) -> Result<Greeted, Error> {
        let mut order = Order::new(self.options.limits);
        match self.hear_greeting(&mut link, &mut order) {
            Ok(block_log2) => {
                link.end_handshake(self.options.timeout)?;
                Ok(Greeted {
                    link,
                    order,
                    block_log2,
                })
            }
            Err(error) => {
                refuse(&mut link, &error);
                match self.codes.is_exhausted() {
                    true => Err(Error::TooManyCodes),
                    false => Err(error),
                }
            }
        }
    }

    /// Receives one transfer. What was received when it fails stays, and the next one goes on there.
    ///
    /// Copies: two of hashed bytes, out of the socket and into the file; none without hashes, where there is no TLS.
    ///
    /// # Errors
    /// [`Error`], of which the sender gets the reason.
    pub fn receive(&self, greeted: Greeted, watch: &mut dyn Watch) -> Result<Summary, Error> {
        let Greeted {
            mut link,
            order,
            block_log2,
        } = greeted;
        let done = self.transfer(&mut link, order, block_log2, watch);
        if let Err(error) = &done {
            refuse(&mut link, error);
        }
        done
    }

    fn transfer(
        &self,
        link: &mut Link,
        order: Order,
        block_log2: u8,
        watch: &mut dyn Watch,
    ) -> Result<Summary, Error> {
        link.say(&Message::Welcome { version: VERSION })?;
        link.flush()?;
        let folder = Folder::open(&self.options.folder, self.options.replace)?;
        let mut run = Run {
            order,
            link,
            watch,
            folder,
            block_log2,
            buffer: Vec::new(),
            splicer: None,
            summary: Summary::default(),
        };
        let done = run.all();
        run.folder.close_parts();
        done
    }

    /// The size of the sender's blocks, from a greeting with the right code.
    fn hear_greeting(&self, link: &mut Link, order: &mut Order) -> Result<u8, Error> {
        let Incoming::Message(hello) = link.hear()? else {
            return Err(Error::Protocol("bytes before a word".to_owned()));
        };
        let Message::Hello {
            block_log2, code, ..
        } = &hello
        else {
            return Err(Error::Protocol("no greeting".to_owned()));
        };
        self.codes.check(code)?;
        order.take(&hello)?;
        Ok((*block_log2).min(MAX_BLOCK_LOG2))
    }
}

/// Gives a sender the reason of an error of this end, if it is to know it.
fn refuse(link: &mut Link, error: &Error) {
    if let Some((reason, words)) = refusal_of(error) {
        link.leave(&Message::Refused(reason, words));
    }
}

/// The reason and the words that a sender gets for an error of this end.
fn refusal_of(error: &Error) -> Option<(Reason, String)> {
    match error {
        Error::Refusing(reason, words) => Some((*reason, words.clone())),
        Error::File { source, .. } => {
            let reason = match source.kind() {
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::FileTooLarge => Reason::Space,
                _ => Reason::System,
            };
            Some((reason, error.to_string()))
        }
        Error::Protocol(what) => Some((Reason::Data, what.clone())),
        Error::Stopped => Some((Reason::System, "it was stopped".to_owned())),
        _ => None,
    }
}

/// One transfer.
struct Run<'a> {
    order: Order,
    link: &'a mut Link,
    watch: &'a mut dyn Watch,
    folder: Folder,
    block_log2: u8,
    /// A block.
    buffer: Vec<u8>,
    splicer: Option<FileReceiver>,
    summary: Summary,
}

impl Run<'_> {
    fn all(&mut self) -> Result<Summary, Error> {
        self.summary.hashed = self.order.is_hashed();
        let n_present = self.list()?;
        self.folder.rewind();
        self.folder.open_parts()?;
        self.link.say(&Message::Accepted { n_present })?;
        self.link.flush()?;
        self.watch.phase(Phase::Moving {
            n_bytes: self.order.listed_bytes(),
            n_present,
        });
        self.entries()?;
        self.watch.phase(Phase::Syncing);
        self.folder.sync()?;
        self.folder.close_parts();
        self.link.say(&Message::Finished)?;
        self.link.flush()?;
        Ok(self.summary)
    }

    /// The next word, which may be said now.
    fn hear(&mut self) -> Result<Message, Error> {
        if self.watch.stops() {
            return Err(Error::Stopped);
        }
        let message = match self.link.hear()? {
            Incoming::Message(message) => message,
            Incoming::Block(n) => Message::Block(n),
        };
        self.order.take(&message)?;
        Ok(message)
    }

    /// The list: names, what stands there, free space. Nothing is written. Bytes that are there already.
    fn list(&mut self) -> Result<u64, Error> {
        let (mut n_present, mut n_needed) = (0_u64, 0_u64);
        loop {
            match self.hear()? {
                Message::Folder { name, .. } => {
                    let (name, path) = (self.named(&name)?.0, self.order.path());
                    self.folder.enter(&name, &path, None)?;
                }
                Message::FolderEnd { .. } => self.folder.leave(None)?,
                Message::File(head) => {
                    let (name, path) = self.named(&head.name)?;
                    let present = match self.folder.look(&head, &name, &path)? {
                        There::Same => head.len_bytes,
                        There::Free => self.folder.part_bytes(&path).min(head.len_bytes),
                    };
                    n_present += present;
                    n_needed += head.len_bytes - present;
                }
                Message::EndOfList => break,
                Message::Abort(words) => return Err(Error::Aborted(words)),
                _ => return Err(out_of_turn()),
            }
        }
        let free = self.folder.free_bytes()?;
        if n_needed > free {
            return Err(Error::Refusing(
                Reason::Space,
                format!(
                    "{n_needed} bytes are to come, and its disk has {free} left\nmake room, or receive into another folder"
                ),
            ));
        }
        Ok(n_present)
    }

    /// A name that [`Order`] has taken, and its path in the present folder.
    fn named(&self, name: &[u8]) -> Result<(String, String), Error> {
        let name = name::check(name).map_err(|e| Error::Protocol(e.to_string()))?;
        Ok((name.to_owned(), self.order.path_of(name)))
    }

    /// The files.
    fn entries(&mut self) -> Result<(), Error> {
        loop {
            match self.hear()? {
                Message::Folder { name, mode } => {
                    let (name, path) = (self.named(&name)?.0, self.order.path());
                    self.folder.enter(&name, &path, Some(mode))?;
                }
                Message::FolderEnd { modified } => self.folder.leave(Some(modified))?,
                Message::File(head) => self.file(&head)?,
                Message::Done => return Ok(()),
                Message::Abort(words) => return Err(Error::Aborted(words)),
                _ => return Err(out_of_turn()),
            }
        }
    }

    fn file(&mut self, head: &FileHead) -> Result<(), Error> {
        let (name, path) = self.named(&head.name)?;
        let there = self.folder.look(head, &name, &path)?;
        let hash = match (self.order.is_small(), there) {
            (true, there) => self.small(head, &name, &path, there == There::Free)?,
            (false, There::Free) => self.large(head, &name, &path)?,
            (false, There::Same) => {
                self.answer(SKIP, Vec::new())?;
                None
            }
        };
        self.summary.n_files += 1;
        self.summary.n_bytes += head.len_bytes;
        self.watch.file(&path, hash);
        Ok(())
    }

    fn answer(&mut self, n_blocks: u64, stack: Vec<[u8; 32]>) -> Result<(), Error> {
        self.order.resume(n_blocks);
        self.link.say(&Message::Start { n_blocks, stack })?;
        self.link.flush()
    }

    /// A file that comes in one block at most, without a question.
    fn small(
        &mut self,
        head: &FileHead,
        name: &str,
        path: &str,
        is_wanted: bool,
    ) -> Result<Option<[u8; 32]>, Error> {
        let mut n = 0;
        let sent = loop {
            match self.hear()? {
                Message::Block(n_bytes) => {
                    n = n_bytes as usize;
                    self.read_block(n)?;
                }
                Message::FileEnd(hash) => break hash,
                Message::Abort(words) => return Err(Error::Aborted(words)),
                _ => return Err(out_of_turn()),
            }
        };
        let bytes = &self.buffer[..n];
        if self.order.is_hashed() && *blake3::hash(bytes).as_bytes() != sent {
            return Err(wrong_hash(path));
        }
        if is_wanted {
            let part = self.folder.part(path, "part")?;
            part.file
                .set_len(0)
                .and_then(|()| part.file.write_all_at(bytes, 0))
                .map_err(Error::file("write", path))?;
            self.folder.place(&part, head, name, path)?;
            self.watch.bytes(n as u64);
        }
        Ok(self.order.is_hashed().then_some(sent))
    }

    fn read_block(&mut self, n: usize) -> Result<(), Error> {
        if self.buffer.len() < n {
            self.buffer.resize(n, 0);
        }
        self.link.read_exact(&mut self.buffer[..n])?;
        self.summary.n_moved += n as u64;
        self.summary.n_copied += n as u64;
        Ok(())
    }

    /// A file of several blocks: from where an earlier run stopped.
    fn large(
        &mut self,
        head: &FileHead,
        name: &str,
        path: &str,
    ) -> Result<Option<[u8; 32]>, Error> {
        let is_hashed = self.order.is_hashed();
        let part = self.folder.part(path, "part")?;
        let journal = self.folder.part(path, "journal")?;
        let identity = Identity::new(head, path, is_hashed, self.block_log2);
        let (mut journal, mut tree) =
            Journal::open(journal.file, &part.file, &identity, head.len_bytes, |_| ())
                .map_err(Error::file("read the journal of", path))?;
        self.answer(journal.n_blocks(), tree.stack())?;
        loop {
            match self.hear() {
                Ok(Message::Block(n_bytes)) => {
                    self.block(n_bytes, path, &part, &mut journal, &mut tree)?;
                    self.watch.bytes(u64::from(n_bytes));
                }
                Ok(Message::FileEnd(hash)) => {
                    if is_hashed && tree.root() != Some(hash) {
                        self.folder.discard(path);
                        return Err(wrong_hash(path));
                    }
                    self.folder.place(&part, head, name, path)?;
                    return Ok(is_hashed.then_some(hash));
                }
                Ok(Message::Abort(words)) => {
                    self.folder.discard(path);
                    return Err(Error::Aborted(words));
                }
                Ok(_) => return Err(out_of_turn()),
                Err(e) => return Err(e),
            }
        }
    }

    /// A block: checked before it is written, noted when it is.
    fn block(
        &mut self,
        n_bytes: u32,
        path: &str,
        part: &Part,
        journal: &mut Journal,
        tree: &mut Tree,
    ) -> Result<(), Error> {
        let failed = || Error::file("write", path);
        let index = journal.n_blocks();
        let mut at = index << self.block_log2;
        if !self.order.is_hashed() {
            self.unhashed(n_bytes, &mut at, path, part)?;
            return journal.push(&part.file, None).map_err(failed());
        }
        let n = n_bytes as usize;
        self.read_block(n)?;
        let node = block_hash(&self.buffer[..n], index, self.block_log2);
        match self.hear()? {
            Message::BlockHash(sent) if sent == node => {}
            Message::BlockHash(_) => {
                return Err(Error::Refusing(
                    Reason::Data,
                    format!(
                        "bytes {at} to {} of `{path}` are not those that were hashed\nthe file changed while it was sent, or the bytes did on their way: send it again",
                        at + u64::from(n_bytes)
                    ),
                ));
            }
            Message::Abort(words) => {
                self.folder.discard(path);
                return Err(Error::Aborted(words));
            }
            _ => return Err(out_of_turn()),
        }
        part.file
            .write_all_at(&self.buffer[..n], at)
            .map_err(failed())?;
        tree.push(node);
        journal.push(&part.file, Some(node)).map_err(failed())
    }

    /// Bytes that nobody looks at: moved by the kernel where there is no TLS.
    fn unhashed(
        &mut self,
        n_bytes: u32,
        at: &mut u64,
        path: &str,
        part: &Part,
    ) -> Result<(), Error> {
        let Some(socket) = self.link.plain() else {
            self.read_block(n_bytes as usize)?;
            return part
                .file
                .write_all_at(&self.buffer[..n_bytes as usize], *at)
                .map_err(Error::file("write", path));
        };
        if self.splicer.is_none() {
            self.splicer = Some(FileReceiver::new().map_err(Error::file("receive", path))?);
        }
        let mut left = u64::from(n_bytes);
        while let Some(splicer) = self.splicer.as_mut().filter(|_| left > 0) {
            let moved = match splicer.step(socket, &part.file, Some(at), left) {
                Ok(moved) if moved.n_bytes == 0 => {
                    return Err(Error::Broken(io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(moved) => moved,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if is_of_file(&e) => return Err(Error::file("write", path)(e)),
                Err(e) => return Err(Error::Broken(e)),
            };
            left -= moved.n_bytes;
            self.summary.n_moved += moved.n_bytes;
            self.summary.n_copied += moved.n_copied;
        }
        Ok(())
    }
}

fn is_of_file(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// [`Order`] lets no other message through; a message of the receiver's own is no sender's.
fn out_of_turn() -> Error {
    Error::Protocol("a message came where another is due".to_owned())
}

fn wrong_hash(path: &str) -> Error {
    Error::Refusing(
        Reason::Data,
        format!(
            "`{path}` is not what was hashed\nit changed while it was sent, or on its way: send it again"
        ),
    )
}
