//! Runs a sender and a receiver in one process, connected over loopback.
#![allow(dead_code, clippy::unwrap_used)] // Each test uses its part of it; helpers are tests too.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onecopy_transfer::identity::CertificateIdentity;
use onecopy_transfer::message::{HEADER_BYTES, Header, Message};
use onecopy_transfer::{
    Channel, Code, Error, Limits, Observer, Receiver, ReceiverOptions, SenderOptions, Summary, send,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn receiving(folder: &Path) -> ReceiverOptions {
    ReceiverOptions {
        folder: folder.to_owned(),
        replace: false,
        limits: Limits::default(),
        timeout: PATIENCE,
        code: None,
    }
}

/// Returns the settings of a sender. Blocks have 1 KiB, so that small files have many blocks.
pub(crate) fn sending(paths: &[&Path]) -> SenderOptions {
    SenderOptions {
        paths: paths.iter().map(|p| p.to_path_buf()).collect(),
        hashed: true,
        block_log2: 10,
        code: None,
        by_sendfile: false,
    }
}

/// Returns the two ends of a new connection.
pub(crate) fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (here, listener.accept().unwrap().0)
}

pub(crate) type Done = Result<Summary, Error>;

/// Runs one transfer, with TLS if `identity` is given. Returns the results of the sender and of the
/// receiver.
pub(crate) fn exchange(
    from: &SenderOptions,
    receiver: &Receiver,
    identity: Option<&CertificateIdentity>,
    observer: &mut (dyn Observer + Send),
) -> (Done, Done) {
    let (here, there) = pair();
    std::thread::scope(|scope| {
        let received = scope.spawn(move || {
            let channel = Channel::receiving(there, identity, PATIENCE)?;
            receiver.receive(receiver.greet(channel)?, &mut ())
        });
        let fingerprint = from.code.as_ref().and_then(Code::fingerprint);
        let sent = Channel::sending(here, fingerprint, PATIENCE)
            .and_then(|mut channel| send(from, &mut channel, observer));
        (sent, received.join().unwrap())
    })
}

pub(crate) fn transfer(from: &SenderOptions, to: ReceiverOptions) -> (Done, Done) {
    exchange(from, &Receiver::new(to), None, &mut ())
}

/// Sends `messages` to a receiver, with the bytes of `blocks` after each block header. Returns the
/// last message that the receiver sends, such as a refusal, and the receiver's result.
pub(crate) fn lie(
    to: ReceiverOptions,
    messages: &[Message],
    blocks: &[u8],
) -> (Option<Message>, Done) {
    use std::io::{Read, Write};
    let (mut here, there) = pair();
    std::thread::scope(|scope| {
        let received = scope.spawn(move || {
            let receiver = Receiver::new(to);
            let channel = Channel::receiving(there, None, PATIENCE)?;
            receiver.receive(receiver.greet(channel)?, &mut ())
        });
        let mut bytes = Vec::new();
        for message in messages {
            message.write(&mut bytes);
            if let Message::Block(n) = message {
                bytes.extend(blocks.iter().cycle().take(*n as usize));
            }
        }
        // The receiver may have closed the connection already.
        let _ = here.write_all(&bytes);
        let _ = here.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        let _ = here.read_to_end(&mut said);
        drop(here);
        let mut rest = said.as_slice();
        let mut last = None;
        while let Some((header, more)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let header = Header::read(*header).unwrap();
            let (body, more) = more.split_at(header.len_bytes as usize);
            last = Some(Message::read(header, body).unwrap());
            rest = more;
        }
        (last, received.join().unwrap())
    })
}

/// Returns the paths of all files in `folder` and its subfolders, with their contents.
pub(crate) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.push((path.strip_prefix(folder).unwrap().to_owned(), bytes));
            }
        }
    }
    found.sort();
    found
}

/// Returns `n` pseudo-random bytes, so that each block has other contents.
pub(crate) fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
