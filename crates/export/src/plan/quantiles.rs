//! Quantiles of a key. The database computes them, because only the database knows the order in
//! which it sorts the key.

use onecopy_rows::Value;
use onecopy_rows::connect::Connection;

use super::boundaries;
use super::fetch::{int, rows};
use super::key::unfit;
use super::predicate::{KeyColumn, sign};
use crate::error::Error;

/// The largest size in bytes of a value that can be a boundary. MariaDB sorts long values only by
/// their first bytes (`max_sort_length`), and a long boundary would make each part's statement
/// large.
const MOST_BYTES: usize = 256;
/// `PER_PART` is the number of quantiles that are computed for each part, and `LEAST` is the
/// smallest number of quantiles of a whole plan.
const PER_PART: usize = 16;
const LEAST: usize = 256;

/// Quantiles of a key. Rows with NULL in the key are not counted in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quantiles {
    /// The keys of the quantiles in ascending order. The first one is the least key of all rows.
    pub(crate) keys: Vec<Vec<Value>>,
    /// The number of rows from each key of `keys` (inclusive) to the next one.
    pub(crate) weights: Vec<u64>,
    /// The number of rows with NULL in the key.
    pub(crate) n_null: u64,
}

impl Quantiles {
    /// Returns the number of rows over which the quantiles were computed. Rows with NULL in the key
    /// are not counted.
    pub(crate) fn n_rows(&self) -> u64 {
        self.weights.iter().sum()
    }

    /// Returns the number of rows of the largest part divided by the mean number of rows per part,
    /// if the rows are divided into `n` parts.
    pub(crate) fn skew(&self, n: usize) -> f64 {
        let sizes = boundaries::sizes(&self.weights, &boundaries::choose(&self.weights, n));
        let largest = sizes.iter().max().copied().unwrap_or(0);
        match self.n_rows() {
            0 => 1.0,
            total => largest as f64 * n as f64 / total as f64,
        }
    }
}

/// Returns the SQL query for about `n` quantiles of the columns `k1`, `k2`, … of the query
/// `source`.
///
/// From the innermost query to the outermost one:
///
/// * The first query numbers the rows in the order of the key.
/// * The second one chooses about `n` rows at equal distances, and the last row. Each row also
///   contains the total number of rows, and the number of rows with NULL in the key.
/// * The third one compares each chosen row with the previous one, with the operators that the
///   predicates of the parts use.
pub(crate) fn query(source: &str, key: &[KeyColumn], n: usize) -> String {
    let names =
        |prefix: &str| -> Vec<String> { (1..=key.len()).map(|i| format!("{prefix}{i}")).collect() };
    let (now, before) = (names("k"), names("p"));
    let columns = now.join(", ");
    let nulls: Vec<String> = key
        .iter()
        .zip(&now)
        .filter(|(column, _)| column.is_nullable)
        .map(|(_, name)| format!("{name} is null"))
        .collect();
    let (flag, order, n_null) = match nulls.is_empty() {
        true => ("0".to_owned(), columns.clone(), "0".to_owned()),
        false => {
            let flag = format!("case when {} then 1 else 0 end", nulls.join(" or "));
            let (order, sum) = (format!("{flag}, {columns}"), format!("sum({flag}) over ()"));
            (flag, order, sum)
        }
    };
    let numbered = format!(
        "select {columns}, {flag} as f, row_number() over (order by {order}) as rn, \
         rank() over (order by {order}) as rk, count(*) over () as n, {n_null} as nn \
         from (\n{source}\n) s"
    );
    let lags: Vec<String> = (1..=key.len())
        .map(|i| format!("lag(k{i}) over (order by rn) as p{i}"))
        .collect();
    let chosen = format!(
        "select {columns}, {}, f, rn, rk, n, nn from ({numbered}) q \
         where f = 0 and ((rn - 1) * {n}) % nullif(n - nn, 0) < {n} or rn = n",
        lags.join(", ")
    );
    let sign = sign(&before, &now);
    format!("select {columns}, f, rk, n, nn, {sign} as g from ({chosen}) r order by rn")
}

/// Executes [`query`] and returns the quantiles with which a key can be divided into `n` parts.
///
/// # Errors
/// The error of the database, also for a type without an order. [`Error::Usage`] if the database
/// sorts the rows in an order that differs from that of its operator `<`.
pub(crate) fn quantiles(
    connection: &Connection,
    source: &str,
    values: &[Value],
    key: &[KeyColumn],
    n: usize,
) -> Result<Quantiles, Error> {
    let n_quantiles = (n * PER_PART).max(LEAST);
    let (_, found) = rows(connection, &query(source, key, n_quantiles), values)?;
    let mut quantiles = Quantiles::default();
    let (mut starts, mut total) = (Vec::new(), 0);
    for row in &found {
        let (columns, rest) = row.split_at(key.len().min(row.len()));
        let count = |at: usize| {
            int(rest.get(at))
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or(0)
        };
        quantiles.n_null = count(3);
        total = count(2).saturating_sub(quantiles.n_null);
        if count(0) == 1 {
            continue;
        }
        let sign = int(rest.get(4)).unwrap_or(0);
        if sign < 0 {
            let names: Vec<&str> = key.iter().map(|column| column.name.as_str()).collect();
            let reason = "the database sorts its values in another order than that of `<`";
            return Err(unfit(&names.join(", "), reason));
        }
        // A value cannot be a boundary if it cannot be a parameter, is too long, or equals the
        // previous one.
        let values: Option<Vec<Value>> = columns.iter().cloned().collect();
        let values = values.filter(|values| values.iter().all(|v| v.len_bytes() <= MOST_BYTES));
        match values {
            _ if !quantiles.keys.is_empty() && sign == 0 => {}
            None if !quantiles.keys.is_empty() => {}
            values => {
                quantiles.keys.push(values.unwrap_or_default());
                starts.push(count(1).saturating_sub(1));
            }
        }
    }
    if let Some(first) = starts.first_mut() {
        *first = 0;
    }
    let ends = starts.iter().skip(1).copied().chain([total]);
    quantiles.weights = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| end.saturating_sub(*start))
        .collect();
    Ok(quantiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, is_nullable: bool) -> KeyColumn {
        KeyColumn {
            name: name.to_owned(),
            sql: name.to_owned(),
            is_nullable,
        }
    }

    #[test]
    fn a_key_without_null_is_sorted_by_its_columns_only() {
        let sql = query("S", &[column("a", false)], 9);
        assert!(sql.contains("row_number() over (order by k1)"), "{sql}");
        assert!(sql.contains("lag(k1) over (order by rn) as p1"), "{sql}");
        let sql = query("S", &[column("a", false), column("b", true)], 9);
        assert!(
            sql.contains("order by case when k2 is null then 1 else 0 end, k1, k2"),
            "{sql}"
        );
    }
}
