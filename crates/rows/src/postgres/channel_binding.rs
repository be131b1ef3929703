//! Channel binding for SCRAM by the hash of the server's certificate: `tls-server-end-point` (RFC
//! 5929, section 4).

use rustls::ClientConnection;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// Returns the hash of the server's certificate, computed with the hash function of the
/// certificate's signature algorithm. Returns `None` if that algorithm has no hash function, such
/// as Ed25519.
pub(super) fn tls_server_end_point(tls: &ClientConnection) -> Option<Vec<u8>> {
    hash(tls.peer_certificates()?.first()?)
}

fn hash(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match signature_algorithm(certificate)? {
        // sha384WithRSAEncryption and ecdsa-with-SHA384 use SHA-384; the next two use SHA-512; RFC
        // 5929 replaces MD5 and SHA-1 by SHA-256.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3] => Sha384::digest(certificate).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4] => Sha512::digest(certificate).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4 | 5 | 11]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2] => Sha256::digest(certificate).to_vec(),
        _ => return None,
    })
}

/// Returns the object identifier of the signature algorithm of a certificate in DER: `SEQUENCE {
/// tbsCertificate, SEQUENCE { OID, … }, … }`. Returns `None` for other data.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (outer, _) = element(certificate, 0x30)?;
    let (_, after) = element(outer, 0x30)?;
    let (algorithm, _) = element(after, 0x30)?;
    element(algorithm, 0x06).map(|(oid, _)| oid)
}

/// Parses the DER element with the tag `tag` at the start of `der`; returns the element's content
/// and the bytes after the element, or `None` for other data.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = der.split_first_chunk::<2>()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (
                digits
                    .iter()
                    .fold(0, |n, digit| n << 8 | usize::from(*digit)),
                rest,
            )
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(len))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(oid: &[u8]) -> Vec<u8> {
        let of = |tag, content: &[u8]| {
            [
                &[tag, 0x82, 0, u8::try_from(content.len()).unwrap()],
                content,
            ]
            .concat()
        };
        let algorithm = of(
            0x30,
            &[&[0x06, u8::try_from(oid.len()).unwrap()], oid].concat(),
        );
        of(0x30, &[of(0x30, b"to be signed"), algorithm].concat())
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        for (oid, len) in [
            (
                &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11][..],
                Some(32),
            ),
            (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], Some(32)),
            (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], Some(48)),
            (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], Some(64)),
            // The object identifier of Ed25519.
            (&[0x2b, 0x65, 0x70], None),
        ] {
            assert_eq!(hash(&certificate(oid)).map(|h| h.len()), len, "{oid:x?}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_hash() {
        let whole = certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]);
        for n in 0..whole.len() {
            assert_eq!(hash(&whole[..n]), None);
        }
        assert_eq!(hash(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
