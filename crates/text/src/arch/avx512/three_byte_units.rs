//! Encodes UTF-16 units from U+0800 on as UTF-8. 64 units of three bytes fill three vectors.

use std::arch::x86_64::*;

use super::{load, select};

/// The tables for one of three result vectors.
pub(super) struct Three {
    /// For each group of 8 result bytes: the indexes of the four consecutive units it is made from.
    units: [u16; 32],
    /// For each result byte: its lowest bit in the 64 bits of its four units.
    shifts: [u8; 64],
    bits: [u8; 64],
    marks: [u8; 64],
}

/// The tables of the three result vectors. They read 32 units each, from unit 0, 16 and 32 on.
pub(super) static THREE: [Three; 3] = [Three::new(0), Three::new(1), Three::new(2)];

impl Three {
    const fn new(part: usize) -> Three {
        let mut made = Three {
            units: [0; 32],
            shifts: [0; 64],
            bits: [0; 64],
            marks: [0; 64],
        };
        let mut i = 0;
        while i < 64 {
            let at = 64 * part + i;
            let begins = (at - at % 8) / 3;
            let which = at % 3;
            if i % 8 == 0 {
                let mut k = 0;
                while k < 4 {
                    // No result byte has bits of a unit after the input vector.
                    made.units[i / 2 + k] = ((begins + k - 16 * part) % 32) as u16;
                    k += 1;
                }
            }
            made.shifts[i] = (16 * (at / 3 - begins) + 12 - 6 * which) as u8;
            made.bits[i] = if which == 0 { 0x0F } else { 0x3F };
            made.marks[i] = if which == 0 { 0xE0 } else { 0x80 };
            i += 1;
        }
        made
    }

    #[inline]
    #[target_feature(enable = "avx512bw,avx512vbmi")]
    pub(super) fn encode(&self, units: __m512i) -> __m512i {
        // SAFETY: each of the tables has 64 bytes.
        let table = |p: *const u8| unsafe { load(p) };
        let units = _mm512_permutexvar_epi16(table(self.units.as_ptr().cast()), units);
        let six = _mm512_multishift_epi64_epi8(table(self.shifts.as_ptr()), units);
        select(table(self.bits.as_ptr()), six, table(self.marks.as_ptr()))
    }
}
