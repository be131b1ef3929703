//! Transfers files and folders from one machine to another: [`send()`] and [`Receiver`]. Files are
//! hashed during the transfer. An interrupted transfer can be continued. No file is written outside
//! of the receiver's folder.
//!
//! | module | contents |
//! |---|---|
//! | [`message`] | the messages of sender and receiver, as bytes |
//! | [`sender_rules`] | validation of the sender's message sequence, sizes and limits; no I/O |
//! | [`name`] | validation of the names of files and folders |
//! | [`block_hashes`] | the BLAKE3 hash of a file, from the hashes of its blocks |
//! | [`journal`] | the record of the received blocks of an incomplete file |
//! | [`code`] | the one-time code that a sender presents |
//! | [`channel`] | a connection with or without TLS |
//! | [`handshakes`] | handshakes of several senders at the same time |
//! | [`identity`] | temporary certificates, and their fingerprints |
//! | [`folder`] | the receiver's folder |
//! | [`source_files`] | the files and folders that the sender reads |
//! | [`sender`], [`receiver`] | the sender and the receiver of a transfer |
//! | [`observer`] | progress reports |
//! | [`error`] | the error type of this crate |
//!
//! The protocol is described in `docs/reference/transfer-protocol.md`.
#![forbid(unsafe_code)]

pub mod block_hashes;
pub mod channel;
pub mod code;
pub mod error;
pub mod folder;
pub mod handshakes;
pub mod identity;
pub mod journal;
pub mod message;
pub mod name;
pub mod observer;
pub mod receiver;
pub mod sender;
pub mod sender_rules;
pub mod source_files;

pub use channel::Channel;
pub use code::Code;
pub use error::{Error, Reason};
pub use handshakes::{HandshakeLimits, Handshakes};
pub use observer::{Observer, Phase, Summary};
pub use receiver::{Greeted, Receiver, ReceiverOptions};
pub use sender::{SenderOptions, send};
pub use sender_rules::Limits;
