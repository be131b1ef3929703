//! Requests that are with their handler before their body has come.

use std::sync::Arc;

use onecopy_wire::http::HeadIndex;

use super::body_reader::BodyCoding;
use super::exchange::Exchange;
use crate::awaited::{AwaitedBody, BodyRequest, ExpectPermit};

/// A request that its handler has, as the connection sees it.
pub(super) struct PendingHandler {
    pub(super) exchange: Exchange,
    pub(super) awaiting: Arc<BodyRequest>,
    /// The handler was not begun yet.
    pub(super) call: Option<Box<HandlerCall>>,
    /// The body was not requested yet.
    pub(super) unasked: Option<BodyCoding>,
}

/// A call of the handler, for which a thread lets go of the connection.
pub(super) struct HandlerCall {
    pub(super) head: Vec<u8>,
    pub(super) index: HeadIndex,
    pub(super) body: AwaitedBody,
    pub(super) _permit: ExpectPermit,
}

impl PendingHandler {
    /// One whose body has come, or will not.
    pub(super) fn settled(exchange: Exchange, awaiting: Arc<BodyRequest>) -> PendingHandler {
        PendingHandler {
            exchange,
            awaiting,
            call: None,
            unasked: None,
        }
    }
}
