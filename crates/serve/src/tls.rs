//! A certificate and its key, ready for handshakes.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{InconsistentKeys, ServerConfig, ServerConnection};

use crate::error::Error;
pub use crate::tls_problem::TlsProblem;

/// What a TLS server shows: its certificates and how it proves that they are its own. TLS 1.2 and 1.3, `http/1.1` alone by ALPN
/// (RFC 7301), sessions resumed out of the memory of this process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Reads the certificates, the server's own first, and its key. Both may stand in one file.
    ///
    /// # Errors
    /// [`Error::Tls`].
    pub fn from_files(certificates: &Path, key: &Path) -> Result<Tls, Error> {
        let of = |path: &Path| {
            let path = path.to_owned();
            move |problem| Error::Tls { path, problem }
        };
        let chain = read_certificates(certificates).map_err(of(certificates))?;
        let private = read_key(key).map_err(of(key))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let built = builder
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(chain, private)
            });
        let mut config = built.map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                of(key)(TlsProblem::Mismatch)
            }
            error @ rustls::Error::InvalidCertificate(_) => {
                of(certificates)(TlsProblem::Malformed(error.to_string()))
            }
            error => of(key)(TlsProblem::Malformed(error.to_string())),
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(Arc::new(config)))
    }

    /// A session that waits for a client's first words.
    pub(crate) fn session(&self) -> io::Result<ServerConnection> {
        ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsProblem> {
    let text = fs::read(path).map_err(TlsProblem::Read)?;
    let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    match chain {
        Ok(chain) if chain.is_empty() => Err(TlsProblem::NoCertificate),
        Ok(chain) => Ok(chain),
        Err(error) => Err(TlsProblem::Malformed(error.to_string())),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsProblem> {
    let text = fs::read(path).map_err(TlsProblem::Read)?;
    // PKCS#8's own form, and a header of old (RFC 1421).
    let marks: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];
    if marks.iter().any(|m| text.windows(m.len()).any(|w| w == *m)) {
        return Err(TlsProblem::EncryptedKey);
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsProblem::NoKey,
        error => TlsProblem::Malformed(error.to_string()),
    })
}
