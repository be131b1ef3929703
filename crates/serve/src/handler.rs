//! The trait an application implements.

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
        Response::problem(status, reason(status), detail)
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

/// The reason phrase of a status (RFC 9110 15); a class name for those without one.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => match status / 100 {
            2 => "Success",
            3 => "Redirect",
            4 => "Client Error",
            _ => "Server Error",
        },
    }
}
