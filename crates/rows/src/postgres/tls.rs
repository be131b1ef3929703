//! TLS sessions for an `sslmode`, which determines how the server's certificate is verified.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName,
    UnixTime,
};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

use super::tls_settings::{Password, SslMode, TlsSettings};
use crate::error::{Error, ErrorKind};

/// The files in which distributions store the trusted root certificates.
const SYSTEM_ROOTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

fn failed(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Connect, format!("TLS cannot be used: {what}"))
}

/// Creates a TLS session with the server named `host`, before its handshake.
///
/// # Errors
/// [`ErrorKind::Connect`] if a file that the settings name (such as a certificate) cannot be used,
/// or if `sslmode` requires the verification of the name and `host` is not a valid host name.
pub(super) fn session(settings: &TlsSettings, host: &str) -> Result<ClientConnection, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = [&rustls::version::TLS12, &rustls::version::TLS13];
    let versions = versions.into_iter().zip(settings.versions);
    let versions: Vec<_> = versions
        .filter_map(|(v, is_on)| is_on.then_some(v))
        .collect();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier(settings, provider)?));
    let mut config = match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => {
            let chain = read_certificates(certificate)?;
            let key = read_key(key, settings.key_password.as_ref())?;
            builder.with_client_auth_cert(chain, key).map_err(failed)?
        }
        (Some(certificate), None) => {
            let what = "has no key: set `sslkey`";
            return Err(failed(format_args!(
                "the certificate `{}` {what}",
                certificate.display()
            )));
        }
        (None, _) => builder.with_no_client_auth(),
    };
    config.enable_sni = settings.sends_name;
    config.alpn_protocols = match settings.is_direct {
        true => vec![b"postgresql".to_vec()],
        false => Vec::new(),
    };
    let name = match ServerName::try_from(host.to_owned()) {
        Ok(name) => name,
        // This `sslmode` does not verify the name, so an invalid name is accepted, and no name is
        // sent.
        Err(_) if settings.mode < SslMode::VerifyFull => {
            config.enable_sni = false;
            ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]))
        }
        Err(_) => return Err(failed(format_args!("`{host}` is not a host name"))),
    };
    ClientConnection::new(Arc::new(config), name).map_err(failed)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |e| {
        failed(format_args!(
            "the certificates in `{}`: {e}",
            path.display()
        ))
    };
    let certificates = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    certificates.collect::<Result<_, _>>().map_err(wrong)
}

/// Reads certificate revocation lists. `path` is a PEM file, or a directory of PEM files.
fn read_revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, Error> {
    let wrong = |e| {
        failed(format_args!(
            "the revocation lists in `{}`: {e}",
            path.display()
        ))
    };
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|e| wrong(pem::Error::Io(e)))?;
        let paths = entries.map(|entry| Ok(entry?.path()));
        files = paths
            .collect::<std::io::Result<_>>()
            .map_err(|e| wrong(pem::Error::Io(e)))?;
    }
    let mut lists = Vec::new();
    for file in files.iter().filter(|file| file.is_file() || !path.is_dir()) {
        for list in CertificateRevocationListDer::pem_file_iter(file).map_err(wrong)? {
            lists.push(list.map_err(wrong)?);
        }
    }
    Ok(lists)
}

/// Reads the private key of a client certificate. A file that other users can access is refused, as
/// in libpq.
fn read_key(path: &Path, password: Option<&Password>) -> Result<PrivateKeyDer<'static>, Error> {
    let wrong =
        |what: &dyn std::fmt::Display| failed(format_args!("the key `{}`: {what}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|e| wrong(&e))?;
    // If root owns the file, the file's group may read it.
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        return Err(wrong(
            &"others have access to it; `chmod 600` makes it usable",
        ));
    }
    let pem = std::fs::read(path).map_err(|e| wrong(&e))?;
    let has = |text: &[u8]| pem.windows(text.len()).any(|part| part == text);
    if has(b"Proc-Type: 4,ENCRYPTED") {
        return Err(wrong(
            &"it is encrypted in OpenSSL's old form; `openssl pkcs8 -topk8` converts it",
        ));
    }
    if !has(b"BEGIN ENCRYPTED PRIVATE KEY") {
        return PrivateKeyDer::from_pem_slice(&pem).map_err(|e| wrong(&e));
    }
    let password = password.ok_or_else(|| wrong(&"it is encrypted: set `sslpassword`"))?;
    decrypt(&pem, &password.0).map_err(|e| {
        wrong(&format_args!(
            "it cannot be decrypted; is `sslpassword` its password? ({e})"
        ))
    })
}

