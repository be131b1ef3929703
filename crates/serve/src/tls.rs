//! [`Tls`]: the certificates and the private key of a TLS server.

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

/// The certificates and the private key of a TLS server. TLS 1.2 and 1.3 are supported. The only
/// protocol offered by ALPN (RFC 7301) is `http/1.1`. Sessions are stored in the memory of this
/// process, so that clients can resume them. A clone is cheap.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Reads the certificates (that of the server first) and the private key from PEM files. Both
    /// may be in the same file.
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

    /// Creates the TLS state (rustls) of a new connection.
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
    // The lines that mark an encrypted key, in PKCS#8 and in an older format (RFC 1421).
    let marks: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];
    if marks.iter().any(|m| text.windows(m.len()).any(|w| w == *m)) {
        return Err(TlsProblem::EncryptedKey);
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsProblem::NoKey,
        error => TlsProblem::Malformed(error.to_string()),
    })
}
