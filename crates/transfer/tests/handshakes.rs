//! Tests senders that do not present the code: they do not block other senders, and their handshake
//! ends at its time limit.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::{PATIENCE, receiving, sending};
use onecopy_transfer::handshakes::HandshakeEvent;
use onecopy_transfer::identity::CertificateIdentity;
use onecopy_transfer::message::Message;
use onecopy_transfer::{
    Channel, Code, Error, Greeted, HandshakeLimits, Handshakes, Receiver, Summary, send,
};

/// A time limit that a test waits for, so it is short.
const SHORT: Duration = Duration::from_millis(300);
/// The largest number of bytes of a greeting that a receiver reads before it refuses the sender:
/// the header of a message and the longest body.
const MOST_GREETING_BYTES: usize = 4101;

struct Listening {
    handshakes: Handshakes,
    receiver: Arc<Receiver>,
    address: SocketAddr,
    code: Code,
    folder: tempfile::TempDir,
}

impl Listening {
    fn start(tls: bool, time: Duration, at_once: usize) -> Listening {
        let folder = tempfile::tempdir().unwrap();
        let identity = tls.then(|| CertificateIdentity::make().unwrap());
        let code = Code::make(identity.as_ref().map(CertificateIdentity::fingerprint)).unwrap();
        let mut options = receiving(&folder.path().join("to"));
        options.code = Some(code.clone());
        let receiver = Arc::new(Receiver::new(options));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let limits = HandshakeLimits { time, at_once };
        let theirs = Arc::clone(&receiver);
        Listening {
            handshakes: Handshakes::start(listener, theirs, identity, limits).unwrap(),
            receiver,
            address,
            code,
            folder,
        }
    }

    fn event(&self) -> HandshakeEvent {
        self.handshakes.next(PATIENCE).expect("an event")
    }

    /// Waits for the next event, which must be an accepted connection, and returns its address.
    fn began(&self) -> SocketAddr {
        match self.event() {
            HandshakeEvent::Began { from, .. } => from,
            HandshakeEvent::Ended { from, result } => panic!("{from} ended: {:?}", result.err()),
            HandshakeEvent::Failed(e) => panic!("{e}"),
        }
    }

    /// Waits for the next event, which must be the end of a handshake. Returns the sender's address
    /// and the result of the handshake.
    fn ended(&self) -> (SocketAddr, Result<Greeted, Error>) {
        match self.event() {
            HandshakeEvent::Ended { from, result } => (from, result),
            HandshakeEvent::Began { from, .. } => panic!("{from} began"),
            HandshakeEvent::Failed(e) => panic!("{e}"),
        }
    }

    /// Starts a thread that sends a file with this code.
    fn send(&self, code: Option<&Code>) -> JoinHandle<Result<Summary, Error>> {
        let file = self.folder.path().join("file");
        std::fs::write(&file, "bytes").unwrap();
        let mut options = sending(&[&file]);
        options.code = code.cloned();
        let (address, fingerprint) = (self.address, self.code.fingerprint());
        thread::spawn(move || {
            let socket = TcpStream::connect(address).unwrap();
            let mut channel = Channel::sending(socket, fingerprint, PATIENCE)?;
            send(&options, &mut channel, &mut ())
        })
    }
}

/// Sends the bytes of `greeting` one by one, at intervals shorter than the handshake's time limit,
/// until the peer closes the connection. Returns the number of bytes sent before that.
fn drip(address: SocketAddr, greeting: &[u8]) -> usize {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(SHORT / 6)).unwrap();
    for (n, byte) in greeting.iter().enumerate() {
        if stream.write_all(&[*byte]).is_err() {
            return n;
        }
        match stream.read(&mut [0; 64]) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Ok(1..) => {}
            _ => return n,
        }
    }
    greeting.len()
}

/// Returns a greeting that is almost as long as [`MOST_GREETING_BYTES`] permits.
fn greeting() -> Vec<u8> {
    let mut bytes = Vec::new();
    Message::Hello {
        version: 1,
        hashed: true,
        block_log2: 10,
        code: vec![b'x'; 4000],
    }
    .write(&mut bytes);
    assert!(bytes.len() <= MOST_GREETING_BYTES);
    bytes
}

