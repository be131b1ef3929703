//! Sentences for the user about properties of the parts.

use onecopy_rows::sql::query_shape::{PLACEHOLDER, QueryShape};

use super::predicate::KeyColumn;
use super::quantiles::Quantiles;
use crate::error::Error;

/// The largest permitted quotient of the number of rows in the largest part and the mean number of
/// rows in a part. If the quotient is larger, further columns are appended to the key.
pub(super) const BALANCED: f64 = 1.3;

/// Returns sentences for the user that describe how LIMIT, ORDER BY and GROUP BY of the statement
/// affect the parts.
///
/// # Errors
/// [`Error::Usage`] if the rows of all parts together would not be the result of the statement,
/// because it has a LIMIT.
pub(super) fn of_statement(shape: &QueryShape) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    if shape.limits_part {
        return Err(Error::Usage(format!(
            "a LIMIT applies to the rows that `{PLACEHOLDER}` selects, so each part would have \
             its own limit\nremove the LIMIT, or the placeholder"
        )));
    }
    if shape.placeholder.is_none() && shape.is_limited {
        if !shape.is_ordered {
            return Err(Error::Usage(
                "a LIMIT without ORDER BY may choose other rows for each part\n\
                 add an ORDER BY whose columns are unique"
                    .to_owned(),
            ));
        }
        notes.push(
            "the LIMIT chooses the same rows for each part only if the columns of ORDER BY are \
             unique"
                .to_owned(),
        );
    } else if shape.is_ordered {
        notes.push("the ORDER BY orders the rows of each part at most, not the whole".to_owned());
    }
    if shape.combines_part {
        notes.push(format!(
            "groups, DISTINCT and set operations apply to the rows of each part: a group whose \
             rows are in several parts is in several results ({PLACEHOLDER})"
        ));
    }
    Ok(notes)
}

/// Returns a sentence for the user if the parts have very different sizes. The reason is a key with
/// too few different values, or with a value that too many rows have.
pub(super) fn of_skew(columns: &[KeyColumn], found: &Quantiles, n: usize) -> Option<String> {
    let total = found.n_rows();
    if found.skew(n) <= BALANCED || total < n as u64 {
        return None;
    }
    let largest = found.weights.iter().max().copied().unwrap_or(0);
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let names = names.join(", ");
    Some(match largest as f64 * n as f64 > BALANCED * total as f64 {
        true => format!(
            "one value of `{names}` has {:.0} % of the rows and cannot be divided by this key: \
             add a column to `--key`",
            100.0 * largest as f64 / total as f64
        ),
        false => format!("`{names}` has too few different values for {n} equal parts"),
    })
}
