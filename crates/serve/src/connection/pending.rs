//! [`PendingHandler`]: a request whose handler is called before the request body is received.

use std::sync::Arc;

use onecopy_wire::http::HeadIndex;

use super::body_reader::BodyCoding;
use super::exchange::Exchange;
use crate::awaited::{AwaitedBody, BodyRequest, ExpectPermit};

/// A request whose handler is called before the request body is received. The handler may request
/// the body while it runs.
pub(super) struct PendingHandler {
    pub(super) exchange: Exchange,
    pub(super) awaiting: Arc<BodyRequest>,
    /// The arguments for the call to the handler; `None` after the handler was called.
    pub(super) call: Option<Box<HandlerCall>>,
    /// The coding of a body that the server has not requested from the client yet. The coding
    /// determines where the body ends. `None` after the server has requested the body.
    pub(super) unasked: Option<BodyCoding>,
}

/// The arguments for a call to the handler. During the call, the thread does not own the
/// connection, so that another thread can process its events.
pub(super) struct HandlerCall {
    pub(super) head: Vec<u8>,
    pub(super) index: HeadIndex,
    pub(super) body: AwaitedBody,
    pub(super) _permit: ExpectPermit,
}

impl PendingHandler {
    /// Creates the state of a request whose handler runs, and no longer waits for the request's
    /// body. Either the body was received completely, or the handler has received an error.
    pub(super) fn settled(exchange: Exchange, awaiting: Arc<BodyRequest>) -> PendingHandler {
        PendingHandler {
            exchange,
            awaiting,
            call: None,
            unasked: None,
        }
    }
}