/// Returns an incomplete TLS record with the start of a handshake message of the greatest length.
fn client_hello() -> Vec<u8> {
    let mut bytes = vec![22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc];
    bytes.resize(0x4000, 0);
    bytes
}

#[test]
fn a_sender_that_drips_is_cut_when_the_time_for_its_handshake_is_over() {
    for (tls, bytes) in [(false, greeting()), (true, client_hello())] {
        let listening = Listening::start(tls, SHORT, 4);
        let address = listening.address;
        let n_bytes = bytes.len();
        let dripping = thread::spawn(move || drip(address, &bytes));
        let from = listening.began();
        let (ended, result) = listening.ended();
        assert_eq!(ended, from);
        let error = result.err().expect("refused");
        assert!(matches!(&error, Error::Broken(_)), "{error}");
        assert!(
            error.to_string().contains("sent nothing for too long"),
            "{error}"
        );
        assert!(dripping.join().unwrap() < n_bytes);
    }
}

#[test]
fn a_sender_with_the_code_is_served_while_others_are_silent() {
    for tls in [false, true] {
        // The time limit of a handshake is longer than this test.
        let listening = Listening::start(tls, PATIENCE * 10, 4);
        let mut silent = Vec::new();
        for _ in 0..3 {
            let mut stream = TcpStream::connect(listening.address).unwrap();
            // The first byte of a TLS record, and of a greeting.
            stream.write_all(&[if tls { 22 } else { 1 }]).unwrap();
            listening.began();
            silent.push(stream);
        }
        let sent = listening.send(Some(&listening.code));
        let HandshakeEvent::Began { from, n_others } = listening.event() else {
            panic!("another one ended");
        };
        assert_eq!(n_others, 3);
        let (ended, greeted) = listening.ended();
        assert_eq!(ended, from);
        let received = listening.receiver.receive(greeted.unwrap(), &mut ());
        assert_eq!(received.unwrap().n_files, 1);
        sent.join().unwrap().unwrap();
        // The silent connections end before the listener is dropped.
        drop(silent);
        for _ in 0..3 {
            assert!(listening.ended().1.is_err());
        }
    }
}

#[test]
fn no_more_handshakes_run_at_once_than_allowed() {
    let listening = Listening::start(false, SHORT, 1);
    let silent = TcpStream::connect(listening.address).unwrap();
    let sent = listening.send(Some(&listening.code));
    let first = listening.began();
    assert_eq!(first, silent.local_addr().unwrap());
    // The second handshake begins when the first has ended.
    let (ended, result) = listening.ended();
    assert!(ended == first && result.is_err());
    assert_ne!(listening.began(), first);
    let greeted = listening.ended().1.unwrap();
    listening.receiver.receive(greeted, &mut ()).unwrap();
    sent.join().unwrap().unwrap();
}

#[test]
fn wrong_codes_at_once_count_and_after_three_the_right_one_is_refused_too() {
    let listening = Listening::start(false, PATIENCE, 8);
    let wrong = Code::parse("abcd-efgh").unwrap();
    let senders: Vec<_> = (0..3).map(|_| listening.send(Some(&wrong))).collect();
    let mut errors = Vec::new();
    while errors.len() < 3 {
        if let HandshakeEvent::Ended { result, .. } = listening.event() {
            errors.push(result.err().unwrap());
        }
    }
    for sender in senders {
        assert!(matches!(sender.join().unwrap(), Err(Error::Refused(..))));
    }
    assert!(errors.iter().any(|e| matches!(e, Error::TooManyCodes)));
    let right = listening.send(Some(&listening.code));
    listening.began();
    let (_, refused) = listening.ended();
    assert!(matches!(refused.err().unwrap(), Error::TooManyCodes));
    assert!(matches!(right.join().unwrap(), Err(Error::Refused(..))));
}
