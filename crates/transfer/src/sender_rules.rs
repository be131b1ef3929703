//! [`SenderState`] checks that the messages of a sender follow the protocol: their order, the sizes
//! that they announce, and the limits of the receiver. It does no I/O.

use std::fmt;

use crate::error::Reason;
use crate::message::{FileHead, Message, SKIP, VERSION};
use crate::name::{self, MAX_DEPTH, MAX_PATH_BYTES, NameProblem};

/// The limits that a receiver sets for transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest total size of all files in bytes.
    pub max_bytes: u64,
    /// The largest total number of files and folders.
    pub max_entries: u64,
}

impl Default for Limits {
    /// Returns the default limits: one TiB, and 100,000 files and folders.
    fn default() -> Limits {
        Limits {
            max_bytes: 1 << 40,
            max_entries: 100_000,
        }
    }
}

/// A violation of the protocol or of a limit by a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The version of the protocol is unknown.
    Version(u16),
    /// The sender has sent a message that the protocol does not permit after its last message.
    OutOfTurn,
    /// The name of a file or folder is invalid. The first value is this name.
    Name(String, NameProblem),
    /// This path is too long, or has too many nested folders.
    Deep(String),
    /// The files have more bytes in total than the receiver permits. The value is the receiver's
    /// limit.
    TooManyBytes(u64),
    /// There are more files and folders than the receiver permits. The value is the receiver's
    /// limit.
    TooManyEntries(u64),
    /// The sender has sent more or fewer files, folders or bytes than its list announced.
    NotAsListed,
    /// The sender has sent a block of a wrong length: it extends past the end of its file, or it is
    /// not the last block of its file and is shorter than the block size.
    BlockLength,
}

impl Violation {
    /// Returns the reason that the receiver sends to the sender when it refuses the transfer.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Violation::Version(_) => Reason::Version,
            Violation::Name(..) | Violation::Deep(_) => Reason::Name,
            Violation::TooManyBytes(_) | Violation::TooManyEntries(_) => Reason::Limit,
            Violation::OutOfTurn | Violation::NotAsListed | Violation::BlockLength => Reason::Data,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Version(version) => write!(
                f,
                "the sender uses protocol version {version}, the receiver {VERSION}\n\
                 use the same `onecopy` on both sides"
            ),
            Violation::OutOfTurn => f.write_str("a message arrived out of order"),
            Violation::Name(name, problem) => write!(f, "the name `{name}` {problem}\nrename it"),
            Violation::Deep(path) => write!(
                f,
                "`{path}` is nested too deep: paths have at most {MAX_PATH_BYTES} bytes and {MAX_DEPTH} folders"
            ),
            Violation::TooManyBytes(most) => write!(
                f,
                "the transfer has more than {most} bytes\nraise the limit with `receive --max-bytes`"
            ),
            Violation::TooManyEntries(most) => write!(
                f,
                "the transfer has more than {most} files and folders\nraise the limit with `receive --max-files`"
            ),
            Violation::NotAsListed => {
                f.write_str("the files differ from the list: they changed in the meantime")
            }
            Violation::BlockLength => f.write_str("a block has another length than it must have"),
        }
    }
}

impl std::error::Error for Violation {}

/// The state of the protocol: determines the messages that the sender may send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Hello,
    /// An entry of the list, which announces a file or folder; or the end of the list.
    List,
    /// The message that begins the transfer of the next file or folder, or the message that ends
    /// the current folder or the whole transfer.
    Entry,
    /// A block of the current file, or the end of this file.
    Block,
    /// The hash of the last block, which the receiver compares with the block that it has received.
    BlockHash,
    /// The sender may send no further message, because the transfer is complete.
    Nothing,
}

/// Checks each message of a sender, in the order of arrival. The receiver must call
/// [`SenderState::take`] before it acts on a message.
#[derive(Clone, Debug)]
pub struct SenderState {
    limits: Limits,
    due: Expected,
    hashed: bool,
    block_bytes: u64,
    /// The path of the current folder, as the names of its folders from the outermost one on.
    /// `path_bytes` is the length of this path in bytes.
    path: Vec<String>,
    path_bytes: usize,
    /// The sender's list so far: the size in bytes of all files together, and the number of files
    /// and folders.
    n_listed: (u64, u64),
    /// The number of bytes of all files, and the number of files and folders, whose transfer the
    /// sender has begun. Files that the sender has only announced in its list are not counted.
    n_come: (u64, u64),
    /// The number of bytes of the current file that the receiver does not have yet.
    left_bytes: u64,
    file_bytes: u64,
}

impl SenderState {
    /// Creates the state of a new transfer, in which the sender has not sent any message yet.
    #[must_use]
    pub fn new(limits: Limits) -> SenderState {
        SenderState {
            limits,
            due: Expected::Hello,
            hashed: false,
            block_bytes: 1,
            path: Vec::new(),
            path_bytes: 0,
            n_listed: (0, 0),
            n_come: (0, 0),
            left_bytes: 0,
            file_bytes: 0,
        }
    }

