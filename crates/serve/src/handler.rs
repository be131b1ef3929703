//! The trait an application implements.

use onecopy_text::Chunk;
use onecopy_wire::http::reason_phrase;

use crate::request::{BodyPolicy, Request, RequestBody};
use crate::response::Response;

/// An application. One value serves all requests, from several threads at once.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request. It runs in place, on the thread that read the request; another thread has the poll by then,
    /// so it may block, though only as many handlers run at once as [`crate::Config::handler_threads`] says. A panic
    /// is caught and answered with 500.
    fn handle(&self, request: Request<'_>) -> Response;

    /// As [`Handler::handle`], for a handler that takes the request's body over, or asks for it ([`BodyPolicy::OnDemand`]); `request`
    /// is without it.
    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        match body {
            RequestBody::None => self.handle(request),
            RequestBody::Memory(bytes) => self.handle(request.with_body(&bytes)),
            RequestBody::File(..) => {
                // Who wants bodies that are longer than what stays in memory reads them here.
                self.refuse(413, "the request body is too large")
            }
            RequestBody::Awaited(body) => match body.receive() {
                Ok(body) => self.handle_body(request, body),
                Err(error) => self.refuse(error.status(), &error.to_string()),
            },
        }
    }

    /// Memory for a request body of this many bytes, before they come; fewer where the length is not known. It must not block for
    /// long.
    fn body_room(&self, n_bytes: usize) -> Chunk {
        Chunk::with_capacity(n_bytes)
    }

    /// What to do with the body of a request of which only the head is known yet. It must not block.
    fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
        let _ = head;
        BodyPolicy::Refuse
    }

    /// Whether [`Handler::handle`] waits for nothing but a local disk, asked once: others then wait a little longer for the poll should
    /// it be late after all.
    fn is_quick(&self) -> bool {
        false
    }

    /// True if the handler may begin its answer before it returns ([`Request::writer`]). Called
    /// once: it costs each request a little.
    fn begins_early(&self) -> bool {
        false
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

    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        (**self).handle_body(request, body)
    }

    fn body_room(&self, n_bytes: usize) -> Chunk {
        (**self).body_room(n_bytes)
    }

    fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
        (**self).body_policy(head)
    }

    fn is_quick(&self) -> bool {
        (**self).is_quick()
    }

    fn begins_early(&self) -> bool {
        (**self).begins_early()
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
