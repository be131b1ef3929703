//! TLS by `sslmode`: what is verified of the server's certificate, and what the authentication is bound to.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

use super::settings::{SslMode, TlsSettings};
use crate::error::{Error, ErrorKind};

/// Files in which distributions have the certificates that the system trusts.
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

/// A session with the server of this name, whose handshake is still to be made.
///
/// # Errors
/// [`ErrorKind::Connect`]: a file that cannot be read, a name that no certificate can have.
pub(super) fn session(settings: &TlsSettings, host: &str) -> Result<ClientConnection, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier(settings, provider)?));
    let mut config = match (&settings.certificate, &settings.key) {
        (Some(certificate), Some(key)) => {
            let chain = read_certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|e| failed(format_args!("the key `{}`: {e}", key.display())))?;
            builder.with_client_auth_cert(chain, key).map_err(failed)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = match settings.is_direct {
        true => vec![b"postgresql".to_vec()],
        false => Vec::new(),
    };
    let name = match ServerName::try_from(host.to_owned()) {
        Ok(name) => name,
        // The name is not verified: any will do, and none is sent.
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
        // As libpq: a file of roots makes `require` verify the chain; below that it is not read.
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
    let chain = match roots {
        None => None,
        Some(certificates) => {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(certificates);
            let builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone());
            Some(builder.build().map_err(failed)?)
        }
    };
    Ok(Verifier {
        chain,
        verifies_name: settings.mode == SslMode::VerifyFull,
        provider,
    })
}

/// Verifies what `sslmode` says.
#[derive(Debug)]
struct Verifier {
    /// Verifies the chain and the name; `None` accepts any certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
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
        let verified =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is compared last: the chain was found right.
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
