//! What the two ends say, as bytes: a kind, the length of the body (32 bits, little end first), the body.

use std::fmt;

use crate::error::Reason;

/// What the protocol calls itself at the start of a [`Message::Hello`].
const MAGIC: &[u8; 8] = b"onecopyT";
/// The version spoken here.
pub const VERSION: u16 = 1;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 5;
/// The most a body may have, but for the bytes of a file.
pub const MAX_BODY_BYTES: usize = 4096;
/// The longest code.
pub const MAX_CODE_BYTES: usize = 128;
/// Blocks are at least this long, as a power of two: a chunk of BLAKE3's.
pub const MIN_BLOCK_LOG2: u8 = 10;
/// And at most this: both ends hold one.
pub const MAX_BLOCK_LOG2: u8 = 22;

/// A moment: seconds since 1970, and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds, before 1970 below zero.
    pub seconds: i64,
    /// Below 10⁹.
    pub nanoseconds: u32,
}

/// A file as the sender tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// In bytes.
    pub len_bytes: u64,
    /// When it was modified.
    pub modified: Time,
    /// Permissions: the lower nine bits.
    pub mode: u16,
    /// Its name in its folder.
    pub name: Vec<u8>,
}

/// What one end says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Sender, first of all.
    Hello {
        /// [`VERSION`].
        version: u16,
        /// Whether blocks and files come with their hashes.
        hashed: bool,
        /// Bytes of a block, as a power of two.
        block_log2: u8,
        /// The one-time code; empty for none.
        code: Vec<u8>,
    },
    /// Sender: what follows is in this folder of the present one.
    Folder {
        /// Permissions.
        mode: u16,
        /// Its name.
        name: Vec<u8>,
    },
    /// Sender: the folder ends.
    FolderEnd {
        /// When the folder was modified.
        modified: Time,
    },
    /// Sender: a file. In the list it is but told of; later its blocks follow.
    File(FileHead),
    /// Sender: the list is whole.
    EndOfList,
    /// Sender: bytes of the file follow, so many; a whole block but at the end.
    Block(u32),
    /// Sender: the hash of the block that came, as a part of its file's tree.
    BlockHash([u8; 32]),
    /// Sender: the file is whole; its BLAKE3, or zeros.
    FileEnd([u8; 32]),
    /// Sender: all files are.
    Done,
    /// Sender: it cannot go on, in words for people. What the file at hand has is worth nothing.
    Abort(String),
    /// Receiver, to [`Message::Hello`].
    Welcome {
        /// [`VERSION`].
        version: u16,
    },
    /// Receiver, to [`Message::EndOfList`]: go on. So many bytes are there already.
    Accepted {
        /// Bytes of files and of parts.
        n_present: u64,
    },
    /// Receiver, to a [`Message::File`] of more than a block: go on behind so many blocks.
    Start {
        /// Blocks that are there; [`SKIP`]: the whole file is.
        n_blocks: u64,
        /// The tree over them.
        stack: Vec<[u8; 32]>,
    },
    /// Receiver, to [`Message::Done`]: all is on the disk.
    Finished,
    /// Receiver: no, and why, in words for people.
    Refused(Reason, String),
}

/// In [`Message::Start`]: the file is there.
pub const SKIP: u64 = u64::MAX;

/// What cannot be read as a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// No message has this kind.
    Kind(u8),
    /// A body of a length that its kind cannot have.
    Length,
    /// It does not begin as the protocol does: the other end is something else.
    Magic,
    /// A number or text that it cannot have.
    Value,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Kind(kind) => write!(f, "a message of no known kind ({kind})"),
            Malformed::Length => f.write_str("a message of the wrong length"),
            Malformed::Magic => f.write_str("this is not the protocol of `onecopy send`"),
            Malformed::Value => f.write_str("a message with a value out of range"),
        }
    }
}

impl std::error::Error for Malformed {}

/// The header of a message: its kind, and the length of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which.
    pub kind: u8,
    /// Bytes behind the header.
    pub len_bytes: u32,
}

