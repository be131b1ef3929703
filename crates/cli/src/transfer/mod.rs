//! `onecopy send` and `onecopy receive`.

pub mod args;
mod progress;
mod receive;
mod send;

pub(crate) use receive::run as run_receive;
pub(crate) use send::run as run_send;

use std::net::{Shutdown, TcpStream};

use onecopy_transfer::Error;
use onecopy_wire::CancelHandle;

use crate::console::error;
use crate::exit;
use crate::interrupt::Interrupt;

/// A signal shuts the connection: whoever waits for it wakes.
fn shut_on_a_signal(interrupt: &Interrupt, socket: &TcpStream) {
    let Ok(socket) = socket.try_clone() else {
        return;
    };
    interrupt.cancels(CancelHandle::new(move || {
        let _ = socket.shutdown(Shutdown::Both);
    }));
}

/// Tells why it ends; the exit code.
fn fail(interrupt: &Interrupt, failure: &Error) -> i32 {
    if interrupt.stopped().is_some() {
        error("stopped\nwhat has come is kept: the same again goes on there");
        return exit::STOPPED;
    }
    error(&failure.to_string());
    exit::FAILED
}
