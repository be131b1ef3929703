//! HTTP/1.1 messages (RFC 9110, RFC 9112), read strictly: what two readers could take two ways is refused, because that
//! is how a request is smuggled past the one in front.
//!
//! | module | what it holds |
//! |---|---|
//! | [`head`] | [`HeadParser`]: a request head over a growing buffer, each byte looked at once |
//! | [`index`] | [`HeadIndex`]: where everything of a head stands; it may go to another thread beside the buffer |
//! | [`request`] | [`RequestHead`]: method, target, fields and framing, borrowed from that buffer |
//! | [`error`] | [`HeadError`], [`ChunkedError`] and the status each asks for |
//! | [`field`] | which bytes a name, a value and an authority may hold |
//! | [`response`] | [`ResponseHead`]: status line and fields, checked as they are written |
//! | [`chunk_writer`] | the chunked coding, out: the size line that a finished chunk is sent behind, the last chunk with its trailer |
//! | [`chunk_reader`] | the chunked coding, in: [`ChunkedReader`], strict and incremental |
//! | [`range`] | what a `Range` field asks for, in bytes of a known length |
//! | [`conditional`] | entity tags, dates, and what a request with conditions is to be answered |
//! | [`coding`] | content codings that a client takes |

pub mod chunk_reader;
pub mod chunk_writer;
pub mod coding;
pub mod conditional;
pub mod error;
pub mod field;
mod framing;
pub mod head;
pub mod index;
pub mod range;
pub mod request;
pub mod response;

pub use chunk_reader::{ChunkedLimits, ChunkedReader, Piece};
pub use chunk_writer::{ChunkHead, write_last_chunk};
pub use coding::coding_quality;
pub use conditional::{Conditions, EntityTag, Validators, Verdict, date_text, parse_date};
pub use error::{ChunkedError, HeadError, ResponseError};
pub use head::{HeadLimits, HeadParser};
pub use index::HeadIndex;
pub use range::{ByteRange, MOST_RANGES, Ranges, ranges};
pub use request::{BodyFraming, Connection, Method, RequestHead, TargetForm, Version};
pub use response::{ResponseHead, reason_phrase};
