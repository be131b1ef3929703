//! HTTP/1.1 messages (RFC 9110, RFC 9112). [`HeadParser`] and [`ChunkedReader`] parse requests, and
//! [`ResponseHead`] writes response heads. A message that two parsers could interpret differently
//! is rejected. Otherwise an attacker could send a request that a proxy and this server understand
//! differently (request smuggling).
//!
//! | module | contents |
//! |---|---|
//! | [`head`] | [`HeadParser`]: parses a request head while its bytes arrive in a buffer |
//! | [`index`] | [`HeadIndex`]: the positions of the parts of a request head in its buffer |
//! | [`request`] | [`RequestHead`]: method, target, fields and framing, borrowed from the buffer |
//! | [`error`] | [`HeadError`], [`ChunkedError`], and the statuses of the responses to them |
//! | [`field`] | the bytes that are permitted in field names, field values and authorities |
//! | [`response`] | [`ResponseHead`]: writes a status line and fields, and validates them |
//! | [`chunk_writer`] | writes the chunked coding: the size line of a chunk, the last chunk and its trailer |
//! | [`chunk_reader`] | [`ChunkedReader`]: decodes the chunked coding, strictly and incrementally |
//! | [`range`] | evaluates a `Range` field for a representation of known length |
//! | [`conditional`] | entity tags, dates, and the evaluation of conditional requests |
//! | [`coding`] | the content codings that a client accepts |

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

pub use chunk_reader::{BodyChunk, ChunkedLimits, ChunkedReader};
pub use chunk_writer::{ChunkHead, write_last_chunk};
pub use coding::coding_quality;
pub use conditional::{Conditions, EntityTag, Validators, Verdict, date_text, parse_date};
pub use error::{ChunkedError, HeadError, ResponseError};
pub use head::{HeadLimits, HeadParser};
pub use index::HeadIndex;
pub use range::{ByteRange, MOST_RANGES, Ranges, ranges};
pub use request::{BodyFraming, Connection, Method, RequestHead, TargetForm, Version};
pub use response::{ResponseHead, reason_phrase};
