//! A handler that may be called before the body of its request was received, and that reports its
//! calls.
#![allow(dead_code)] // Each test file uses its part, as a module of its own.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use onecopy_serve::{
    AwaitedBody, BodyError, BodyPolicy, Config, Handler, Request, RequestBody, Response,
};

use crate::common::{Client, PATIENCE, TestServer};

/// A report of the handler: the form in which the body was passed to a call, or the error of
/// reading the body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    Called(&'static str),
    Failed(BodyError),
}

/// A handler whose behaviour depends on the path. `/reads` reads the body, `/ignores` does not,
/// `/gate` waits for the test before it reads the body, `/keeps` passes the body to the test, and
/// `/panics` panics.
pub(crate) struct OnDemand {
    reported: Mutex<Sender<Reported>>,
    gate: Mutex<Receiver<()>>,
    kept: Mutex<Sender<AwaitedBody>>,
}

/// The channels by which a test controls an [`OnDemand`] and receives its reports.
pub(crate) struct Ends {
    pub(crate) reported: Receiver<Reported>,
    pub(crate) gate: Sender<()>,
    pub(crate) kept: Receiver<AwaitedBody>,
}

pub(crate) fn on_demand() -> (Ends, OnDemand) {
    let ((report, reported), (open, gate), (keep, kept)) = (channel(), channel(), channel());
    let ends = Ends {
        reported,
        gate: open,
        kept,
    };
    let handler = OnDemand {
        reported: Mutex::new(report),
        gate: Mutex::new(gate),
        kept: Mutex::new(keep),
    };
    (ends, handler)
}

impl Ends {
    pub(crate) fn next(&self) -> Reported {
        self.reported.recv_timeout(PATIENCE).expect("a call")
    }
}

impl OnDemand {
    fn report(&self, reported: Reported) {
        let _ = self.reported.lock().unwrap().send(reported);
    }
}

impl Handler for OnDemand {
    fn handle(&self, request: Request<'_>) -> Response {
        self.handle_body(request, RequestBody::None)
    }

    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        self.report(Reported::Called(match &body {
            RequestBody::None => "none",
            RequestBody::Memory(_) => "memory",
            RequestBody::File(..) => "file",
            RequestBody::Awaited(_) => "awaited",
        }));
        match request.path() {
            "/ignores" => return Response::new(200).body("not wanted"),
            "/panics" => panic!("as scripted"),
            "/gate" => {
                let opened = self.gate.lock().unwrap().recv_timeout(PATIENCE);
                opened.expect("the test opens the gate");
            }
            _ => {}
        }
        let body = match body {
            RequestBody::Awaited(body) if request.path() == "/keeps" => {
                self.kept.lock().unwrap().send(body).unwrap();
                return Response::new(200).body("kept");
            }
            RequestBody::Awaited(body) => match body.receive() {
                Ok(come) => {
                    assert_eq!(body.receive().unwrap_err(), BodyError::Taken);
                    come
                }
                Err(error) => {
                    assert_eq!(body.receive().unwrap_err(), error, "it fails again");
                    assert_eq!(body.error(), Some(error));
                    self.report(Reported::Failed(error));
                    return self.refuse(error.status(), &error.to_string());
                }
            },
            body => body,
        };
        Response::new(200).body(match body {
            RequestBody::None => Vec::new(),
            RequestBody::Memory(chunk) => chunk.to_vec(),
            RequestBody::File(mut file, _) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).unwrap();
                bytes
            }
            RequestBody::Awaited(_) => panic!("received twice"),
        })
    }

    fn body_policy(&self, _: Request<'_>) -> BodyPolicy {
        BodyPolicy::OnDemand
    }
}

pub(crate) fn server() -> (TestServer, Ends) {
    with_threads(8)
}

pub(crate) fn with_threads(n: usize) -> (TestServer, Ends) {
    let (ends, handler) = on_demand();
    let mut config = Config::default();
    config.handler_threads = n;
    config.limits.body_bytes = 100_000;
    config.limits.body_memory_bytes = 50_000;
    (TestServer::with(config, handler), ends)
}

pub(crate) const CHUNKED: &str = "Transfer-Encoding: chunked";

pub(crate) fn head(path: &str, framing: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n{framing}\r\n\r\n")
}

pub(crate) fn length(n: usize) -> String {
    format!("Content-Length: {n}")
}

pub(crate) fn assert_goes_on<S: Read + Write>(client: &mut Client<S>) {
    let (status, head) = client.head().expect("an interim answer");
    assert_eq!((status, head.lines().count()), (100, 1));
}