/// Decrypts a private key that is encrypted as PKCS #8 defines (RFC 5958).
fn decrypt(pem: &[u8], password: &[u8]) -> Result<PrivateKeyDer<'static>, pkcs8::Error> {
    let text = String::from_utf8_lossy(pem);
    // Text before the key, such as a description of it, is not part of the key.
    let start = text.find("-----BEGIN ENCRYPTED").unwrap_or_default();
    let (_, encrypted) = SecretDocument::from_pem(text[start..].trim_end())?;
    let key = EncryptedPrivateKeyInfoRef::try_from(encrypted.as_bytes())?.decrypt(password)?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// Describes a failed handshake, for an error message; `host` is the name that the certificate
/// should contain.
pub(super) fn explain(error: &std::io::Error, host: &str) -> String {
    let inner = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(wrong)) = inner else {
        return error.to_string();
    };
    match wrong {
        CertificateError::UnknownIssuer => {
            "its certificate is signed by none of the authorities in `sslrootcert`".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet".to_owned()
        }
        CertificateError::Revoked => "its certificate was revoked".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("its certificate is not for the host `{host}`")
        }
        other => format!("its certificate is refused: {other:?}"),
    }
}

fn verifier(settings: &TlsSettings, provider: Arc<CryptoProvider>) -> Result<Verifier, Error> {
    let verifies = settings.mode >= SslMode::VerifyCa;
    let roots = match settings.root_certificates.as_deref() {
        Some("system") => {
            let named = std::env::var_os("SSL_CERT_FILE").map(std::path::PathBuf::from);
            let files = SYSTEM_ROOTS.iter().map(std::path::PathBuf::from);
            let file = named.into_iter().chain(files).find(|path| path.exists());
            let file =
                file.ok_or_else(|| failed("this system has no file of root certificates"))?;
            Some(read_certificates(&file)?)
        }
        // As in libpq, `require` verifies the chain if there is a file of root certificates; weaker
        // modes do not read the file.
        Some(file) if settings.mode >= SslMode::Require => {
            Some(read_certificates(Path::new(file))?)
        }
        _ if verifies => {
            return Err(failed(
                "there are no root certificates to verify the server's by\n\
                 Set `sslrootcert` to a file or to `system`, or use another `sslmode`.",
            ));
        }
        _ => None,
    };
    let mut trusted = Vec::new();
    let chain = match roots {
        None => None,
        Some(certificates) => {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(certificates.iter().cloned());
            trusted = certificates;
            let mut builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone());
            let lists = [&settings.revocations, &settings.revocation_directory];
            for path in lists.into_iter().flatten() {
                builder = builder.with_crls(read_revocations(path)?);
            }
            Some(builder.build().map_err(|e| match e {
                VerifierBuilderError::InvalidCrl(e) => failed(format_args!(
                    "a revocation list of `sslcrl` or `sslcrldir` is not as RFC 5280 requires \
                     (version 2, with its extensions): {e:?}"
                )),
                other => failed(other),
            })?)
        }
    };
    Ok(Verifier {
        chain,
        trusted,
        verifies_name: settings.mode == SslMode::VerifyFull,
        provider,
    })
}

/// Verifies the certificate of a server. The `sslmode` determines what is verified.
#[derive(Debug)]
struct Verifier {
    /// Verifies the chain of certificates from the server's certificate to a trusted one. `None` if
    /// the `sslmode` accepts any certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates in the file that `sslrootcert` names. If a server has a self-signed
    /// certificate, it is accepted only if it is one of these.
    trusted: Vec<CertificateDer<'static>>,
    verifies_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let mut verified =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        // `CaUsedAsEndEntity`: the server's certificate is self-signed, which is usual for
        // PostgreSQL. It is accepted if it is in `sslrootcert`. The verifier makes this check after
        // all others except that of the name, which is therefore verified here.
        if let Err(rustls::Error::InvalidCertificate(CertificateError::Other(other))) = &verified
            && other.0.to_string() == "CaUsedAsEndEntity"
            && self.trusted.contains(end_entity)
        {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            verified = verify_server_name(&certificate, server_name)
                .map(|()| ServerCertVerified::assertion());
        }
        match verified {
            // The verifier compares the name last, so the chain is valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verifies_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let schemes = &self.provider.signature_verification_algorithms;
        schemes.supported_schemes()
    }
}
