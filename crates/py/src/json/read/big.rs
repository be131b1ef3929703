//! Integers of any number of digits.

use num_bigint::BigUint;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};

use crate::raw::objects::scalars;

/// Up to this many digits CPython reads them itself, whatever `sys.set_int_max_str_digits` says, which allows no less.
const MOST_SHORT_DIGITS: usize = 640;

/// Digits that the library reads at once; in halves, those of more take less than the square of their number.
const LEAF_DIGITS: usize = 1024;

/// An `int` of these digits, with a `-` where it has one: all of them, as they are written. `sys.set_int_max_str_digits` guards
/// against time that grows with their square, which is not spent here.
pub(super) fn int<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if text.len() <= MOST_SHORT_DIGITS {
        return scalars::big_int(py, text);
    }
    let digits = text.strip_prefix(b"-");
    let magnitude = magnitude(digits.unwrap_or(text)).to_bytes_le();
    let bytes = PyBytes::new(py, &magnitude);
    let from_bytes = py.get_type::<PyInt>().getattr(intern!(py, "from_bytes"))?;
    let made = from_bytes.call1((bytes, intern!(py, "little")))?;
    if digits.is_some() {
        made.neg()
    } else {
        Ok(made)
    }
}

/// The number of these digits: of a tail whose length is a power of two times [`LEAF_DIGITS`], and of the head before it.
fn magnitude(digits: &[u8]) -> BigUint {
    // 10 to the power of the tail's length, and before it those of the tails of the halves.
    let mut powers = Vec::new();
    let mut n_tail = LEAF_DIGITS;
    while n_tail < digits.len() {
        let power = match powers.last() {
            None => BigUint::from(10_u8).pow(LEAF_DIGITS as u32),
            Some(power) => power * power,
        };
        powers.push(power);
        n_tail *= 2;
    }
    of_halves(digits, &powers)
}

fn of_halves(digits: &[u8], powers: &[BigUint]) -> BigUint {
    let Some((power, smaller)) = powers.split_last() else {
        return BigUint::parse_bytes(digits, 10).expect("the reader tells digits");
    };
    let n_tail = LEAF_DIGITS << smaller.len();
    match digits.len().checked_sub(n_tail) {
        None | Some(0) => of_halves(digits, smaller),
        Some(n_head) => {
            let (head, tail) = digits.split_at(n_head);
            of_halves(head, smaller) * power + of_halves(tail, smaller)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_halves_are_the_number_that_the_library_reads_at_once() {
        for n in [1, 1023, 1024, 1025, 2047, 2048, 2049, 4097, 9000] {
            let digits: Vec<u8> = (0..n)
                .map(|i| b'0' + ((i * 7 + i / 5 + 1) % 10) as u8)
                .collect();
            assert_eq!(
                magnitude(&digits),
                BigUint::parse_bytes(&digits, 10).expect("digits"),
                "{n}"
            );
            let nines = vec![b'9'; n];
            assert_eq!(
                magnitude(&nines) + 1_u8,
                BigUint::from(10_u8).pow(n as u32),
                "{n}"
            );
        }
    }
}
