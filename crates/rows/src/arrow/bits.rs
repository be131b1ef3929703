//! Bits, one for each value, as Arrow packs them.

use std::collections::TryReserveError;

/// Bits under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    /// `len` bits that are set, with memory for as many as `capacity`.
    fn set(len: usize, capacity: usize) -> Result<Bits, TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(capacity.max(len).div_ceil(8))?;
        bytes.resize(len / 8, 0xFF);
        if !len.is_multiple_of(8) {
            bytes.push((1 << (len % 8)) - 1);
        }
        Ok(Bits { bytes, len })
    }

    /// Memory for so many more.
    pub(crate) fn reserve(&mut self, n_bits: usize) -> Result<(), TryReserveError> {
        self.bytes.try_reserve(n_bits.div_ceil(8))
    }

    /// Adds a bit.
    #[inline]
    pub(crate) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(u8::from(bit));
        } else if bit && let Some(last) = self.bytes.last_mut() {
            *last |= 1 << (self.len % 8);
        }
        self.len += 1;
    }

    /// Their bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Which values are NULL: bits from the first NULL on, nothing before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nulls {
    bits: Option<Bits>,
    n_nulls: usize,
}

impl Nulls {
    /// A value that is not NULL.
    #[inline]
    pub(crate) fn push_valid(&mut self) {
        if let Some(bits) = &mut self.bits {
            bits.push(true);
        }
    }

    /// Memory for so many more values.
    pub(crate) fn reserve(&mut self, n_values: usize) -> Result<(), TryReserveError> {
        match &mut self.bits {
            Some(bits) => bits.reserve(n_values),
            None => Ok(()),
        }
    }

    /// A NULL that follows `len` values; the first one takes memory for as many values as
    /// `reserved`.
    #[inline]
    pub(crate) fn push_null(&mut self, len: usize, reserved: usize) -> Result<(), TryReserveError> {
        let bits = match &mut self.bits {
            Some(bits) => bits,
            none => none.insert(Bits::set(len, reserved)?),
        };
        bits.push(false);
        self.n_nulls += 1;
        Ok(())
    }

    /// The bits, where a value is NULL, and how many are; starts anew.
    pub(crate) fn take(&mut self) -> (Option<Vec<u8>>, usize) {
        let nulls = std::mem::take(self);
        (nulls.bits.map(Bits::into_bytes), nulls.n_nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::super::array::bit;
    use super::*;

    #[test]
    fn bits_begin_with_the_first_null() {
        for n_before in 0..40 {
            let mut nulls = Nulls::default();
            (0..n_before).for_each(|_| nulls.push_valid());
            nulls.push_null(n_before, 1024).unwrap();
            nulls.push_valid();
            let (bits, n_nulls) = nulls.take();
            let bits = bits.unwrap();
            assert_eq!(n_nulls, 1);
            for at in 0..n_before + 2 {
                assert_eq!(bit(&bits, at), at != n_before, "{n_before} {at}");
            }
            assert!(!bit(&bits, n_before + 2));
            assert_eq!(nulls.take(), (None, 0));
        }
    }
}
