//! Converts long decimal integers to `int` objects.

use num_bigint::BigUint;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};

use crate::raw::objects::scalars;

/// CPython converts integers of up to this many digits. `sys.set_int_max_str_digits` allows no
/// smaller limit.
const MOST_SHORT_DIGITS: usize = 640;

/// The number of digits that the big integer library converts in one call.
const LEAF_DIGITS: usize = 1024;

/// Creates an `int` from decimal digits and an optional `-`. `sys.set_int_max_str_digits` does not
/// apply: the conversion takes less than quadratic time.
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

/// Converts decimal digits to a number. Splits a long number in two, and converts each part.
fn magnitude(digits: &[u8]) -> BigUint {
    // Powers of ten, one for each length of the second part.
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
