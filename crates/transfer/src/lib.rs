//! Files and folders from one machine to another: hashed on the way, resumed after a break, never outside of their folder.
//!
//! | module | what it holds |
//! |---|---|
//! | [`message`] | what the two ends say, as bytes |
//! | [`order`] | the order in which it may be said, sizes and limits: what a sender may not do; no I/O |
//! | [`name`] | which names are taken |
//! | [`tree`] | BLAKE3 by blocks |
//! | [`journal`] | what stands beside a file that is not whole yet |
//! | [`code`] | the one-time code |
//! | [`link`] | a connection, plain or TLS |
//! | [`handshakes`] | handshakes of several senders at once |
//! | [`identity`] | certificates made on the spot, and their fingerprints |
//! | [`folder`] | the receiver's folder |
//! | [`walk`] | the sender's files |
//! | [`sender`], [`receiver`] | the two ends |
//! | [`watch`] | how far it is, told to whoever shows it |
//! | [`error`] | the one error type of this room |
//!
//! The protocol is told in `docs/reference/transfer-protocol.md`.
#![forbid(unsafe_code)]

pub mod code;
pub mod error;
pub mod folder;
pub mod handshakes;
pub mod identity;
pub mod journal;
pub mod link;
pub mod message;
pub mod name;
pub mod order;
pub mod receiver;
pub mod sender;
pub mod tree;
pub mod walk;
pub mod watch;

pub use code::Code;
pub use error::{Error, Reason};
pub use handshakes::{HandshakeLimits, Handshakes};
pub use link::Link;
pub use order::Limits;
pub use receiver::{Greeted, Receiver, ReceiverOptions};
pub use sender::{SenderOptions, send};
pub use watch::{Phase, Summary, Watch};
