//! A TLS server, and a client based on rustls.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use onecopy_serve::{Config, Handler, Tls};
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use tempfile::TempDir;

use crate::common::{Client, PATIENCE, TestServer};

/// A new self-signed certificate and its key in files, and the root store of a client that trusts
/// it.
pub(crate) struct Identity {
    _folder: TempDir,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    roots: RootCertStore,
}

impl Identity {
    pub(crate) fn new() -> Identity {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (
            folder.path().join("cert.pem"),
            folder.path().join("key.pem"),
        );
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        Identity {
            _folder: folder,
            certificate,
            key,
            roots,
        }
    }

    pub(crate) fn tls(&self) -> Tls {
        Tls::from_files(&self.certificate, &self.key).unwrap()
    }

    pub(crate) fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(self.roots.clone());
        builder.with_no_client_auth()
    }
}

/// A socket that writes at most the given number of bytes in each call.
pub(crate) struct Cut(TcpStream, usize);

impl Read for Cut {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(self.1)])
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

pub(crate) type Session = StreamOwned<ClientConnection, Cut>;

/// A TLS server with the identity that its clients trust.
pub(crate) struct Secure {
    pub(crate) server: TestServer,
    pub(crate) identity: Identity,
}

impl Secure {
    pub(crate) fn with(mut config: Config, handler: impl Handler) -> Secure {
        let identity = Identity::new();
        config.tls = Some(identity.tls());
        Secure {
            server: TestServer::with(config, handler),
            identity,
        }
    }

    pub(crate) fn start(handler: impl Handler) -> Secure {
        Secure::with(Config::default(), handler)
    }

    pub(crate) fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(self.server.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
    }

    pub(crate) fn connect_by(&self, config: ClientConfig, cut: usize) -> Client<Session> {
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        Client::on(StreamOwned::new(session, Cut(self.socket(), cut)))
    }

    pub(crate) fn connect(&self) -> Client<Session> {
        self.connect_by(self.identity.client(&[&TLS13]), usize::MAX)
    }
}

/// Reads until the connection ends. Returns the bytes, and `true` if the server sent close_notify.
pub(crate) fn rest(client: &mut Client<Session>) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    match client.stream.read_to_end(&mut all) {
        Ok(_) => (all, true),
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
            ) =>
        {
            (all, false)
        }
        Err(e) => panic!("{e}"),
    }
}
