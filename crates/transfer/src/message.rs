//! [`Message`]: the messages of the protocol, and their form as bytes. A message consists of its
//! kind (one byte), the length of its body (32 bits, little-endian), and the body.

use std::fmt;

use crate::error::Reason;

/// The magic bytes at the start of a [`Message::Hello`].
const MAGIC: &[u8; 8] = b"onecopyT";
/// The version of the protocol.
pub const VERSION: u16 = 1;
/// The size in bytes of a message's header.
pub const HEADER_BYTES: usize = 5;
/// The largest size in bytes of a message's body. The bytes of a file after a [`Message::Block`]
/// are not part of a body.
pub const MAX_BODY_BYTES: usize = 4096;
/// The length in bytes of the longest one-time code that a message can contain.
pub const MAX_CODE_BYTES: usize = 128;
/// The base-2 logarithm of the smallest block size in bytes. A block of this size is a BLAKE3
/// chunk.
pub const MIN_BLOCK_LOG2: u8 = 10;
/// The base-2 logarithm of the largest block size in bytes. The receiver keeps one block in memory,
/// and the sender up to three.
pub const MAX_BLOCK_LOG2: u8 = 22;

/// The modification time of a file: seconds since 1970-01-01 in UTC, and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTime {
    /// The seconds since 1970-01-01 00:00 UTC; negative for earlier times.
    pub seconds: i64,
    /// The nanoseconds after `seconds`, below 10⁹.
    pub nanoseconds: u32,
}

/// The properties of a file, which the sender announces before it sends the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// The length of the file in bytes.
    pub len_bytes: u64,
    /// The modification time of the file.
    pub modified: FileTime,
    /// The permissions of the file: the lower nine bits of its mode.
    pub mode: u16,
    /// The name of the file, without its folder.
    pub name: Vec<u8>,
}

/// A message of the protocol, from the sender or the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// From the sender: the first message.
    Hello {
        /// The version of the protocol: [`VERSION`].
        version: u16,
        /// `true` if blocks and files have hashes.
        hashed: bool,
        /// The base-2 logarithm of the block size in bytes.
        block_log2: u8,
        /// The one-time code; empty if the sender has none.
        code: Vec<u8>,
    },
    /// From the sender: a folder inside the current folder. The new folder becomes the current one;
    /// the messages that follow are about its entries.
    Folder {
        /// The permissions of the folder.
        mode: u16,
        /// The name of the folder.
        name: Vec<u8>,
    },
    /// From the sender: the end of the current folder. Its parent becomes the current folder.
    FolderEnd {
        /// The modification time of the folder.
        modified: FileTime,
    },
    /// From the sender: a file in the current folder. Before [`Message::EndOfList`], the message
    /// only announces the file. After `EndOfList`, the blocks of the file follow.
    File(FileHead),
    /// From the sender: the list of files is complete.
    EndOfList,
    /// From the sender: a block of the current file. The value is the number of bytes of the block,
    /// which follow this message. Only the last block of a file may be shorter than the block size.
    Block(u32),
    /// From the sender: the hash of the block that was just sent, as a node of the file's hash
    /// tree.
    BlockHash([u8; 32]),
    /// From the sender: the current file is complete. The value is the BLAKE3 hash of the file, or
    /// zeros if files are not hashed.
    FileEnd([u8; 32]),
    /// From the sender: all files are complete.
    Done,
    /// From the sender: the sender cannot continue. The value is a text for the user that describes
    /// the reason. The received bytes of the current file are invalid.
    Abort(String),
    /// From the receiver: the reply to [`Message::Hello`].
    Welcome {
        /// The version of the protocol: [`VERSION`].
        version: u16,
    },
    /// From the receiver: the reply to [`Message::EndOfList`]. The sender then sends the files.
    Accepted {
        /// The number of bytes that the receiver already has, in complete and partial files.
        n_present: u64,
    },
    /// From the receiver: the reply to a [`Message::File`] whose file has more than one block. The
    /// sender then sends the blocks that the receiver lacks.
    Start {
        /// The number of blocks that the receiver already has; [`SKIP`] if it has the whole file.
        n_blocks: u64,
        /// Hashes from the file's hash tree. These nodes together cover exactly the `n_blocks`
        /// blocks that the receiver already has.
        stack: Vec<[u8; 32]>,
    },
    /// From the receiver: the reply to [`Message::Done`], when all files are synced to disk.
    Finished,
    /// From the receiver: the receiver refuses the transfer, with the reason and a message for the
    /// user.
    Refused(Reason, String),
}

/// The value of `n_blocks` in [`Message::Start`] with which the receiver reports that it already
/// has the whole file.
pub const SKIP: u64 = u64::MAX;

/// The reason why received bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The kind of message is unknown.
    Kind(u8),
    /// The length of the body is not valid for this kind of message.
    Length,
    /// The magic bytes are missing, so the peer uses another protocol.
    Magic,
    /// A number or a text in the message is not valid.
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

/// The header of a message, which precedes its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of the message.
    pub kind: u8,
    /// The number of bytes that follow the header.
    pub len_bytes: u32,
}

impl Header {
    /// Parses a header. An invalid length is reported here, before any byte of the body is read.
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

    /// Returns `true` if the header is that of a block: bytes of a file follow instead of a body.
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
    /// Appends the message to `out`. For a [`Message::Block`], only the header is appended. The
    /// caller must send the bytes of the block after the header.
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

    /// Parses a message, given its header and its complete body. The bytes of a block are not
    /// parsed.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(header: Header, body: &[u8]) -> Result<Message, Malformed> {
        let mut rest = BodyReader(body);
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
                // The tree has at most 64 levels, and `stack` has at most one node for each level.
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

fn write_time(time: FileTime, out: &mut Vec<u8>) {
    out.extend_from_slice(&time.seconds.to_le_bytes());
    out.extend_from_slice(&time.nanoseconds.to_le_bytes());
}

/// Truncates a message for the user so that it fits into the body of a [`Message`], together with
/// the other fields.
fn short(words: &str) -> &str {
    let mut end = words.len().min(MAX_BODY_BYTES - 8);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    &words[..end]
}

/// The bytes of a message's body that were not parsed yet.
struct BodyReader<'a>(&'a [u8]);

impl<'a> BodyReader<'a> {
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

    fn time(&mut self) -> Result<FileTime, Malformed> {
        let seconds = i64::from_le_bytes(self.array()?);
        match u32::from_le_bytes(self.array()?) {
            nanoseconds if nanoseconds < 1_000_000_000 => Ok(FileTime {
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
