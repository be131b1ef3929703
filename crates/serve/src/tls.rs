//! A certificate and its key, ready for handshakes.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{InconsistentKeys, ServerConfig, ServerConnection};

use crate::error::Error;

/// What a TLS server shows: its certificates and how it proves that they are its own. TLS 1.2 and 1.3, `http/1.1` alone by ALPN
/// (RFC 7301), sessions resumed out of the memory of this process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ServerConfig>);

/// What is wrong with a file of certificates or of a key.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsProblem {
    /// It cannot be read. Look at its name, and whether this user may read it.
    Read(io::Error),
    /// It holds no certificate in PEM (RFC 7468). Give the server's certificate first, then those that signed it.
    NoCertificate,
    /// It holds no private key in PEM. PKCS#8, PKCS#1 and SEC1 are read.
    NoKey,
    /// The key is locked with a password. Write it without one: `openssl pkey -in FILE -out FILE2`.
    EncryptedKey,
    /// The key is not that of the first certificate. Give the two that were made together.
    Mismatch,
    /// It is in PEM, but what stands there cannot be used.
    Malformed(String),
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsProblem::Read(source) => write!(
                f,
                "cannot be read: {source}\nname a file in PEM form that this user may read"
            ),
            TlsProblem::NoCertificate => f.write_str(
                "holds no certificate\nit must be in PEM form: `-----BEGIN CERTIFICATE-----`, the server's own first",
            ),
            TlsProblem::NoKey => f.write_str(
                "holds no private key\nit must be in PEM form: `-----BEGIN PRIVATE KEY-----`",
            ),
            TlsProblem::EncryptedKey => f.write_str(
                "is locked with a password\nwrite the key without one: `openssl pkey -in FILE -out FILE2`",
            ),
            TlsProblem::Mismatch => f.write_str(
                "is not the key of the certificate\ngive the two files that were made together",
            ),
            TlsProblem::Malformed(what) => {
                write!(f, "cannot be used: {what}\nmake it anew, with RSA, ECDSA or Ed25519")
            }
        }
    }
}

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
