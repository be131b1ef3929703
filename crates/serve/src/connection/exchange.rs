//! [`Exchange`]: the properties of a request that are needed to send and log its response.
//! [`CutReason`]: the reason why a connection ended early.

use super::logged_request::LoggedRequest;
use crate::access::Outcome;
use crate::response::StreamEnd;
use crate::response_writer::WriteError;

/// The properties of a request that are needed to send its response and to log it. They are kept
/// after the request's head is discarded.
pub(super) struct Exchange {
    pub(super) is_head: bool,
    pub(super) http_1_0: bool,
    pub(super) keep_alive: bool,
    pub(super) started_us: u64,
    /// The request's method, target and other data for the access log; `None` if the server has no
    /// access log.
    pub(super) names: Option<LoggedRequest>,
    pub(super) outcome: Outcome,
}

/// The properties of a request that are needed to write the head of its response.
#[derive(Clone, Copy)]
pub(super) struct AnswerTerms {
    pub(super) start: u64,
    pub(super) is_head: bool,
    pub(super) http_1_0: bool,
    pub(super) keep_alive: bool,
}

impl AnswerTerms {
    pub(super) fn of(exchange: &Exchange, start: u64) -> AnswerTerms {
        AnswerTerms {
            start,
            is_head: exchange.is_head,
            http_1_0: exchange.http_1_0,
            keep_alive: exchange.keep_alive,
        }
    }
}

/// The reason why a connection ended before the end of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutReason {
    Client,
    Stalled,
    Stopped,
}

impl CutReason {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            CutReason::Client => Outcome::ClientGone,
            CutReason::Stalled => Outcome::Stalled,
            CutReason::Stopped => Outcome::Stopped,
        }
    }

    pub(super) fn stream_end(self) -> StreamEnd {
        match self {
            CutReason::Client => StreamEnd::ClientGone,
            CutReason::Stalled => StreamEnd::Stalled,
            CutReason::Stopped => StreamEnd::Stopped,
        }
    }
}

impl From<CutReason> for WriteError {
    fn from(gone: CutReason) -> WriteError {
        match gone {
            CutReason::Client => WriteError::Gone,
            CutReason::Stalled => WriteError::Stalled,
            CutReason::Stopped => WriteError::Stopped,
        }
    }
}
