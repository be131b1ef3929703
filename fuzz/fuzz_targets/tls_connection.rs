//! Complete TLS connections.
//!
//! The client's bytes are divided anywhere, or changed at one position, or are not TLS at all. Each
//! connection ends. If the bytes were only divided, the responses are those without TLS. If they
//! were changed, the responses are the first of these.
#![no_main]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::exchange::{PATIENCE, answers, serve};
use onecopy_serve::Tls;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// A server without TLS, one with TLS, and clients that trust it: of each TLS version, with and
/// without resumption of sessions.
struct Place {
    plain: SocketAddr,
    secure: SocketAddr,
    clients: Vec<Arc<ClientConfig>>,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("cert"), folder.path().join("key"));
        std::fs::write(&certificate, made.cert.pem()).expect("the disk has space");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("the disk has space");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a certificate");
        let clients = [&TLS13, &TLS12].into_iter().flat_map(|version| {
            [true, false].map(|resumes| {
                let provider = Arc::new(ring::default_provider());
                let builder = ClientConfig::builder_with_provider(provider);
                let builder = builder.with_protocol_versions(&[version]).expect("both are there");
                let builder = builder.with_root_certificates(roots.clone());
                let mut config = builder.with_no_client_auth();
                if !resumes {
                    config.resumption = Resumption::disabled();
                }
                Arc::new(config)
            })
        });
        Place {
            plain: serve(None),
            secure: serve(Some(Tls::from_files(&certificate, &key).expect("fits"))),
            clients: clients.collect(),
        }
    })
}

/// The change of the client's bytes at one position. The client sends the rest of its current data
/// after this position, and then ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    None,
    Changed(u8),
    Inserted(u8),
    LeftOut(u8),
    Ended,
}

/// The options in the first bytes of an input, and the bytes to send.
struct Script<'a> {
    client: u8,
    /// The number of bytes in one write to the socket; 0 means all. `in_record` is that of a TLS
    /// record.
    at_once: usize,
    in_record: usize,
    harm: Harm,
    harmed_at: usize,
    bytes: &'a [u8],
}

impl Script<'_> {
    fn of(input: &[u8]) -> Option<Script<'_>> {
        let (&[client, kind, by, at_once, in_record, low, high], bytes) = input.split_first_chunk()?;
        Some(Script {
            client,
            at_once: usize::from(at_once),
            in_record: usize::from(in_record),
            harm: match kind % 5 {
                0 => Harm::None,
                1 => Harm::Changed(by.max(1)),
                2 => Harm::Inserted(by),
                3 => Harm::LeftOut(by.max(1)),
                _ => Harm::Ended,
            },
            harmed_at: usize::from(u16::from_le_bytes([low, high])),
            bytes: &bytes[..bytes.len().min(6000)],
        })
    }
}

fuzz_target!(|input: &[u8]| {
    let Some(script) = Script::of(input) else {
        return;
    };
    // One client in eight does not use TLS.
    if script.client % 8 == 7 {
        return send_raw(&script);
    }
    let (got, is_harmed) = by_tls(&script);
    let got = answers(&got, is_harmed);
    let expected = answers(&plainly(script.bytes), false);
    if is_harmed {
        assert!(
            expected.starts_with(&got),
            "{got:?}\nare not the first of {expected:?}"
        );
    } else {
        assert_eq!(got, expected);
    }
});

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("listens");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Sends bytes in parts; returns `false` if the server has closed the connection. Its earlier
/// responses can still be read.
fn send(stream: &mut TcpStream, bytes: &[u8], at_once: usize) -> bool {
    let at_once = if at_once == 0 { bytes.len() } else { at_once };
    bytes.chunks(at_once.max(1)).all(|part| stream.write_all(part).is_ok())
}

/// Reads once; returns 0 at the end of the connection, also if it was reset.
fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    match stream.read(buffer) {
        Ok(n) => n,
        Err(e) if e.kind() == ErrorKind::ConnectionReset => 0,
        Err(e) => panic!("the server does not close: {e}"),
    }
}

fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match read(stream, &mut buffer) {
            0 => return all,
            n => all.extend_from_slice(&buffer[..n]),
        }
    }
}

/// Returns the server's response to the same bytes without TLS.
fn plainly(bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(place().plain);
    send(&mut stream, bytes, 0);
    let _ = stream.shutdown(Shutdown::Write);
    rest(&mut stream)
}

/// Sends bytes that are not TLS, or only its beginning. The server must send an alert, a handshake
/// message, an HTTP response 400 or nothing, and then end the connection.
fn send_raw(script: &Script<'_>) {
    let mut stream = connect(place().secure);
    send(&mut stream, script.bytes, script.at_once);
    let _ = stream.shutdown(Shutdown::Write);
    let come = rest(&mut stream);
    let is_known = come.starts_with(&[0x15, 3]) || come.starts_with(&[0x16, 3]) || come.starts_with(b"HTTP/1.1 400 ");
    assert!(come.is_empty() || is_known, "{come:?}");
}

/// Returns the plaintext that the server sent, and `true` if the client's bytes were changed.
fn by_tls(script: &Script<'_>) -> (Vec<u8>, bool) {
    let config = &place().clients[usize::from(script.client) % place().clients.len()];
    let name = ServerName::try_from("localhost").expect("a name");
    let mut session = ClientConnection::new(Arc::clone(config), name).expect("a client");
    let mut stream = connect(place().secure);
    let (mut n_said, mut has_asked, mut is_harmed) = (0, false, false);
    let (mut come, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if !has_asked && !session.is_handshaking() {
            has_asked = true;
            ask(&mut session, script);
        }
        let mut says = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut says).expect("memory");
        }
        if !is_harmed && script.harm != Harm::None && n_said + says.len() > script.harmed_at {
            is_harmed = true;
            harm(&mut says, script.harm, script.harmed_at - n_said);
        }
        n_said += says.len();
        let is_open = send(&mut stream, &says, script.at_once);
        if is_harmed || has_asked || !is_open {
            // The client sends nothing more, so a server that waits gets the end of the data.
            let _ = stream.shutdown(Shutdown::Write);
        }
        let n = read(&mut stream, &mut buffer);
        if n == 0 {
            break;
        }
        let mut bytes = &buffer[..n];
        // After the server's close_notify nothing is read.
        while matches!(session.read_tls(&mut bytes), Ok(1..)) {
            if session.process_new_packets().is_err() {
                // Because of the change the client cannot decrypt the server's records; the rest
                // is read without decryption.
                assert!(is_harmed, "the server's records are wrong");
                rest(&mut stream);
                return (come, true);
            }
            let mut reader = session.reader();
            let _ = reader.read_to_end(&mut come);
        }
    }
    assert!(
        has_asked || is_harmed,
        "the server has left in a handshake in which nothing was wrong"
    );
    (come, is_harmed)
}

/// Sends the requests in records of the requested size, and then close_notify.
fn ask(session: &mut ClientConnection, script: &Script<'_>) {
    let size = match script.in_record {
        0 => script.bytes.len(),
        n => n,
    };
    for part in script.bytes.chunks(size.max(1)) {
        session.writer().write_all(part).expect("memory");
    }
    session.send_close_notify();
}

fn harm(bytes: &mut Vec<u8>, harm: Harm, at: usize) {
    match harm {
        Harm::None => {}
        Harm::Changed(by) => bytes[at] ^= by,
        Harm::Inserted(byte) => bytes.insert(at, byte),
        Harm::LeftOut(n) => drop(bytes.drain(at..bytes.len().min(at + usize::from(n)))),
        Harm::Ended => bytes.truncate(at),
    }
}
