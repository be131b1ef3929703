//! `onecopy send` and `onecopy receive`: transfer files from one machine to another.

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

/// From now on, a signal shuts down the connection. This wakes the thread that waits for data on
/// it.
fn shut_on_a_signal(interrupt: &Interrupt, socket: &TcpStream) {
    let Ok(socket) = socket.try_clone() else {
        return;
    };
    interrupt.cancels(CancelHandle::new(move || {
        let _ = socket.shutdown(Shutdown::Both);
    }));
}

/// Reports the failure of a transfer; returns the exit code.
fn fail(interrupt: &Interrupt, failure: &Error) -> i32 {
    if interrupt.stopped().is_some() {
        error("stopped\nreceived data is kept: repeat the command to resume the transfer");
        return exit::STOPPED;
    }
    error(&failure.to_string());
    exit::FAILED
}
