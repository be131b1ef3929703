//! `onecopy receive`: listens, receives files from senders, and prints the progress.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use onecopy_transfer::handshakes::HandshakeEvent;
use onecopy_transfer::identity::CertificateIdentity;
use onecopy_transfer::{
    Code, Error, Greeted, HandshakeLimits, Handshakes, Limits, Receiver, ReceiverOptions,
};

use super::args::Receive;
use super::progress::TransferProgress;
use super::{failed, shut_on_a_signal};
use crate::console::{notice, print_line};
use crate::exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// The interval at which the command checks for a signal while it waits for a sender to connect.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the command `onecopy receive`; returns the exit code of the process.
pub(crate) fn run(args: &Receive) -> i32 {
    match receive(args) {
        Ok(()) => exit::OK,
        Err(failure) => failure.report(),
    }
}

fn receive(args: &Receive) -> Result<(), Failure> {
    let interrupt = Interrupt::start(None).map_err(Failure::System)?;
    let Ok(Some(address)) = args.bind.to_socket_addrs().map(|mut found| found.next()) else {
        return Err(Failure::Usage(format!(
            "`{}` is not an address to listen on\ngive ADDRESS:PORT, as `127.0.0.1:7117` or `[::1]:7117`",
            args.bind
        )));
    };
    let is_public = !address.ip().to_canonical().is_loopback();
    if is_public && !args.tls {
        return Err(Failure::Usage(format!(
            "other machines reach `{}`, and could read and change the data on its way\nuse `--tls`",
            args.bind
        )));
    }
    let wants_code = is_public || args.tls || args.code;
    listen(args, &interrupt, address, wants_code)
}

fn listen(
    args: &Receive,
    interrupt: &Interrupt,
    address: SocketAddr,
    wants_code: bool,
) -> Result<(), Failure> {
    let identity = match args.tls {
        true => Some(CertificateIdentity::make().map_err(Failure::System)?),
        false => None,
    };
    let fingerprint = identity.as_ref().map(CertificateIdentity::fingerprint);
    let code = match wants_code {
        true => Some(Code::make(fingerprint).map_err(Failure::System)?),
        false => None,
    };
    let listener = TcpListener::bind(address).map_err(|e| {
        Failure::Usage(format!(
            "cannot listen at `{}`: {e}\ngive another address or port with `--bind`",
            args.bind
        ))
    })?;
    let address = listener.local_addr().map_err(Failure::System)?;
    print_line(&format!("listening on {address}"));
    if let Some(code) = &code {
        print_line(&format!("code: {code}"));
    } else if !args.quiet {
        notice(
            "no code is required: every user of this machine can send files here\n\
             with `--code` a sender needs the code that is then printed",
        );
    }
    let receiver = Arc::new(Receiver::new(ReceiverOptions {
        folder: args.folder.clone(),
        replace: args.replace,
        limits: Limits {
            max_bytes: args.max_bytes,
            max_entries: args.max_files,
        },
        timeout: args.timeout,
        code,
    }));
    let limits = HandshakeLimits {
        time: HandshakeLimits::default().time.min(args.timeout),
        ..HandshakeLimits::default()
    };
    let handshakes = Handshakes::start(listener, Arc::clone(&receiver), identity, limits)
        .map_err(Failure::System)?;
    loop {
        let greeted = next_sender(args, &handshakes, interrupt, address)?;
        shut_on_a_signal(interrupt, greeted.socket());
        let mut progress = TransferProgress::new(interrupt, args.quiet);
        match receiver.receive(greeted, &mut progress) {
            Ok(summary) => {
                progress.finish("received", &summary);
                if !args.keep {
                    return Ok(());
                }
            }
            Err(failure) => {
                drop(progress);
                if interrupt.stopped().is_some() || !goes_on(args, &failure) {
                    return Err(failed(interrupt, &failure));
                }
                notice(&format!("{failure}\nstill listening on {address}"));
            }
        }
    }
}

/// Returns `true` if the command waits for another sender after a transfer that failed with
/// `failure`. The command always waits if the sender disconnected or violated the protocol. After
/// any other error, it waits only with `--keep`.
fn goes_on(args: &Receive, failure: &Error) -> bool {
    match failure {
        Error::Broken(_) | Error::Protocol(_) => true,
        _ => args.keep,
    }
}

/// Waits for a sender that completes its handshake. Prints a notice for each sender that connects,
/// and for each whose handshake fails.
fn next_sender(
    args: &Receive,
    handshakes: &Handshakes,
    interrupt: &Interrupt,
    address: SocketAddr,
) -> Result<Greeted, Failure> {
    loop {
        if interrupt.stopped().is_some() {
            return Err(Failure::Stopped(""));
        }
        match handshakes.next(LOOK_EVERY) {
            None => {}
            Some(HandshakeEvent::Began { from, n_others }) if !args.quiet => {
                notice(&match n_others {
                    0 => format!("{from} has connected"),
                    1 => format!("{from} has connected; 1 other has not completed its handshake"),
                    n => {
                        format!(
                            "{from} has connected; {n} others have not completed their handshakes"
                        )
                    }
                })
            }
            Some(HandshakeEvent::Began { .. }) => {}
            Some(HandshakeEvent::Ended {
                result: Ok(greeted),
                ..
            }) => return Ok(greeted),
            Some(HandshakeEvent::Ended {
                from,
                result: Err(failure),
            }) => {
                if matches!(failure, Error::TooManyCodes) {
                    return Err(failed(interrupt, &failure));
                }
                notice(&format!("{from}: {failure}\nstill listening on {address}"));
            }
            Some(HandshakeEvent::Failed(e)) => return Err(Failure::System(e)),
        }
    }
}
