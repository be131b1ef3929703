//! [`Sample`]: the rows of a large table from which quantiles are computed.

use super::catalog::{Sampling, Table};
use super::predicate::Condition;

/// A table with this number of rows is read completely, if the caller does not choose a number.
const WHOLE_ROWS: u64 = 200_000;
/// The least number of rows of a sample, and the number for each part.
const LEAST_ROWS: u64 = 20_000;
const ROWS_PER_PART: u64 = 5_000;
/// The least number of rows of a sample of pages: the keys of one page are often neighbours, and
/// then count as one key.
const LEAST_ROWS_OF_PAGES: u64 = 100_000;

/// A sample of a table, as parts of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The text after the name of the table.
    pub(crate) after_table: String,
    pub(crate) condition: Condition,
    /// The number of rows of the sample for each row of the table.
    pub(crate) fraction: f64,
}

impl Sample {
    /// Returns the sample that is the whole table.
    pub(crate) fn whole() -> Sample {
        Sample {
            after_table: String::new(),
            condition: Condition::all(),
            fraction: 1.0,
        }
    }

    /// Returns a sample for `n_parts` parts with about `n_rows` rows; `None` if the table is small,
    /// of unknown size, or cannot be sampled. The same rows are chosen each time, so that the plan
    /// of a table that has not changed is the same.
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
            // A multiplicative hash of the row id: the rows of a sample have no regular distance,
            // which could be that of the key's values.
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
