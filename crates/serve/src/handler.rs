//! The trait an application implements.

use onecopy_wire::http::reason_phrase;

use crate::request::{BodyPolicy, Request};
use crate::response::Response;

/// An application. One value serves all requests, from several threads at once.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request. It runs in place, on the thread that read the request; another thread has the poll by then,
    /// so it may block, though only as many handlers run at once as [`crate::Config::handler_threads`] says. A panic
    /// is caught and answered with 500.
    fn handle(&self, request: Request<'_>) -> Response;

    /// What to do with the body of a request of which only the head is known yet. It must not block.
    fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
        let _ = head;
        BodyPolicy::Refuse
    }

    /// The answer to a request that the server refuses by itself (a malformed head, a limit reached, a panic of the
    /// handler). The default is a problem of RFC 9457. It must not block.
    fn refuse(&self, status: u16, detail: &str) -> Response {
        Response::problem(status, reason_phrase(status), detail)
    }
}

impl<H: Handler + ?Sized> Handler for std::sync::Arc<H> {
    fn handle(&self, request: Request<'_>) -> Response {
        (**self).handle(request)
    }

    fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
        (**self).body_policy(head)
    }

    fn refuse(&self, status: u16, detail: &str) -> Response {
        (**self).refuse(status, detail)
    }
}

/// A handler that is a function, for small servers and tests.
pub struct FnHandler<F>(pub F);

impl<F> Handler for FnHandler<F>
where
    F: Fn(Request<'_>) -> Response + Send + Sync + 'static,
{
    fn handle(&self, request: Request<'_>) -> Response {
        (self.0)(request)
    }
}