impl Header {
    /// Reads a header; refuses a length that is none before any of it is read.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(bytes: [u8; HEADER_BYTES]) -> Result<Header, Malformed> {
        let [kind, len @ ..] = bytes;
        let len_bytes = u32::from_le_bytes(len);
        let most = match kind {
            kind::BLOCK => 1 << MAX_BLOCK_LOG2,
            kind::HELLO..=kind::REFUSED => MAX_BODY_BYTES as u32,
            _ => return Err(Malformed::Kind(kind)),
        };
        match len_bytes <= most {
            true => Ok(Header { kind, len_bytes }),
            false => Err(Malformed::Length),
        }
    }

    /// Whether what follows are bytes of a file, and no body.
    #[must_use]
    pub fn is_block(self) -> bool {
        self.kind == kind::BLOCK
    }
}

mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const FOLDER: u8 = 2;
    pub(super) const FOLDER_END: u8 = 3;
    pub(super) const FILE: u8 = 4;
    pub(super) const END_OF_LIST: u8 = 5;
    pub(super) const BLOCK: u8 = 6;
    pub(super) const BLOCK_HASH: u8 = 7;
    pub(super) const FILE_END: u8 = 8;
    pub(super) const DONE: u8 = 9;
    pub(super) const ABORT: u8 = 10;
    pub(super) const WELCOME: u8 = 11;
    pub(super) const ACCEPTED: u8 = 12;
    pub(super) const START: u8 = 13;
    pub(super) const FINISHED: u8 = 14;
    pub(super) const REFUSED: u8 = 15;
}

impl Message {
    /// Writes it behind `out`. Of a [`Message::Block`] that is the header; the bytes follow.
    pub fn write(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let kind = match self {
            Message::Hello {
                version,
                hashed,
                block_log2,
                code,
            } => {
                out.extend_from_slice(MAGIC);
                out.extend_from_slice(&version.to_le_bytes());
                out.extend_from_slice(&[u8::from(*hashed), *block_log2]);
                out.extend_from_slice(code);
                kind::HELLO
            }
            Message::Folder { mode, name } => {
                out.extend_from_slice(&mode.to_le_bytes());
                out.extend_from_slice(name);
                kind::FOLDER
            }
            Message::FolderEnd { modified } => {
                write_time(*modified, out);
                kind::FOLDER_END
            }
            Message::File(head) => {
                out.extend_from_slice(&head.len_bytes.to_le_bytes());
                write_time(head.modified, out);
                out.extend_from_slice(&head.mode.to_le_bytes());
                out.extend_from_slice(&head.name);
                kind::FILE
            }
            Message::EndOfList => kind::END_OF_LIST,
            Message::Block(_) => kind::BLOCK,
            Message::BlockHash(hash) => {
                out.extend_from_slice(hash);
                kind::BLOCK_HASH
            }
            Message::FileEnd(hash) => {
                out.extend_from_slice(hash);
                kind::FILE_END
            }
            Message::Done => kind::DONE,
            Message::Abort(words) => {
                out.extend_from_slice(short(words).as_bytes());
                kind::ABORT
            }
            Message::Welcome { version } => {
                out.extend_from_slice(&version.to_le_bytes());
                kind::WELCOME
            }
            Message::Accepted { n_present } => {
                out.extend_from_slice(&n_present.to_le_bytes());
                kind::ACCEPTED
            }
            Message::Start { n_blocks, stack } => {
                out.extend_from_slice(&n_blocks.to_le_bytes());
                out.extend(stack.iter().flatten());
                kind::START
            }
            Message::Finished => kind::FINISHED,
            Message::Refused(reason, words) => {
                out.push(reason.number());
                out.extend_from_slice(short(words).as_bytes());
                kind::REFUSED
            }
        };
        let len_bytes = match self {
            Message::Block(n) => *n,
            _ => u32::try_from(out.len() - begin - HEADER_BYTES).unwrap_or(u32::MAX),
        };
        out[begin] = kind;
        out[begin + 1..begin + HEADER_BYTES].copy_from_slice(&len_bytes.to_le_bytes());
    }

