//! Divides the rows of a query into parts with nearly the same number of rows. The rows are ordered
//! by a key, and the boundaries of the parts are chosen from quantiles of the key.
//!
//! All rows with the same key value are in the same part. If one value has more rows than an
//! average part, a separate part is made for it, so that the sizes of the other parts stay nearly
//! equal.

/// Divides rows, ordered by a key, into at most `n` parts. The rows between two consecutive
/// candidate boundaries form a group, and `weights[i]` is the number of rows of group `i`. A group
/// is not divided. Returns the index of the first group of each part except the first part, in
/// ascending order.
pub(crate) fn choose(weights: &[u64], n: usize) -> Vec<usize> {
    let mut starts = Vec::with_capacity(n);
    divide(weights, 0, n, &mut starts);
    starts.retain(|&start| start > 0);
    starts
}

/// Returns the number of rows of each part. A part consists of consecutive items of `weights`, and
/// its number of rows is the sum of these items. The first part begins at index 0; `starts` has the
/// index at which each other part begins.
pub(crate) fn sizes(weights: &[u64], starts: &[usize]) -> Vec<u64> {
    let ends = starts.iter().copied().chain([weights.len()]);
    let mut begin = 0;
    ends.map(|end| {
        let size = weights[begin..end].iter().sum();
        begin = end;
        size
    })
    .collect()
}

/// Divides `weights` into at most `n` parts of consecutive items. For each part, appends the index
/// of its first item to `starts`. Indexes count from the start of the complete list of weights,
/// in which `weights` begins at the index `offset`.
fn divide(weights: &[u64], offset: usize, n: usize, starts: &mut Vec<usize>) {
    let total: u64 = weights.iter().sum();
    if weights.is_empty() {
        return;
    }
    let Some((heavy, &weight)) = weights
        .iter()
        .enumerate()
        .max_by_key(|(_, weight)| **weight)
    else {
        return;
    };
    if n <= 1 || weights.len() == 1 {
        starts.push(offset);
        return;
    }
    // If `weight * n > total`, the heaviest value has more rows than the mean of the parts.
    if u128::from(weight) * n as u128 <= u128::from(total) {
        quantiles(weights, offset, n, total, starts);
        return;
    }
    let (left, right) = (&weights[..heavy], &weights[heavy + 1..]);
    let (n_left, n_right) = share(left, right, n - 1);
    if (n_left == 0 && !left.is_empty()) || (n_right == 0 && !right.is_empty()) {
        // There are only two parts for the heavy value and its two sides, so the smaller side is
        // joined with the heavy value.
        let is_left_smaller = left.iter().sum::<u64>() <= right.iter().sum();
        starts.push(offset);
        starts.push(offset + heavy + usize::from(is_left_smaller));
        return;
    }
    divide(left, offset, n_left, starts);
    starts.push(offset + heavy);
    divide(right, offset + heavy + 1, n_right, starts);
}

/// Returns into how many parts two ranges of rows are divided: `n` in total, in proportion to the
/// numbers of rows of the ranges. If `n` is at least 2, a range that is not empty gets at least one
/// part.
fn share(left: &[u64], right: &[u64], n: usize) -> (usize, usize) {
    if left.is_empty() || right.is_empty() {
        return match left.is_empty() {
            true => (0, n),
            false => (n, 0),
        };
    }
    if n < 2 {
        return (n, 0);
    }
    let (l, r) = (left.iter().sum::<u64>(), right.iter().sum::<u64>());
    let share = match l + r {
        0 => n as f64 / 2.0,
        total => n as f64 * l as f64 / total as f64,
    };
    let n_left = (share.round() as usize).clamp(1, n - 1);
    (n_left, n - n_left)
}

