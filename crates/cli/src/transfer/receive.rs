//! `onecopy receive`.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::Duration;

use onecopy_files::moving::{Readiness, wait_for};
use onecopy_transfer::identity::Identity;
use onecopy_transfer::{Code, Error, Limits, Link, Receiver, ReceiverOptions, Summary};

use super::args::Receive;
use super::progress::Progress;
use super::{fail, shut_on_a_signal};
use crate::console::{error, notice, tell};
use crate::exit;
use crate::interrupt::Interrupt;

/// How long a signal may go unseen while nobody comes.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(args: &Receive) -> i32 {
    let interrupt = match Interrupt::start(None) {
        Ok(interrupt) => interrupt,
        Err(e) => {
            error(&format!("cannot start: {e}"));
            return exit::FAILED;
        }
    };
    let address = match args.bind.to_socket_addrs().map(|mut found| found.next()) {
        Ok(Some(address)) => address,
        _ => {
            error(&format!(
                "`{}` is no address to listen at\ngive ADDRESS:PORT, as `127.0.0.1:7117` or `[::1]:7117`",
                args.bind
            ));
            return exit::USAGE;
        }
    };
    let is_public = !address.ip().to_canonical().is_loopback();
    if is_public && !args.tls {
        error(&format!(
            "other machines reach `{}`, and what goes there could be read and changed on its way\ngive `--tls`",
            args.bind
        ));
        return exit::USAGE;
    }
    match listen(
        args,
        &interrupt,
        address,
        is_public || args.tls || args.code,
    ) {
        Ok(()) => exit::OK,
        Err(Failed::Told(code)) => code,
        Err(Failed::System(e)) => {
            error(&format!("cannot start: {e}"));
            exit::FAILED
        }
    }
}

enum Failed {
    /// With this exit code.
    Told(i32),
    System(io::Error),
}

fn listen(
    args: &Receive,
    interrupt: &Interrupt,
    address: SocketAddr,
    wants_code: bool,
) -> Result<(), Failed> {
    let identity = match args.tls {
        true => Some(Identity::make().map_err(Failed::System)?),
        false => None,
    };
    let fingerprint = identity.as_ref().map(Identity::fingerprint);
    let code = match wants_code {
        true => Some(Code::make(fingerprint).map_err(Failed::System)?),
        false => None,
    };
    let listener = TcpListener::bind(address).map_err(|e| {
        error(&format!(
            "cannot listen at `{}`: {e}\ngive another address or port with `--bind`",
            args.bind
        ));
        Failed::Told(exit::USAGE)
    })?;
    listener.set_nonblocking(true).map_err(Failed::System)?;
    let address = listener.local_addr().map_err(Failed::System)?;
    tell(&format!("listening on {address}"));
    if let Some(code) = &code {
        tell(&format!("code: {code}"));
    }
    let mut receiver = Receiver::new(ReceiverOptions {
        folder: args.folder.clone(),
        replace: args.replace,
        limits: Limits {
            max_bytes: args.max_bytes,
            max_entries: args.max_files,
        },
        timeout: args.timeout,
        code,
    });
    loop {
        let socket = accept(&listener, interrupt)?;
        shut_on_a_signal(interrupt, &socket);
        let mut progress = Progress::new(interrupt, args.quiet);
        match once(
            args,
            &mut receiver,
            socket,
            identity.as_ref(),
            &mut progress,
        ) {
            Ok(summary) => {
                progress.tell("received", &summary);
                if !args.keep {
                    return Ok(());
                }
            }
            Err(failure) => {
                drop(progress);
                if interrupt.stopped().is_some() || !goes_on(args, &failure) {
                    return Err(Failed::Told(fail(interrupt, &failure)));
                }
                notice(&format!("{failure}\nstill listening on {address}"));
            }
        }
    }
}

/// Whether the next sender may have more luck: this one left, spoke something else, or did not know the code.
fn goes_on(args: &Receive, failure: &Error) -> bool {
    match failure {
        Error::Broken(_) | Error::Protocol(_) => true,
        Error::Refusing(onecopy_transfer::Reason::Code, _) => true,
        Error::TooManyCodes => false,
        _ => args.keep,
    }
}

fn once(
    args: &Receive,
    receiver: &mut Receiver,
    socket: TcpStream,
    identity: Option<&Identity>,
    progress: &mut Progress<'_>,
) -> Result<Summary, Error> {
    // A handshake is waited for as for a code: not long.
    let timeout = args.timeout.min(Duration::from_secs(10));
    let mut link = Link::receiving(socket, identity, timeout)?;
    receiver.receive(&mut link, progress)
}

fn accept(listener: &TcpListener, interrupt: &Interrupt) -> Result<TcpStream, Failed> {
    loop {
        if interrupt.stopped().is_some() {
            error("stopped");
            return Err(Failed::Told(exit::STOPPED));
        }
        match wait_for(listener.as_fd(), Readiness::Readable, LOOK_EVERY) {
            Ok(false) => continue,
            Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(Failed::System(e)),
            _ => {}
        }
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false).map_err(Failed::System)?;
                return Ok(socket);
            }
            Err(e) if is_passing(&e) => {}
            Err(e) => return Err(Failed::System(e)),
        }
    }
}

/// Somebody came and left, or a signal.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
