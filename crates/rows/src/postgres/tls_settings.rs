//! `TlsSettings`: the settings of TLS, derived from libpq's keywords.

use std::path::PathBuf;

use super::connect_defaults::Environment;
use super::settings::{choice, wrong};
use super::target::Keywords;
use crate::error::Error;

/// The value of the keyword `sslmode`, which determines whether TLS is used, and how the server's
/// certificate is verified. The variants are ordered by the protection that they give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// A password. Its `Debug` output is `***`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(pub(super) Vec<u8>);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// The settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) mode: SslMode,
    /// `true` to start TLS without an SSLRequest message (servers from version 17 on).
    pub(super) is_direct: bool,
    /// The path of a PEM file with root certificates; `system` for the system's certificates.
    pub(super) root_certificates: Option<String>,
    /// The path of a PEM file with certificate revocation lists; `None` to skip the check for
    /// revocation.
    pub(super) revocations: Option<PathBuf>,
    /// The path of a directory whose files are certificate revocation lists.
    pub(super) revocation_directory: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    /// The password that decrypts the file `key`; `None` if the key is not encrypted.
    pub(super) key_password: Option<Password>,
    /// `true` to send the server's name in the handshake (SNI).
    pub(super) sends_name: bool,
    /// The permitted TLS versions: index 0 is for TLS 1.2, index 1 for TLS 1.3.
    pub(super) versions: [bool; 2],
}

impl TlsSettings {
    /// Reads the settings from libpq's keywords.
    ///
    /// # Errors
    /// A keyword has a value that it does not permit, or two keywords contradict each other.
    pub(super) fn read(
        keywords: &Keywords,
        environment: &dyn Environment,
    ) -> Result<TlsSettings, Error> {
        let of = |key: &str| keywords.get(key).filter(|value| !value.is_empty()).cloned();
        let in_home = |name: &str| {
            let path = environment.home()?.join(".postgresql").join(name);
            path.exists().then_some(path)
        };
        let root = of("sslrootcert").or_else(|| Some(in_home("root.crt")?.to_str()?.to_owned()));
        // With `sslrootcert=system`, any public authority can sign a certificate, so the connection
        // is protected only if the server's name is verified.
        let default = match root.as_deref() {
            Some("system") => SslMode::VerifyFull,
            _ => SslMode::Prefer,
        };
        let modes = [
            ("disable", SslMode::Disable),
            ("allow", SslMode::Allow),
            ("prefer", SslMode::Prefer),
            ("require", SslMode::Require),
            ("verify-ca", SslMode::VerifyCa),
            ("verify-full", SslMode::VerifyFull),
        ];
        let mode = choice(keywords, "sslmode", &modes, default)?;
        let negotiations = [("postgres", false), ("direct", true)];
        let is_direct = choice(keywords, "sslnegotiation", &negotiations, false)?;
        if root.as_deref() == Some("system") && mode != SslMode::VerifyFull {
            return Err(wrong(
                "sslmode",
                "`sslrootcert=system` is used with `verify-full` only",
            ));
        }
        if is_direct && mode < SslMode::Require {
            return Err(wrong(
                "sslmode",
                "`sslnegotiation=direct` needs `require` or more",
            ));
        }
        let sends_certificate = choice(
            keywords,
            "sslcertmode",
            &[("disable", false), ("allow", true)],
            true,
        )?;
        let file = |keyword: &str, default: &str| {
            let named = of(keyword).map(PathBuf::from);
            named.or_else(|| in_home(default))
        };
        let [min, max] = ["ssl_min_protocol_version", "ssl_max_protocol_version"];
        let (any, v3) = ([true, true], [false, true]);
        let old = [("TLSv1", any), ("TLSv1.1", any), ("TLSv1.2", any)];
        let from = choice(
            keywords,
            min,
            &[old[0], old[1], old[2], ("TLSv1.3", v3)],
            any,
        )?;
        let to = choice(
            keywords,
            max,
            &[("TLSv1.2", [true, false]), ("TLSv1.3", any)],
            any,
        )?;
        let versions = [from[0] && to[0], from[1] && to[1]];
        if versions == [false, false] {
            return Err(wrong(max, "it is below `ssl_min_protocol_version`"));
        }
        Ok(TlsSettings {
            mode,
            is_direct,
            root_certificates: root,
            revocations: file("sslcrl", "root.crl"),
            revocation_directory: of("sslcrldir").map(PathBuf::from),
            certificate: file("sslcert", "postgresql.crt").filter(|_| sends_certificate),
            key: file("sslkey", "postgresql.key"),
            key_password: of("sslpassword").map(|password| Password(password.into_bytes())),
            sends_name: choice(keywords, "sslsni", &[("1", true), ("0", false)], true)?,
            versions,
        })
    }
}