    /// Reads a message whose body is whole; of a block the body is not looked at.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(header: Header, body: &[u8]) -> Result<Message, Malformed> {
        let mut rest = Rest(body);
        let message = match header.kind {
            kind::HELLO => {
                if rest.take(MAGIC.len())? != MAGIC {
                    return Err(Malformed::Magic);
                }
                let version = u16::from_le_bytes(rest.array()?);
                let [hashed, block_log2] = rest.array()?;
                if hashed > 1 || !(MIN_BLOCK_LOG2..=MAX_BLOCK_LOG2).contains(&block_log2) {
                    return Err(Malformed::Value);
                }
                let code = rest.all().to_vec();
                if code.len() > MAX_CODE_BYTES {
                    return Err(Malformed::Length);
                }
                Message::Hello {
                    version,
                    hashed: hashed == 1,
                    block_log2,
                    code,
                }
            }
            kind::FOLDER => Message::Folder {
                mode: mode(rest.array()?)?,
                name: rest.all().to_vec(),
            },
            kind::FOLDER_END => Message::FolderEnd {
                modified: rest.time()?,
            },
            kind::FILE => Message::File(FileHead {
                len_bytes: u64::from_le_bytes(rest.array()?),
                modified: rest.time()?,
                mode: mode(rest.array()?)?,
                name: rest.all().to_vec(),
            }),
            kind::END_OF_LIST => Message::EndOfList,
            kind::BLOCK => return Ok(Message::Block(header.len_bytes)),
            kind::BLOCK_HASH => Message::BlockHash(rest.array()?),
            kind::FILE_END => Message::FileEnd(rest.array()?),
            kind::DONE => Message::Done,
            kind::ABORT => Message::Abort(rest.words()?),
            kind::WELCOME => Message::Welcome {
                version: u16::from_le_bytes(rest.array()?),
            },
            kind::ACCEPTED => Message::Accepted {
                n_present: u64::from_le_bytes(rest.array()?),
            },
            kind::START => {
                let n_blocks = u64::from_le_bytes(rest.array()?);
                let (stack, []) = rest.all().as_chunks::<32>() else {
                    return Err(Malformed::Length);
                };
                // One for each level of the tree.
                if stack.len() > 64 {
                    return Err(Malformed::Length);
                }
                Message::Start {
                    n_blocks,
                    stack: stack.to_vec(),
                }
            }
            kind::FINISHED => Message::Finished,
            kind::REFUSED => {
                let [number] = rest.array()?;
                let reason = Reason::of(number).ok_or(Malformed::Value)?;
                Message::Refused(reason, rest.words()?)
            }
            kind => return Err(Malformed::Kind(kind)),
        };
        match rest.0 {
            [] => Ok(message),
            _ => Err(Malformed::Length),
        }
    }
}

fn mode(bytes: [u8; 2]) -> Result<u16, Malformed> {
    match u16::from_le_bytes(bytes) {
        mode if mode <= 0o777 => Ok(mode),
        _ => Err(Malformed::Value),
    }
}

fn write_time(time: Time, out: &mut Vec<u8>) {
    out.extend_from_slice(&time.seconds.to_le_bytes());
    out.extend_from_slice(&time.nanoseconds.to_le_bytes());
}

/// Words that fit into a body with something before them.
fn short(words: &str) -> &str {
    let mut end = words.len().min(MAX_BODY_BYTES - 8);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    &words[..end]
}

/// What is left of a body.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(Malformed::Length)?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed::Length)
    }

    fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn time(&mut self) -> Result<Time, Malformed> {
        let seconds = i64::from_le_bytes(self.array()?);
        match u32::from_le_bytes(self.array()?) {
            nanoseconds if nanoseconds < 1_000_000_000 => Ok(Time {
                seconds,
                nanoseconds,
            }),
            _ => Err(Malformed::Value),
        }
    }

    fn words(&mut self) -> Result<String, Malformed> {
        let words = String::from_utf8(self.all().to_vec());
        words.map_err(|_| Malformed::Value)
    }
}
