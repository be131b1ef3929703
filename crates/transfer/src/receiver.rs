//! [`Receiver`] receives files and folders from senders.

use std::io;
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use onecopy_files::sendfile::FileReceiver;

use crate::block_hashes::{Tree, block_hash};
use crate::channel::{Channel, Incoming};
use crate::code::{Code, CodeCheck};
use crate::error::{Error, Reason};
use crate::folder::{ExistingEntry, Folder, PartialFile};
use crate::journal::{FileIdentity, Journal};
use crate::message::{FileHead, MAX_BLOCK_LOG2, Message, SKIP, VERSION};
use crate::name;
use crate::observer::{Observer, Phase, Summary};
use crate::sender_rules::{Limits, SenderState};

/// The settings of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverOptions {
    /// The folder to which received files are written.
    pub folder: PathBuf,
    /// `true` to replace existing files.
    pub replace: bool,
    /// The limits on the size of a transfer.
    pub limits: Limits,
    /// The longest time for which the receiver waits for the next bytes from the sender.
    pub timeout: Duration,
    /// The code that a sender must present; `None` if none is required.
    pub code: Option<Code>,
}

/// Receives transfers, each over its own connection. Several handshakes can run at the same time,
/// but only one transfer at a time can write to the folder.
#[derive(Debug)]
pub struct Receiver {
    options: ReceiverOptions,
    codes: CodeCheck,
}

/// A sender whose handshake has succeeded, and that has presented the code if one is required.
pub struct Greeted {
    channel: Channel,
    order: SenderState,
    block_log2: u8,
}

impl Greeted {
    /// Returns the socket of the connection.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        self.channel.socket()
    }
}

impl Receiver {
    /// Creates a receiver with these settings.
    #[must_use]
    pub fn new(options: ReceiverOptions) -> Receiver {
        let codes = CodeCheck::new(options.code.clone());
        Receiver { options, codes }
    }

    /// Reads the first message of a sender and checks its code, within the time limit of
    /// [`Channel::receiving`]. No file is read or written before the code is verified.
    ///
    /// # Errors
    /// [`Error`]; the sender receives the reason unless the connection failed.
    /// [`Error::TooManyCodes`] for the last permitted wrong code, and for every code after it.
    pub fn greet(&self, mut channel: Channel) -> Result<Greeted, Error> {
        let mut order = SenderState::new(self.options.limits);
        match self.hear_greeting(&mut channel, &mut order) {
            Ok(block_log2) => {
                channel.end_handshake(self.options.timeout)?;
                Ok(Greeted {
                    channel,
                    order,
                    block_log2,
                })
            }
            Err(error) => {
                refuse(&mut channel, &error);
                match self.codes.is_exhausted() {
                    true => Err(Error::TooManyCodes),
                    false => Err(error),
                }
            }
        }
    }

    /// Receives one transfer. After most errors, the received blocks are kept for the next attempt.
    ///
    /// This process copies the bytes of a file from the socket to a buffer and to the file. If
    /// neither hashes nor TLS are used, the kernel moves a file of several blocks instead.
    ///
    /// # Errors
    /// [`Error`]; the sender receives the reason, unless it aborted or the connection failed.
    pub fn receive(&self, greeted: Greeted, observer: &mut dyn Observer) -> Result<Summary, Error> {
        let Greeted {
            mut channel,
            order,
            block_log2,
        } = greeted;
        let done = self.transfer(&mut channel, order, block_log2, observer);
        if let Err(error) = &done {
            refuse(&mut channel, error);
        }
        done
    }

