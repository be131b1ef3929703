//! [`TlsProblem`]: a problem with the file of a certificate or a private key.

use std::fmt;
use std::io;

/// A problem with the file of a certificate or a private key.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsProblem {
    /// The file cannot be read. Check its name and its permissions.
    Read(io::Error),
    /// The file contains no certificate in PEM format (RFC 7468). Provide the server's certificate,
    /// followed by those of the authorities that have signed it.
    NoCertificate,
    /// The file contains no private key in PEM. PKCS#8, PKCS#1 and SEC1 are supported.
    NoKey,
    /// The key is encrypted with a password. Write it without a password: `openssl pkey -in FILE
    /// -out FILE2`.
    EncryptedKey,
    /// The private key does not belong to the first certificate. The user must provide the key of
    /// this certificate.
    Mismatch,
    /// The file is PEM, but a certificate or key in it cannot be parsed. The string is the reason.
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
                "contains no certificate\n\
                 it must be in PEM form: `-----BEGIN CERTIFICATE-----`, the server's own first",
            ),
            TlsProblem::NoKey => f.write_str(
                "contains no private key\nit must be in PEM form: `-----BEGIN PRIVATE KEY-----`",
            ),
            TlsProblem::EncryptedKey => f.write_str(
                "is locked with a password\nwrite the key without one: `openssl pkey -in FILE -out FILE2`",
            ),
            TlsProblem::Mismatch => f.write_str(
                "is not the key of the certificate\nuse the two files that were created together",
            ),
            TlsProblem::Malformed(what) => {
                write!(f, "cannot be used: {what}\nmake it anew, with RSA, ECDSA or Ed25519")
            }
        }
    }
}
