//! [`Handler`]: the trait that an application implements.

use onecopy_text::Chunk;
use onecopy_wire::http::reason_phrase;

use crate::request::{BodyPolicy, Request, RequestBody};
use crate::response::Response;

/// An application. One value answers all requests, on several threads at once.
pub trait Handler: Send + Sync + 'static {
    /// Answers a request. The method runs on the thread that read the request, while another thread
    /// waits in epoll, so it may block. At most [`crate::Config::handler_threads`] calls run at
    /// once. A panic is caught, and the client gets a 500.
    fn handle(&self, request: Request<'_>) -> Response;

    /// Answers a request whose body is passed separately, in `body`; `request` has no body. The
    /// server calls only this method; its default implementation calls [`Handler::handle`].
    /// Implement it for a handler that keeps the memory of the body, or that requests the body
    /// itself ([`BodyPolicy::OnDemand`]).
    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        match body {
            RequestBody::None => self.handle(request),
            RequestBody::Memory(bytes) => self.handle(request.with_body(&bytes)),
            RequestBody::File(..) => {
                // A handler that accepts bodies too long for memory must implement this method.
                self.refuse(413, "the request body is too large")
            }
            RequestBody::Awaited(body) => match body.receive() {
                Ok(body) => self.handle_body(request, body),
                Err(error) => self.refuse(error.status(), &error.to_string()),
            },
        }
    }

    /// Returns memory for a request body before the bytes of the body arrive. `n_bytes` is the
    /// length of the body. If the length is not known, `n_bytes` is an initial capacity, which may
    /// be too small. The method must not block for long.
    fn body_chunk(&self, n_bytes: usize) -> Chunk {
        Chunk::with_capacity(n_bytes)
    }

    /// Decides, from the head of a request, how the body of the request is received. The method
    /// must not block.
    fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
        let _ = head;
        BodyPolicy::Refuse
    }

    /// Returns `true` if [`Handler::handle`] waits for nothing except a local disk. The method is
    /// called once, when the server starts. While a handler runs, the server checks regularly if
    /// another thread must wait in epoll. If this method returns `true`, the interval of these
    /// checks is 25 ms instead of 1 ms, which is faster for short calls.
    fn is_quick(&self) -> bool {
        false
    }

    /// Returns `true` if the handler may begin its response before it returns
    /// ([`Request::writer`]). The method is called once, when the server starts. If it returns
    /// `true`, each request takes slightly longer.
    fn begins_early(&self) -> bool {
        false
    }

    /// Returns the response to a request for which the server reports an error: a malformed head,
    /// an exceeded limit, or a panic of the handler. The default is a problem document of RFC 9457.
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

/// A handler made from a function, for small servers and tests.
pub struct FnHandler<F>(pub F);

impl<F> Handler for FnHandler<F>
where
    F: Fn(Request<'_>) -> Response + Send + Sync + 'static,
{
    fn handle(&self, request: Request<'_>) -> Response {
        (self.0)(request)
    }
}