    fn transfer(
        &self,
        channel: &mut Channel,
        order: SenderState,
        block_log2: u8,
        observer: &mut dyn Observer,
    ) -> Result<Summary, Error> {
        channel.send(&Message::Welcome { version: VERSION })?;
        channel.flush()?;
        let folder = Folder::open(&self.options.folder, self.options.replace)?;
        let mut run = ReceiverRun {
            order,
            channel,
            observer,
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

    /// Reads and checks a sender's first message. Returns log2 of the sender's block size in bytes.
    fn hear_greeting(&self, channel: &mut Channel, order: &mut SenderState) -> Result<u8, Error> {
        let Incoming::Message(hello) = channel.recv()? else {
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

/// Reports `error` to the sender, if [`refusal_of`] returns a reason and a text for it.
fn refuse(channel: &mut Channel, error: &Error) {
    if let Some((reason, words)) = refusal_of(error) {
        channel.close_with(&Message::Refused(reason, words));
    }
}

/// Returns the reason and the text of the refusal for `error`; `None` if none is to be sent.
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

/// The state of one transfer on the receiver's side.
struct ReceiverRun<'a> {
    order: SenderState,
    channel: &'a mut Channel,
    observer: &'a mut dyn Observer,
    folder: Folder,
    block_log2: u8,
    /// A reused buffer for one received block.
    buffer: Vec<u8>,
    splicer: Option<FileReceiver>,
    summary: Summary,
}

impl ReceiverRun<'_> {
    fn all(&mut self) -> Result<Summary, Error> {
        self.summary.hashed = self.order.is_hashed();
        let n_present = self.list()?;
        self.folder.rewind();
        self.folder.open_parts()?;
        self.channel.send(&Message::Accepted { n_present })?;
        self.channel.flush()?;
        self.observer.phase(Phase::Moving {
            n_bytes: self.order.listed_bytes(),
            n_present,
        });
        self.entries()?;
        self.observer.phase(Phase::Syncing);
        self.folder.sync()?;
        self.folder.close_parts();
        self.channel.send(&Message::Finished)?;
        self.channel.flush()?;
        Ok(self.summary)
    }

    /// Waits for the sender's next message and checks that the protocol permits it at this point.
    fn recv(&mut self) -> Result<Message, Error> {
        if self.observer.stops() {
            return Err(Error::Stopped);
        }
        let message = match self.channel.recv()? {
            Incoming::Message(message) => message,
            Incoming::Block(n) => Message::Block(n),
        };
        self.order.take(&message)?;
        Ok(message)
    }

    /// Receives the list of files and checks it: names, existing files, free space. Writes no file.
    /// Returns the number of announced bytes that the receiver already has.
    fn list(&mut self) -> Result<u64, Error> {
        let (mut n_present, mut n_needed) = (0_u64, 0_u64);
        loop {
            match self.recv()? {
                Message::Folder { name, .. } => {
                    let (name, path) = (self.named(&name)?.0, self.order.path());
                    self.folder.enter(&name, &path, None)?;
                }
                Message::FolderEnd { .. } => self.folder.leave(None)?,
                Message::File(head) => {
                    let (name, path) = self.named(&head.name)?;
                    let present = match self.folder.look(&head, &name, &path)? {
                        ExistingEntry::Same => head.len_bytes,
                        ExistingEntry::Free => self.folder.part_bytes(&path).min(head.len_bytes),
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
                    "{n_needed} bytes are needed, and its disk has {free} left\nfree some space, or receive into another folder"
                ),
            ));
        }
        Ok(n_present)
    }

    /// Returns the name of a file or folder as text, and its path below the receiver's folder.
    fn named(&self, name: &[u8]) -> Result<(String, String), Error> {
        let name = name::check(name).map_err(|e| Error::Protocol(e.to_string()))?;
        Ok((name.to_owned(), self.order.path_of(name)))
    }

    /// Receives the files and folders that the list has announced.
    fn entries(&mut self) -> Result<(), Error> {
        loop {
            match self.recv()? {
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
            (true, there) => self.small(head, &name, &path, there == ExistingEntry::Free)?,
            (false, ExistingEntry::Free) => self.large(head, &name, &path)?,
            (false, ExistingEntry::Same) => {
                self.answer(SKIP, Vec::new())?;
                None
            }
        };
        self.summary.n_files += 1;
        self.summary.n_bytes += head.len_bytes;
        self.observer.file(&path, hash);
        Ok(())
    }

    fn answer(&mut self, n_blocks: u64, stack: Vec<[u8; 32]>) -> Result<(), Error> {
        self.order.resume(n_blocks);
        self.channel.send(&Message::Start { n_blocks, stack })?;
        self.channel.flush()
    }

    /// Receives a file of at most one block, which the sender sends without waiting for a reply.
    fn small(
        &mut self,
        head: &FileHead,
        name: &str,
        path: &str,
        is_wanted: bool,
    ) -> Result<Option<[u8; 32]>, Error> {
        let mut n = 0;
        let sent = loop {
            match self.recv()? {
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
            self.observer.bytes(n as u64);
        }
        Ok(self.order.is_hashed().then_some(sent))
    }

    fn read_block(&mut self, n: usize) -> Result<(), Error> {
        if self.buffer.len() < n {
            self.buffer.resize(n, 0);
        }
        self.channel.read_exact(&mut self.buffer[..n])?;
        self.summary.n_moved += n as u64;
        self.summary.n_copied += n as u64;
        Ok(())
    }

    /// Receives a file of several blocks. Blocks of an existing partial file are not sent again.
    fn large(
        &mut self,
        head: &FileHead,
        name: &str,
        path: &str,
    ) -> Result<Option<[u8; 32]>, Error> {
        let is_hashed = self.order.is_hashed();
        let part = self.folder.part(path, "part")?;
        let journal = self.folder.part(path, "journal")?;
        let identity = FileIdentity::new(head, path, is_hashed, self.block_log2);
        let (mut journal, mut tree) =
            Journal::open(journal.file, &part.file, &identity, head.len_bytes, |_| ())
                .map_err(Error::file("read the journal of", path))?;
        self.answer(journal.n_blocks(), tree.stack())?;
        loop {
            match self.recv() {
                Ok(Message::Block(n_bytes)) => {
                    self.block(n_bytes, path, &part, &mut journal, &mut tree)?;
                    self.observer.bytes(u64::from(n_bytes));
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

    /// Receives a block of a file: verifies its hash, writes it, and records it in the journal.
    fn block(
        &mut self,
        n_bytes: u32,
        path: &str,
        part: &PartialFile,
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
        match self.recv()? {
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

    /// Receives an unhashed block. Without TLS, the kernel moves it from the socket to the file.
    fn unhashed(
        &mut self,
        n_bytes: u32,
        at: &mut u64,
        path: &str,
        part: &PartialFile,
    ) -> Result<(), Error> {
        let Some(socket) = self.channel.plain() else {
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

/// Returns the error for a message that the protocol does not permit at this point.
fn out_of_turn() -> Error {
    Error::Protocol("a message arrived out of order".to_owned())
}

fn wrong_hash(path: &str) -> Error {
    Error::Refusing(
        Reason::Data,
        format!(
            "`{path}` is not what was hashed\nit changed while it was sent, or on its way: send it again"
        ),
    )
}