/// Divides the items of `weights` into at most `n` parts of about equal weight. For each part,
/// appends `offset` plus the index of its first item to `starts`. `total` is the sum of `weights`.
fn quantiles(weights: &[u64], offset: usize, n: usize, total: u64, starts: &mut Vec<usize>) {
    let (mut before, mut at) = (0_u64, 0);
    for i in 0..n {
        let goal = total as f64 * i as f64 / n as f64;
        while at < weights.len() && before as f64 + weights[at] as f64 / 2.0 <= goal && i > 0 {
            before += weights[at];
            at += 1;
        }
        let position = offset + at;
        if at < weights.len() && starts.last() != Some(&position) {
            starts.push(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the largest of the part sizes `sizes`, divided by the mean size. Returns 1 if all
    /// sizes are 0.
    fn imbalance(sizes: &[u64]) -> f64 {
        let (largest, total) = (
            sizes.iter().max().copied().unwrap_or(0),
            sizes.iter().sum::<u64>(),
        );
        match total {
            0 => 1.0,
            total => largest as f64 * sizes.len() as f64 / total as f64,
        }
    }

    fn parts(weights: &[u64], n: usize) -> Vec<u64> {
        let starts = choose(weights, n);
        assert!(starts.is_sorted_by(|a, b| a < b), "{starts:?}");
        assert!(starts.len() < n.max(1), "{starts:?}");
        assert!(
            starts
                .iter()
                .all(|&start| start > 0 && start < weights.len())
        );
        sizes(weights, &starts)
    }

    #[test]
    fn equal_weights_are_divided_equally() {
        for n in 1..40 {
            let parts = parts(&[10; 960], n);
            assert_eq!(parts.len(), n);
            assert!(
                imbalance(&parts) <= 1.0 + n as f64 / 960.0,
                "{n}: {parts:?}"
            );
        }
    }

    #[test]
    fn few_values_make_few_parts() {
        assert!(choose(&[], 4).is_empty());
        assert!(choose(&[5], 4).is_empty());
        assert_eq!(parts(&[5, 5], 4), [5, 5]);
        assert_eq!(parts(&[0, 0, 0], 3).iter().sum::<u64>(), 0);
    }

    #[test]
    fn a_heavy_value_is_a_part_of_its_own() {
        let mut weights = vec![1; 600];
        weights[200] = 400;
        let parts = parts(&weights, 10);
        assert_eq!((parts.len(), parts.iter().max()), (10, Some(&400)));
        let light: Vec<u64> = parts.into_iter().filter(|&size| size != 400).collect();
        assert!(imbalance(&light) < 1.02, "{light:?}");
    }

    #[test]
    fn a_heavy_value_between_others_is_joined_with_the_smaller_neighbour() {
        assert_eq!(parts(&[1, 100, 30], 2), [101, 30]);
        assert_eq!(parts(&[30, 100, 1], 2), [30, 101]);
    }

    #[test]
    fn zipf_weights_have_the_least_possible_imbalance() {
        for exponent in [0.5, 0.8, 1.0, 1.2, 1.5] {
            let weight = |rank: usize| (1e6 / (rank as f64).powf(exponent)) as u64;
            let weights: Vec<u64> = (1..2000).map(weight).collect();
            for n in [2, 3, 5, 16, 64] {
                let parts = parts(&weights, n);
                let total: u64 = weights.iter().sum();
                let bound = weights[0].max(total / n as u64) as f64;
                let largest = *parts.iter().max().unwrap() as f64;
                assert!(
                    largest <= 1.35 * bound,
                    "{exponent} {n}: {largest} of {bound}"
                );
            }
        }
    }

    #[test]
    fn every_row_is_in_one_part_for_any_weights() {
        let mut seed = 1_u64;
        let mut random = |most: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % most
        };
        for _ in 0..2000 {
            let n_weights = random(30) as usize;
            let scale = 1 + random(1000);
            let weights: Vec<u64> = (0..n_weights).map(|_| random(scale)).collect();
            let n = 1 + random(20) as usize;
            let parts = parts(&weights, n);
            assert_eq!(parts.iter().sum::<u64>(), weights.iter().sum::<u64>());
        }
    }
}
