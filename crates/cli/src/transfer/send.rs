//! `onecopy send`: connects to a receiver, sends files, and resumes after an interruption.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use onecopy_transfer::{Channel, Error, SenderOptions, Summary};

use super::args::Send;
use super::progress::{TransferProgress, pause};
use super::{failed, shut_on_a_signal};
use crate::console::notice;
use crate::exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// The time limit for connecting to one address of the receiver.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command `onecopy send`; returns the exit code of the process.
pub(crate) fn run(args: &Send) -> i32 {
    match send(args) {
        Ok(()) => exit::OK,
        Err(failure) => failure.report(),
    }
}

fn send(args: &Send) -> Result<(), Failure> {
    let interrupt = Interrupt::start(None).map_err(Failure::System)?;
    let mut names = std::collections::HashSet::new();
    if let Some(path) = args
        .files
        .iter()
        .find(|path| !names.insert(path.file_name()))
    {
        return Err(Failure::Usage(format!(
            "two of the paths end in the same name as `{}`\nsend them one after the other, or the folder they are in",
            path.display()
        )));
    }
    let mut n_retries = 0;
    loop {
        let socket = match connect(&args.to) {
            Ok(socket) => socket,
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Err(Failure::Usage(format!(
                    "`{}` is not the address of a receiver\n\
                     use the address that `onecopy receive` prints, such as 192.0.2.1:8106",
                    args.to
                )));
            }
            Err(e) if n_retries == 0 => {
                return Err(Failure::Connect(format!(
                    "no receiver answers at `{}`: {e}\nstart `onecopy receive` there, and use the address that it prints",
                    args.to
                )));
            }
            Err(e) => {
                let reason = format!("no receiver answers: {e}");
                if again(args, &interrupt, &mut n_retries, &reason) {
                    continue;
                }
                if interrupt.stopped().is_some() {
                    return Err(failed(&interrupt, &Error::Stopped));
                }
                return Err(Failure::Connect(format!(
                    "no receiver answers at `{}` any more: {e}",
                    args.to
                )));
            }
        };
        shut_on_a_signal(&interrupt, &socket);
        let mut progress = TransferProgress::new(&interrupt, args.quiet);
        match once(args, socket, &mut progress) {
            Ok(summary) => {
                progress.finish("sent", &summary);
                return Ok(());
            }
            Err(error) => {
                drop(progress);
                if interrupt.stopped().is_some() || !error.is_passing() {
                    return Err(failed(&interrupt, &error));
                }
                let words = error.to_string();
                let first = words.lines().next().unwrap_or_default();
                if !again(args, &interrupt, &mut n_retries, first) {
                    return Err(failed(&interrupt, &error));
                }
            }
        }
    }
}

/// Waits before the next attempt to send. Returns `false` if no attempt may follow: the number of
/// retries has reached `--retries`, or a signal arrived.
fn again(args: &Send, interrupt: &Interrupt, n_retries: &mut u32, why: &str) -> bool {
    if *n_retries >= args.retries {
        return false;
    }
    let pause = pause(*n_retries);
    *n_retries += 1;
    if !args.quiet {
        notice(&format!(
            "{why}; retry {n_retries} of {} in {:.1} s",
            args.retries,
            pause.as_secs_f64()
        ));
    }
    interrupt.pause(pause);
    interrupt.stopped().is_none()
}

fn once(
    args: &Send,
    socket: TcpStream,
    progress: &mut TransferProgress<'_>,
) -> Result<Summary, Error> {
    let options = SenderOptions {
        paths: args.files.clone(),
        hashed: !args.no_hash,
        block_log2: args.block_log2,
        code: args.code.clone(),
        by_sendfile: args.by_sendfile,
    };
    let fingerprint = args.code.as_ref().and_then(|code| code.fingerprint());
    let mut link = Channel::sending(socket, fingerprint, args.timeout)?;
    onecopy_transfer::send(&options, &mut link, progress)
}

fn connect(to: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in to.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => return Ok(socket),
            Err(e) => last = e,
        }
    }
    Err(last)
}
