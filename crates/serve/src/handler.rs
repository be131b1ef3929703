//! [`Handler`]: the trait that an application implements.

use onecopy_text::Chunk;
use onecopy_wire::http::reason_phrase;

use crate::request::{BodyPolicy, Request, RequestBody};
use crate::response::Response;

/// An application. One value handles all requests, on several threads at the same time.
pub trait Handler: Send + Sync + 'static {
    /// Handles a request and returns the response. The method runs on the thread that has read the
    /// request. It may block, because another thread waits in epoll meanwhile. At most
    /// [`crate::Config::handler_threads`] calls run at the same time. A panic is caught, and the
    /// client gets a 500.
    fn handle(&self, request: Request<'_>) -> Response;

    /// Handles a request whose body is in `body`, not in `request`. The server calls this method
    /// for every request. The default implementation passes the body to [`Handler::handle`].
    /// Implement this method for a handler that keeps the memory of the body, or that requests the
    /// body itself ([`BodyPolicy::OnDemand`]).
    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        match body {
            RequestBody::None => self.handle(request),
            RequestBody::Memory(bytes) => self.handle(request.with_body(&bytes)),
            RequestBody::File(..) => {
                // A handler that accepts bodies that are too long for memory must implement this
                // method itself.
                self.refuse(413, "the request body is too large")
            }
            RequestBody::Awaited(body) => match body.receive() {
                Ok(body) => self.handle_body(request, body),
                Err(error) => self.refuse(error.status(), &error.to_string()),
            },
        }
    }

    /// Returns memory for a request body, before the body arrives. `n_bytes` is the length of the
    /// body. If the length is unknown, `n_bytes` is an initial capacity, which may be too small.
    /// The method must not block for long.
    fn body_chunk(&self, n_bytes: usize) -> Chunk {
        Chunk::with_capacity(n_bytes)
    }

    /// Decides from the head of a request how the server receives the body of this request. The
    /// method must not block.
    fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
        let _ = head;
        BodyPolicy::Refuse
    }

    /// Returns `true` if [`Handler::handle`] waits for nothing except a local disk. The server
    /// calls this method once, when it starts. While a handler runs, the server checks regularly
    /// whether another thread must wait in epoll. If this method returns `true`, the interval
    /// between these checks is 25 ms instead of 1 ms. With the longer interval, short calls of
    /// [`Handler::handle`] take less processor time.
    fn is_quick(&self) -> bool {
        false
    }

    /// Returns `true` if the handler may begin a response before it returns ([`Request::writer`]).
    /// The server calls this method once, when it starts. If it returns `true`, each request takes
    /// slightly longer.
    fn begins_early(&self) -> bool {
        false
    }

    /// Returns the response to a request that the server rejects: because of a malformed head, an
    /// exceeded limit, or a panic of the handler. The default is a problem document of RFC 9457.
    /// The method must not block.
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

    fn body_chunk(&self, n_bytes: usize) -> Chunk {
        (**self).body_chunk(n_bytes)
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

/// A handler that calls a function, for small servers and tests.
pub struct FnHandler<F>(pub F);

impl<F> Handler for FnHandler<F>
where
    F: Fn(Request<'_>) -> Response + Send + Sync + 'static,
{
    fn handle(&self, request: Request<'_>) -> Response {
        (self.0)(request)
    }
}
