//! [`PendingHandler`]: a request whose handler is called before the body is received.

use std::sync::Arc;

use onecopy_wire::http::HeadIndex;

use super::body_reader::BodyCoding;
use super::exchange::Exchange;
use crate::awaited::{AwaitedBody, BodyRequest, ExpectPermit};

/// A request whose handler is called before the body is received. The handler may request the body.
pub(super) struct PendingHandler {
    pub(super) exchange: Exchange,
    pub(super) awaiting: Arc<BodyRequest>,
    /// The arguments of the call; `None` after the handler was called.
    pub(super) call: Option<Box<HandlerCall>>,
    /// The coding of the body, which determines its end; `None` after the body was requested from
    /// the client.
    pub(super) unasked: Option<BodyCoding>,
}

/// The arguments of a call of the handler. The connection is released during the call, so that
/// another thread can own it.
pub(super) struct HandlerCall {
    pub(super) head: Vec<u8>,
    pub(super) index: HeadIndex,
    pub(super) body: AwaitedBody,
    pub(super) _permit: ExpectPermit,
}

impl PendingHandler {
    /// Creates the state of a request whose handler runs, and whose body needs no further step. The
    /// body was received completely, or an error was passed to the handler.
    pub(super) fn settled(exchange: Exchange, awaiting: Arc<BodyRequest>) -> PendingHandler {
        PendingHandler {
            exchange,
            awaiting,
            call: None,
            unasked: None,
        }
    }
}
