//! The order in which a sender may speak, and how much: what it said first binds what it says later. No I/O.

use std::fmt;

use crate::error::Reason;
use crate::message::{FileHead, Message, SKIP, VERSION};
use crate::name::{self, MAX_DEPTH, MAX_PATH_BYTES, NameProblem};

/// What a receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files.
    pub max_bytes: u64,
    /// Files and folders.
    pub max_entries: u64,
}

impl Default for Limits {
    /// A TiB, and 100,000.
    fn default() -> Limits {
        Limits {
            max_bytes: 1 << 40,
            max_entries: 100_000,
        }
    }
}

/// What a sender may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Another version.
    Version(u16),
    /// A message where another is due.
    OutOfTurn,
    /// A name.
    Name(String, NameProblem),
    /// A path of names that is too long, or folders nested too deep.
    Deep(String),
    /// More bytes than the receiver takes.
    TooManyBytes(u64),
    /// More files than the receiver takes.
    TooManyEntries(u64),
    /// More files or bytes come than the list told of, or fewer.
    NotAsListed,
    /// A block longer than what its file has left, or shorter than a block is.
    BlockLength,
}

impl Violation {
    /// Its reason on the wire.
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
                "the sender speaks version {version}, the receiver {VERSION}\nuse the same `onecopy` on both sides"
            ),
            Violation::OutOfTurn => f.write_str("a message came where another is due"),
            Violation::Name(name, problem) => write!(f, "the name `{name}` {problem}\nrename it"),
            Violation::Deep(path) => write!(
                f,
                "`{path}` stands too deep: paths have at most {MAX_PATH_BYTES} bytes and {MAX_DEPTH} folders"
            ),
            Violation::TooManyBytes(most) => write!(
                f,
                "more than {most} bytes come\nlet it take more with `receive --max-bytes`"
            ),
            Violation::TooManyEntries(most) => write!(
                f,
                "more than {most} files and folders come\nlet it take more with `receive --max-files`"
            ),
            Violation::NotAsListed => {
                f.write_str("other files come than were listed: they changed meanwhile")
            }
            Violation::BlockLength => f.write_str("a block has another length than it must have"),
        }
    }
}

impl std::error::Error for Violation {}

/// What is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Hello,
    /// Entries of the list.
    List,
    /// Entries with their bytes.
    Entry,
    /// A block of the file at hand, or its end.
    Block,
    /// The hash of the block that came.
    BlockHash,
    /// Nothing: all is done.
    Nothing,
}

/// Follows a sender, message by message. Whoever holds it does what the messages say only once they are taken here.
#[derive(Clone, Debug)]
pub struct Order {
    limits: Limits,
    due: Due,
    hashed: bool,
    block_bytes: u64,
    /// Names of the folders it is in, and the bytes of the path they make.
    path: Vec<String>,
    path_bytes: usize,
    /// Told in the list.
    n_listed: (u64, u64),
    /// Come since.
    n_come: (u64, u64),
    /// Of the file at hand.
    left_bytes: u64,
    file_bytes: u64,
}

impl Order {
    /// Before the first message.
    #[must_use]
    pub fn new(limits: Limits) -> Order {
        Order {
            limits,
            due: Due::Hello,
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

    /// Whether blocks come with hashes.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        self.hashed
    }

    /// Bytes of all files of the list so far.
    #[must_use]
    pub fn listed_bytes(&self) -> u64 {
        self.n_listed.0
    }

    /// Files and folders of the list so far.
    #[must_use]
    pub fn listed_entries(&self) -> u64 {
        self.n_listed.1
    }

    /// Whether the file at hand has one block at most, whose hash is that of the file.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.file_bytes <= self.block_bytes
    }

    /// Bytes of the file at hand that are to come.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// The path of the present folder.
    #[must_use]
    pub fn path(&self) -> String {
        self.path.join("/")
    }

    /// The path of `name` in the present folder.
    #[must_use]
    pub fn path_of(&self, name: &str) -> String {
        let mut path = self.path.join("/");
        if !path.is_empty() {
            path.push('/');
        }
        path + name
    }

    /// A message comes.
    ///
    /// # Errors
    /// [`Violation`]: nothing of what follows is to be believed.
    pub fn take(&mut self, message: &Message) -> Result<(), Violation> {
        match (self.due, message) {
            (
                Due::Hello,
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
                self.due = Due::List;
            }
            (Due::List | Due::Entry, Message::Folder { name, .. }) => {
                let name = self.named(name)?;
                if self.path.len() >= MAX_DEPTH {
                    return Err(Violation::Deep(self.path_of(&name)));
                }
                self.count(0)?;
                self.path_bytes += name.len() + 1;
                self.path.push(name);
            }
            (Due::List | Due::Entry, Message::FolderEnd { .. }) => {
                let name = self.path.pop().ok_or(Violation::OutOfTurn)?;
                self.path_bytes -= name.len() + 1;
            }
            (Due::List | Due::Entry, Message::File(head)) => {
                self.named(&head.name)?;
                self.count(head.len_bytes)?;
                if self.due == Due::Entry {
                    self.begin(head);
                }
            }
            (Due::List, Message::EndOfList) if self.path.is_empty() => self.due = Due::Entry,
            (Due::Block, Message::Block(n)) => self.block(u64::from(*n))?,
            (Due::BlockHash, Message::BlockHash(_)) => self.due = Due::Block,
            (Due::Block, Message::FileEnd(_)) if self.left_bytes == 0 => self.due = Due::Entry,
            (Due::Entry, Message::Done) if self.path.is_empty() => {
                if self.n_come != self.n_listed {
                    return Err(Violation::NotAsListed);
                }
                self.due = Due::Nothing;
            }
            (Due::List | Due::Entry | Due::Block | Due::BlockHash, Message::Abort(_)) => {
                self.due = Due::Nothing;
            }
            _ => return Err(Violation::OutOfTurn),
        }
        Ok(())
    }

    /// The file at hand goes on behind so many blocks, as the receiver told the sender ([`SKIP`]: the file is there).
    pub fn resume(&mut self, n_blocks: u64) {
        if n_blocks == SKIP {
            self.left_bytes = 0;
            self.due = Due::Entry;
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
            Due::List => &mut self.n_listed,
            _ => &mut self.n_come,
        };
        *bytes = bytes.saturating_add(len_bytes);
        *entries += 1;
        let (bytes, entries) = (*bytes, *entries);
        if self.due != Due::List {
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
        self.due = Due::Block;
    }

    fn block(&mut self, n_bytes: u64) -> Result<(), Violation> {
        if n_bytes == 0 || n_bytes != self.left_bytes.min(self.block_bytes) {
            return Err(Violation::BlockLength);
        }
        self.left_bytes -= n_bytes;
        if self.hashed && !self.is_small() {
            self.due = Due::BlockHash;
        }
        Ok(())
    }
}
