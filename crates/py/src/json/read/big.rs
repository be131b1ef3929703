//! Converts long decimal integers to `int` objects.

use num_bigint::BigUint;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};

use crate::raw::objects::scalars;

/// Integers of up to this number of digits are converted by CPython. It is the smallest limit that
/// `sys.set_int_max_str_digits` allows, so CPython never refuses them.
const MOST_SHORT_DIGITS: usize = 640;

/// The number of digits that the big integer library converts in one call. Longer numbers are split
/// into halves first, so that the conversion takes less than quadratic time.
const LEAF_DIGITS: usize = 1024;

/// Creates an `int` from decimal digits, with an optional `-` before them. The function ignores the
/// limit of `sys.set_int_max_str_digits`. This limit protects against conversions that take
/// quadratic time, but this function takes less than quadratic time.
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

/// Converts decimal digits to a number. Splits the digits into two sections, converts each section,
/// and combines the results. The second section has [`LEAF_DIGITS`] times a power of two digits.
fn magnitude(digits: &[u8]) -> BigUint {
    // Powers of ten. The last one has as many zeros as the tail has digits; the earlier ones are
    // for the tails of the halves.
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
        return BigUint::parse_bytes(digits, 10).expect("the reader passes digits");
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
