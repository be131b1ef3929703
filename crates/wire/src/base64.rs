//! [`write()`] and [`Carry`] write binary values as base64 (RFC 4648, section 4, with padding).
//! [`write()`] encodes a complete value, and [`Carry`] a value that arrives in parts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use onecopy_text::{ByteSink, SinkFull};

/// The number of bytes that are encoded per step into a buffer on the stack. It is a multiple of 3,
/// so that padding can occur only at the end of the value.
const STEP_BYTES: usize = 768;

/// Appends the base64 text of `bytes`.
///
/// The text is encoded into a buffer of 1 KiB on the stack, and then copied to the sink.
///
/// # Errors
/// Returns [`SinkFull`] if the sink has no space. Nothing is written in this case.
pub fn write<S: ByteSink>(bytes: &[u8], sink: &mut S) -> Result<(), SinkFull> {
    let mut window = sink.window(bytes.len().div_ceil(3) * 4)?;
    let mut encoded = [0_u8; STEP_BYTES / 3 * 4];
    for step in bytes.chunks(STEP_BYTES) {
        let len = STANDARD
            .encode_slice(step, &mut encoded)
            .expect("four bytes for each three begun");
        window.put(&encoded[..len]);
    }
    Ok(())
}

/// A base64 encoder for a value that arrives in parts. Base64 encodes groups of three bytes, so the
/// encoder keeps the 0 to 2 bytes after the last complete group until the next part arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Carry {
    bytes: [u8; 2],
    len: usize,
}

impl Carry {
    /// Appends the base64 text of the complete groups of three bytes in the kept bytes and `part`.
    /// Keeps the remaining bytes, at most 2.
    ///
    /// # Errors
    /// Returns [`SinkFull`] if the sink has no space.
    pub fn part<S: ByteSink>(&mut self, mut part: &[u8], sink: &mut S) -> Result<(), SinkFull> {
        if self.len > 0 {
            let missing = 3 - self.len;
            if part.len() < missing {
                self.keep(part);
                return Ok(());
            }
            let mut group = [0; 3];
            group[..self.len].copy_from_slice(&self.bytes[..self.len]);
            group[self.len..].copy_from_slice(&part[..missing]);
            write(&group, sink)?;
            part = &part[missing..];
            self.len = 0;
        }
        let (whole, rest) = part.split_at(part.len() / 3 * 3);
        write(whole, sink)?;
        self.keep(rest);
        Ok(())
    }

    /// Appends the base64 text of the bytes that remain from earlier calls (at most two), with
    /// padding. The encoder can then be used for another value.
    ///
    /// # Errors
    /// Returns [`SinkFull`] if the sink has no space.
    pub fn end<S: ByteSink>(&mut self, sink: &mut S) -> Result<(), SinkFull> {
        let len = std::mem::take(&mut self.len);
        write(&self.bytes[..len], sink)
    }

    fn keep(&mut self, rest: &[u8]) {
        self.bytes[self.len..self.len + rest.len()].copy_from_slice(rest);
        self.len += rest.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_encode_as_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..2000), cuts in prop::collection::vec(0..2000_usize, 0..6)) {
            let mut whole = Vec::new();
            write(&bytes, &mut whole).expect("memory");
            prop_assert_eq!(&whole, &STANDARD.encode(&bytes).into_bytes());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut out, mut carry, mut at) = (Vec::new(), Carry::default(), 0);
            for cut in cuts.into_iter().chain([bytes.len()]) {
                carry.part(&bytes[at..cut], &mut out).expect("memory");
                at = cut;
            }
            carry.end(&mut out).expect("memory");
            prop_assert_eq!(out, whole);
        }
    }
}
