//! [`Sample`]: the rows of a large table from which quantiles are computed.

use super::catalog::{Sampling, Table};
use super::predicate::Condition;

/// A table with at most this number of rows is read completely, unless the caller chooses the size
/// of the sample.
const WHOLE_ROWS: u64 = 200_000;
/// The smallest number of rows of a sample. With many parts, the sample has [`ROWS_PER_PART`] rows
/// for each part instead.
const LEAST_ROWS: u64 = 20_000;
const ROWS_PER_PART: u64 = 5_000;
/// The smallest number of rows of a sample that consists of whole pages. It is larger than
/// [`LEAST_ROWS`], because the keys on one page are often neighbours and give little more
/// information than a single key.
const LEAST_ROWS_OF_PAGES: u64 = 100_000;

/// The SQL that selects a sample of the rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The SQL that follows the name of the table, such as `tablesample`; empty if not needed.
    pub(crate) after_table: String,
    pub(crate) condition: Condition,
    /// The number of rows of the sample, divided by the number of rows of the table.
    pub(crate) fraction: f64,
}

impl Sample {
    /// Returns the sample that consists of all rows.
    pub(crate) fn whole() -> Sample {
        Sample {
            after_table: String::new(),
            condition: Condition::all(),
            fraction: 1.0,
        }
    }

    /// Returns a sample of about `n_rows` rows for `n_parts` parts. Returns `None` if the table is
    /// small, if its size is unknown, or if it cannot be sampled. The choice is deterministic, so
    /// that the plan of an unchanged table is the same each time.
    pub(crate) fn of(
        table: &Table,
        alias: &str,
        n_parts: usize,
        n_rows: Option<u64>,
    ) -> Option<Sample> {
        let least = match table.sampling {
            Sampling::Pages => LEAST_ROWS_OF_PAGES,
            _ => LEAST_ROWS,
        };
        let wanted = n_rows.unwrap_or(least.max(ROWS_PER_PART * n_parts as u64));
        let rows = table.rows?;
        if rows / 2 <= wanted || n_rows.is_none() && rows <= WHOLE_ROWS {
            return None;
        }
        let fraction = (wanted as f64 / rows as f64).max(1e-6);
        let (after_table, condition) = match table.sampling {
            Sampling::None => return None,
            Sampling::Pages => (
                format!(
                    " tablesample system ({:.4}) repeatable (1)",
                    fraction * 100.0
                ),
                Condition::all(),
            ),
            // The row id is hashed by multiplication, so that the distances between the sampled
            // rows are irregular. A regular distance could coincide with a pattern in the values of
            // the key.
            Sampling::Rowid(rowid) => {
                let most = (fraction * 4_294_967_296.0) as u64;
                let condition =
                    format!("(({alias}.{rowid} & 4294967295) * 1103515245 & 4294967295) < {most}");
                (String::new(), Condition::plain(condition))
            }
            Sampling::Random => (
                String::new(),
                Condition::plain(format!("rand(1) < {fraction:.9}")),
            ),
        };
        Some(Sample {
            after_table,
            condition,
            fraction,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_table_is_sampled() {
        let table = |rows, sampling| Table {
            rows,
            sampling,
            ..Table::default()
        };
        let of = |rows, sampling| Sample::of(&table(rows, sampling), "t", 8, None);
        assert_eq!(of(None, Sampling::Pages), None);
        assert_eq!(of(Some(200_000), Sampling::Pages), None);
        assert_eq!(of(Some(1_000_000), Sampling::None), None);
        let sample = of(Some(1_000_000), Sampling::Pages).unwrap();
        assert_eq!(
            sample.after_table,
            " tablesample system (10.0000) repeatable (1)"
        );
        let sample = of(Some(1_000_000), Sampling::Rowid("rowid")).unwrap();
        assert!(
            sample.condition.sql.ends_with("< 171798691"),
            "{}",
            sample.condition.sql
        );
    }
}
