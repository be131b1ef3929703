//! `Bits` and `Nulls`: builders of bitmaps in Arrow's layout, with one bit per value.

use std::collections::TryReserveError;

/// A bitmap under construction: one bit per value, the least significant bit of a byte first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    /// Creates a bitmap of `len` bits that are all set, with memory reserved for `capacity` bits.
    fn set(len: usize, capacity: usize) -> Result<Bits, TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(capacity.max(len).div_ceil(8))?;
        bytes.resize(len / 8, 0xFF);
        if !len.is_multiple_of(8) {
            bytes.push((1 << (len % 8)) - 1);
        }
        Ok(Bits { bytes, len })
    }

    /// Reserves memory for `n_bits` more bits.
    pub(crate) fn reserve(&mut self, n_bits: usize) -> Result<(), TryReserveError> {
        self.bytes.try_reserve(n_bits.div_ceil(8))
    }

    /// Appends a bit to the bitmap.
    #[inline]
    pub(crate) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(u8::from(bit));
        } else if bit && let Some(last) = self.bytes.last_mut() {
            *last |= 1 << (self.len % 8);
        }
        self.len += 1;
    }

    /// Returns the bytes of the bitmap.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The validity bitmap of a column under construction. It is allocated at the first NULL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nulls {
    bits: Option<Bits>,
    n_nulls: usize,
}

impl Nulls {
    /// Records in the bitmap that the next value is not NULL.
    #[inline]
    pub(crate) fn push_valid(&mut self) {
        if let Some(bits) = &mut self.bits {
            bits.push(true);
        }
    }

    /// Reserves memory for `n_values` more values, if the bitmap is allocated.
    pub(crate) fn reserve(&mut self, n_values: usize) -> Result<(), TryReserveError> {
        match &mut self.bits {
            Some(bits) => bits.reserve(n_values),
            None => Ok(()),
        }
    }

    /// Records in the bitmap that the next value is NULL; `len` is the number of values before it.
    /// The first NULL allocates the bitmap, with memory for `reserved` values.
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

    /// Returns the bitmap (`None` if no value is NULL) and the number of NULLs. The builder is
    /// empty afterwards.
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
