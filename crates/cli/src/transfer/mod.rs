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

use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Shuts down the connection when a signal arrives. A call that waits for data on the connection
/// then returns.
fn shut_on_a_signal(interrupt: &Interrupt, socket: &TcpStream) {
    let Ok(socket) = socket.try_clone() else {
        return;
    };
    interrupt.cancels(CancelHandle::new(move || {
        let _ = socket.shutdown(Shutdown::Both);
    }));
}

/// Converts an error that ended a transfer to the failure that the command reports. If a signal
/// arrived, the failure is that the command was stopped, whatever the error is.
fn failed(interrupt: &Interrupt, error: &Error) -> Failure {
    match interrupt.stopped() {
        Some(_) => {
            Failure::Stopped("received data is kept: repeat the command to resume the transfer")
        }
        None => Failure::Other(error.to_string()),
    }
}
