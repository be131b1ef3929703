//! Tests unix sockets: their files, and requests through them.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use common::{Act, Client, PATIENCE, Script, TestServer, echo, streaming};
use onecopy_serve::{Address, Config, Error, FnHandler, Outcome, Request, Response, Socket};
use onecopy_wire::chunk_source::ChunkErrorKind;

fn connect(path: &Path) -> Client<UnixStream> {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Client::on(stream)
}

fn bind(path: &Path) -> Result<Socket, Error> {
    Socket::bind(Address::Unix(path.to_owned()))
}

fn is_socket(path: &Path) -> bool {
    let found = std::fs::symlink_metadata(path);
    found.is_ok_and(|found| found.file_type().is_socket())
}

#[test]
fn requests_come_through_a_socket_that_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let handler = FnHandler(|request: Request<'_>| {
        let who = format!("{:?} {:?}", request.peer(), request.local());
        Response::new(200).body(who)
    });
    let server = TestServer::at_path(&path, Config::default(), handler);
    let mut client = connect(&path);
    for _ in 0..3 {
        assert_eq!(client.get("/").text(), "None None");
        assert_eq!(server.line().outcome, Outcome::Done);
    }
    server.stop();
    client.assert_closed();
    assert!(!path.exists());
    assert!(UnixStream::connect(&path).is_err());
}

#[test]
fn big_bodies_pass_with_back_pressure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let mut config = Config::default();
    config.limits.body_bytes = 8 << 20;
    let _server = TestServer::at_path(&path, config, echo());
    let mut client = connect(&path);
    let body = vec![b'b'; 900_000];
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    client.send(&body);
    assert!(client.answer().body.ends_with(&body));
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn a_chunked_stream_that_breaks_off_has_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let (bodies, handler) = streaming();
    let _server = TestServer::at_path(&path, Config::default(), handler);
    let script = Script::of([Act::Bytes(b"first".to_vec())]);
    let (body, _end) = script.body();
    bodies.send(Response::new(200).body(body)).unwrap();
    let mut client = connect(&path);
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_until(b"first\r\n");
    script.act(Act::Fail(ChunkErrorKind::Source, "broken"));
    assert_eq!(client.rest().0, b"");
}

#[test]
fn a_socket_nobody_listens_at_is_replaced_and_one_in_use_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    drop(UnixListener::bind(&path).unwrap()); // It leaves its file.
    assert!(is_socket(&path));
    let first = bind(&path).unwrap();
    let error = bind(&path).unwrap_err();
    assert!(
        matches!(&error, Error::AddressInUse { address } if *address == Address::Unix(path.clone()))
    );
    assert!(error.to_string().contains("another path"), "{error}");
    UnixStream::connect(&path).unwrap(); // The other one did it no harm.
    drop(first);
    assert!(!path.exists());
    bind(&path).unwrap();
}

#[test]
fn other_files_are_never_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    std::fs::write(&path, "text").unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for path in [&path, &link, &folder.path().to_owned()] {
        assert!(matches!(bind(path), Err(Error::Occupied { path: p }) if p == *path));
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    assert!(link.is_symlink());
}

#[test]
fn a_file_that_another_one_has_put_there_stays_at_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let server = TestServer::at_path(&path, Config::default(), echo());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "another's").unwrap();
    server.stop();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "another's");
}

#[test]
fn the_file_has_the_mode_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [0o600, 0o660, 0o777] {
        let path = folder.path().join(format!("{mode:o}.sock"));
        let address = Address::Unix(path.clone());
        let _socket = Socket::bind_with_mode(address, Some(mode)).unwrap();
        let found = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode);
    }
}

#[test]
fn paths_that_cannot_be_are_told_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("l".repeat(108));
    let lost = folder.path().join("no folder").join("s.sock");
    for path in [long, lost] {
        let error = bind(&path).unwrap_err();
        assert!(matches!(error, Error::Bind { .. }), "{error}");
        assert!(error.to_string().contains("107 bytes"), "{error}");
    }
}

#[test]
fn descriptors_that_listen_are_served_on_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let socket = Socket::of_descriptor(UnixListener::bind(&path).unwrap().into()).unwrap();
    assert_eq!(*socket.address(), Address::Unix(path.clone()));
    drop(socket);
    assert!(is_socket(&path), "it is its maker's");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = Address::Ip(tcp.local_addr().unwrap());
    assert_eq!(*Socket::of_descriptor(tcp.into()).unwrap().address(), at);
    let (a, _b) = UnixStream::pair().unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    for descriptor in [OwnedFd::from(a), OwnedFd::from(file)] {
        let error = Socket::of_descriptor(descriptor).unwrap_err();
        assert!(matches!(error, Error::NotListening { .. }), "{error}");
        assert!(error.to_string().contains("listen(2)"), "{error}");
    }
}
