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

/// Makes a later signal shut down the connection, which also ends a call that waits for data on it.
fn shut_on_a_signal(interrupt: &Interrupt, socket: &TcpStream) {
    let Ok(socket) = socket.try_clone() else {
        return;
    };
    interrupt.cancels(CancelHandle::new(move || {
        let _ = socket.shutdown(Shutdown::Both);
    }));
}

/// Returns the failure of a transfer.
fn failed(interrupt: &Interrupt, error: &Error) -> Failure {
    match interrupt.stopped() {
        Some(_) => {
            Failure::Stopped("received data is kept: repeat the command to resume the transfer")
        }
        None => Failure::Other(error.to_string()),
    }
}