    /// Returns `true` if the sender sends hashes of blocks and files.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        self.hashed
    }

    /// Returns the total size in bytes of all files that the sender has announced in its list so
    /// far.
    #[must_use]
    pub fn listed_bytes(&self) -> u64 {
        self.n_listed.0
    }

    /// Returns the number of files and folders that the sender has announced in its list so far.
    #[must_use]
    pub fn listed_entries(&self) -> u64 {
        self.n_listed.1
    }

    /// Returns `true` if the current file has at most one block. The hash of the file is then
    /// computed from its bytes and not from the hashes of blocks.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.file_bytes <= self.block_bytes
    }

    /// Returns the number of bytes of the current file that the receiver does not have yet.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Returns the path of the current folder, relative to the receiver's folder.
    #[must_use]
    pub fn path(&self) -> String {
        self.path.join("/")
    }

    /// Returns the path of the entry `name` of the current folder, relative to the receiver's
    /// folder.
    #[must_use]
    pub fn path_of(&self, name: &str) -> String {
        let mut path = self.path.join("/");
        if !path.is_empty() {
            path.push('/');
        }
        path + name
    }

    /// Checks that the protocol permits `message` as the sender's next message, and updates the
    /// state.
    ///
    /// # Errors
    /// [`Violation`]. After an error, the caller must not act on further messages.
    pub fn take(&mut self, message: &Message) -> Result<(), Violation> {
        match (self.due, message) {
            (
                Expected::Hello,
                Message::Hello {
                    version,
                    hashed,
                    block_log2,
                    ..
                },
            ) => {
                if *version != VERSION {
                    return Err(Violation::Version(*version));
                }
                self.hashed = *hashed;
                self.block_bytes = 1 << block_log2;
                self.due = Expected::List;
            }
            (Expected::List | Expected::Entry, Message::Folder { name, .. }) => {
                let name = self.named(name)?;
                if self.path.len() >= MAX_DEPTH {
                    return Err(Violation::Deep(self.path_of(&name)));
                }
                self.count(0)?;
                self.path_bytes += name.len() + 1;
                self.path.push(name);
            }
            (Expected::List | Expected::Entry, Message::FolderEnd { .. }) => {
                let name = self.path.pop().ok_or(Violation::OutOfTurn)?;
                self.path_bytes -= name.len() + 1;
            }
            (Expected::List | Expected::Entry, Message::File(head)) => {
                self.named(&head.name)?;
                self.count(head.len_bytes)?;
                if self.due == Expected::Entry {
                    self.begin(head);
                }
            }
            (Expected::List, Message::EndOfList) if self.path.is_empty() => {
                self.due = Expected::Entry
            }
            (Expected::Block, Message::Block(n)) => self.block(u64::from(*n))?,
            (Expected::BlockHash, Message::BlockHash(_)) => self.due = Expected::Block,
            (Expected::Block, Message::FileEnd(_)) if self.left_bytes == 0 => {
                self.due = Expected::Entry
            }
            (Expected::Entry, Message::Done) if self.path.is_empty() => {
                if self.n_come != self.n_listed {
                    return Err(Violation::NotAsListed);
                }
                self.due = Expected::Nothing;
            }
            (
                Expected::List | Expected::Entry | Expected::Block | Expected::BlockHash,
                Message::Abort(_),
            ) => {
                self.due = Expected::Nothing;
            }
            _ => return Err(Violation::OutOfTurn),
        }
        Ok(())
    }

    /// Records the reply of the receiver for the current file. The receiver already has the first
    /// `n_blocks` blocks of the file, or the whole file if `n_blocks` is [`SKIP`].
    pub fn resume(&mut self, n_blocks: u64) {
        if n_blocks == SKIP {
            self.left_bytes = 0;
            self.due = Expected::Entry;
        } else {
            let present = n_blocks.saturating_mul(self.block_bytes);
            self.left_bytes = self.file_bytes.saturating_sub(present);
        }
    }

    fn named(&self, name: &[u8]) -> Result<String, Violation> {
        let shown = || {
            String::from_utf8_lossy(&name[..name.len().min(300)])
                .escape_debug()
                .to_string()
        };
        let taken = name::check(name).map_err(|problem| Violation::Name(shown(), problem))?;
        if self.path_bytes + taken.len() > MAX_PATH_BYTES {
            return Err(Violation::Deep(self.path_of(taken)));
        }
        Ok(taken.to_owned())
    }

    fn count(&mut self, len_bytes: u64) -> Result<(), Violation> {
        let (bytes, entries) = match self.due {
            Expected::List => &mut self.n_listed,
            _ => &mut self.n_come,
        };
        *bytes = bytes.saturating_add(len_bytes);
        *entries += 1;
        let (bytes, entries) = (*bytes, *entries);
        if self.due != Expected::List {
            if bytes > self.n_listed.0 || entries > self.n_listed.1 {
                return Err(Violation::NotAsListed);
            }
        } else if bytes > self.limits.max_bytes {
            return Err(Violation::TooManyBytes(self.limits.max_bytes));
        } else if entries > self.limits.max_entries {
            return Err(Violation::TooManyEntries(self.limits.max_entries));
        }
        Ok(())
    }

    fn begin(&mut self, head: &FileHead) {
        self.file_bytes = head.len_bytes;
        self.left_bytes = head.len_bytes;
        self.due = Expected::Block;
    }

    fn block(&mut self, n_bytes: u64) -> Result<(), Violation> {
        if n_bytes == 0 || n_bytes != self.left_bytes.min(self.block_bytes) {
            return Err(Violation::BlockLength);
        }
        self.left_bytes -= n_bytes;
        if self.hashed && !self.is_small() {
            self.due = Expected::BlockHash;
        }
        Ok(())
    }
}
