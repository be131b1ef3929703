//! Certificates made on the spot, and their fingerprints.
//!
//! A receiver with TLS makes a key and a certificate when it starts, and keeps them for as long as it runs. The sender is told the
//! certificate's fingerprint by the code, which goes from one person to the other: it takes that certificate and no other, and
//! has the receiver prove that it holds its key. Names, dates and issuers say nothing then, and nobody looks at them.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};

/// Bytes of a fingerprint: the first of the BLAKE3 of the certificate. To make a second certificate with the same takes 2¹²⁸ tries.
pub const FINGERPRINT_BYTES: usize = 16;
/// Stands for one certificate.
pub type Fingerprint = [u8; FINGERPRINT_BYTES];

/// A receiver's certificate and key, as rustls wants them.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What handshakes are made with.
    pub(crate) config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

fn fingerprint_of(certificate: &CertificateDer<'_>) -> Fingerprint {
    let mut first = [0; FINGERPRINT_BYTES];
    first.copy_from_slice(&blake3::hash(certificate).as_bytes()[..FINGERPRINT_BYTES]);
    first
}

impl Identity {
    /// Makes one: ECDSA on P-256.
    ///
    /// # Errors
    /// Of the library that makes it.
    pub fn make() -> io::Result<Identity> {
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
        // No session is taken up again, and a sender that hears something while it sends hears a refusal.
        config.send_tls13_tickets = 0;
        Ok(Identity {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// What the code carries.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// What a sender makes handshakes with, that takes the one certificate.
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

/// Takes one certificate, whatever it says, from who has its key.
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
