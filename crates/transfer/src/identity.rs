//! [`CertificateIdentity`]: temporary certificates of receivers, and their fingerprints.
//!
//! A receiver with TLS creates a key and a certificate when it starts. The code that one person
//! passes to the other contains the fingerprint of this certificate. The sender accepts only this
//! certificate, and the handshake proves that the receiver has its key. Names, dates and issuers in
//! the certificate are not needed and not checked.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};

/// The size of a fingerprint in bytes: the first bytes of the BLAKE3 hash of the certificate.
/// Finding another certificate with the same fingerprint takes 2¹²⁸ attempts.
pub const FINGERPRINT_BYTES: usize = 16;
/// The fingerprint of a certificate.
pub type Fingerprint = [u8; FINGERPRINT_BYTES];

/// A receiver's certificate and private key, as a TLS configuration of rustls, and the
/// certificate's fingerprint.
#[derive(Clone, Debug)]
pub struct CertificateIdentity {
    /// The TLS configuration with the certificate and key.
    pub(crate) config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

fn fingerprint_of(certificate: &CertificateDer<'_>) -> Fingerprint {
    let mut first = [0; FINGERPRINT_BYTES];
    first.copy_from_slice(&blake3::hash(certificate).as_bytes()[..FINGERPRINT_BYTES]);
    first
}

impl CertificateIdentity {
    /// Creates a key (ECDSA on P-256) and its certificate.
    ///
    /// # Errors
    /// The error of the library that creates them.
    pub fn make() -> io::Result<CertificateIdentity> {
        let made =
            rcgen::generate_simple_self_signed(["onecopy".to_owned()]).map_err(io::Error::other)?;
        let certificate = made.cert.der().clone();
        let key =
            PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(io::Error::other)?;
        let fingerprint = fingerprint_of(&certificate);
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let mut config = builder
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(io::Error::other)?;
        // No session tickets are sent. Sessions are not resumed, and a sender treats any data that
        // it receives during a transfer as a refusal.
        config.send_tls13_tickets = 0;
        Ok(CertificateIdentity {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// Returns the fingerprint of the certificate, which becomes a part of the receiver's code.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// Returns the TLS configuration of a sender that accepts only the certificate with this
/// fingerprint.
pub(crate) fn client_config(fingerprint: Fingerprint) -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let config = builder
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OneCertificate {
            fingerprint,
            provider,
        }))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Verifies that the certificate has the expected fingerprint, and that the peer has the private
/// key of this certificate. The contents of the certificate are ignored.
#[derive(Debug)]
struct OneCertificate {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OneCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match fingerprint_of(end_entity) == self.fingerprint {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
