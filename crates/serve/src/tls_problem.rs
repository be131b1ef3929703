//! What is wrong with a file of certificates or of a key.

use std::fmt;
use std::io;

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
    /// It is PEM, but its contents cannot be used.
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
