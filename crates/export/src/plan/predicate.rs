//! The SQL predicates of parts. A part has the rows with a key from a lower bound (included) to an
//! upper bound (excluded), or the rows whose key is NULL.
//!
//! For any ascending boundaries, each row satisfies the predicate of exactly one part, because the
//! first and the last range are unbounded. Outdated boundaries therefore only make the parts
//! unequal in size.
//!
//! Predicates use only `=`, `<`, `<=`, `>`, `>=`, `and`, `or` and `is null`, which every database
//! supports. Row values are used only for databases that can compare them by an index. The order of
//! the keys is that of the database's own operators.

use onecopy_rows::{Dialect, Value};

/// An SQL condition with `?` for each of its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Condition {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

impl Condition {
    /// Creates a condition from SQL that contains no `?`, and therefore needs no values.
    pub(crate) fn plain(sql: impl Into<String>) -> Condition {
        Condition {
            sql: sql.into(),
            values: Vec::new(),
        }
    }

    /// Returns the condition that every row satisfies.
    pub(crate) fn all() -> Condition {
        Condition::plain("1 = 1")
    }

    /// Returns the condition that no row satisfies.
    pub(crate) fn none() -> Condition {
        Condition::plain("1 = 0")
    }

    fn push(&mut self, sql: &str, value: &Value) {
        self.sql.push_str(sql);
        self.sql.push('?');
        self.values.push(value.clone());
    }

    fn and(&mut self) {
        if !self.sql.is_empty() {
            self.sql.push_str(" and ");
        }
    }
}

/// A column of a key: its name for the user, and the SQL that denotes it in predicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyColumn {
    /// The name of the column, as it is shown to the user.
    pub(crate) name: String,
    /// The SQL expression that denotes the column in predicates, such as `t."id"`.
    pub(crate) sql: String,
    /// `false` only if the database guarantees that the column has no NULL.
    pub(crate) is_nullable: bool,
}

/// Returns the condition that a row meets if its key contains no NULL and is in a range: `lower` <=
/// key < `upper`. A bound has one value for each column of the key. `None` means that the range has
/// no bound on this side.
///
/// If both bounds begin with equal values, all rows of the range have these values in the first
/// columns of the key. The condition tests these columns with `=`, so that the database can use an
/// index for the range of the later columns.
pub(crate) fn range(
    key: &[KeyColumn],
    lower: Option<&[Value]>,
    upper: Option<&[Value]>,
    dialect: Dialect,
) -> Condition {
    let mut condition = Condition::default();
    let columns: Vec<&str> = key.iter().map(|column| column.sql.as_str()).collect();
    let bounds = lower.unwrap_or_default().iter();
    let pairs = bounds.zip(upper.unwrap_or_default());
    // The last column is never tested with `=`: a range whose bounds are equal has no rows.
    let n_equal = pairs.take_while(|(lower, upper)| lower == upper).count();
    let n_equal = n_equal.min(key.len().saturating_sub(1));
    for (column, value) in columns.iter().zip(lower.unwrap_or_default()).take(n_equal) {
        condition.and();
        condition.sql.push_str(column);
        condition.push(" = ", value);
    }
    for (values, operators) in [(lower, &LOWER), (upper, &UPPER)] {
        let Some(values) = values else { continue };
        condition.and();
        let (columns, values) = (&columns[n_equal..], &values[n_equal..]);
        match dialect {
            // Only these databases use an index to compare row values.
            Dialect::Postgres | Dialect::Sqlite if columns.len() > 1 => {
                compare_rows(&mut condition, columns, values, operators);
            }
            _ => compare(&mut condition, columns, values, operators),
        }
    }
    // A row with NULL in the first column never satisfies a comparison. A row with NULL in a later
    // column can satisfy it if the first column decides, so that column is tested.
    let is_compared = lower.is_some() || upper.is_some();
    for column in key.iter().skip(usize::from(is_compared)) {
        if column.is_nullable {
            condition.and();
            condition.sql.push_str(&column.sql);
            condition.sql.push_str(" is not null");
        }
    }
    match condition.sql.is_empty() {
        true => Condition::all(),
        false => condition,
    }
}

/// Returns the condition that a row meets if at least one column of its key is NULL. Returns `None`
/// if no column of the key can be NULL.
pub(crate) fn null(key: &[KeyColumn]) -> Option<Condition> {
    let nullable = key.iter().filter(|column| column.is_nullable);
    let tests: Vec<String> = nullable.map(|c| format!("{} is null", c.sql)).collect();
    (!tests.is_empty()).then(|| Condition::plain(tests.join(" or ")))
}

/// Divides the pages of a PostgreSQL table into at most `n` ranges, and returns a condition for the
/// rows of each range. The last range has no upper end, so it includes pages that are added later.
pub(crate) fn pages(column: &KeyColumn, n_pages: u64, n: usize) -> Vec<Condition> {
    let n = (n as u64).min(n_pages.max(1));
    let bound = |i: u64| n_pages * i / n;
    let condition = |i: u64| {
        let lower = (i > 0).then(|| format!("{} >= '({},0)'::tid", column.sql, bound(i)));
        let upper = (i + 1 < n).then(|| format!("{} < '({},0)'::tid", column.sql, bound(i + 1)));
        let bounds: Vec<String> = lower.into_iter().chain(upper).collect();
        match bounds.is_empty() {
            true => Condition::all(),
            false => Condition::plain(bounds.join(" and ")),
        }
    };
    (0..n).map(condition).collect()
}

/// The operators that [`compare`] uses for one bound of a range of keys: for the lower bound or for
/// the upper bound.
struct Operators {
    /// The operator `>=` or `<=`, for each column except the last one. The comparison with it is
    /// redundant, but permits the database to use an index.
    inclusive: &'static str,
    /// The operator `>` or `<`, for each column except the last one. If it is satisfied, the later
    /// columns are not compared.
    strict: &'static str,
    /// The operator for the last column of the key, or for the only one: `>=` or `<`.
    last: &'static str,
}

const LOWER: Operators = Operators {
    inclusive: " >= ",
    strict: " > ",
    last: " >= ",
};
const UPPER: Operators = Operators {
    inclusive: " <= ",
    strict: " < ",
    last: " < ",
};

/// Appends a comparison of a key of several columns, such as `a >= ? and (a > ? or b >= ?)`. The
/// comparison `a >= ?` is redundant, but permits the database to use an index on `a`.
fn compare(condition: &mut Condition, columns: &[&str], values: &[Value], operators: &Operators) {
    let ([column, later @ ..], [value, later_values @ ..]) = (columns, values) else {
        return;
    };
    condition.sql.push_str(column);
    if later.is_empty() {
        condition.push(operators.last, value);
        return;
    }
    condition.push(operators.inclusive, value);
    condition.sql.push_str(" and (");
    condition.sql.push_str(column);
    condition.push(operators.strict, value);
    condition.sql.push_str(" or ");
    compare(condition, later, later_values, operators);
    condition.sql.push(')');
}

/// Appends a comparison of row values: `(a, b) >= (?, ?)`.
fn compare_rows(
    condition: &mut Condition,
    columns: &[&str],
    values: &[Value],
    operators: &Operators,
) {
    condition.sql += &format!("({})", columns.join(", "));
    condition.sql += operators.last;
    let mut before = "(";
    for value in values {
        condition.push(before, value);
        before = ", ";
    }
    condition.sql.push(')');
}

/// Returns an SQL expression that compares two keys of the columns `before` and `now`. Its value is
/// 1 if the key `before` is less than the key `now`, -1 if it is greater, and 0 if they are equal.
pub(crate) fn sign(before: &[String], now: &[String]) -> String {
    let less = less(before, now);
    let greater = self::less(now, before);
    format!("case when {less} then 1 when {greater} then -1 else 0 end")
}

fn less(left: &[String], right: &[String]) -> String {
    match (left, right) {
        ([a], [b]) => format!("{a} < {b}"),
        ([a, left @ ..], [b, right @ ..]) => {
            format!("({a} <= {b} and ({a} < {b} or {}))", less(left, right))
        }
        _ => "1 = 0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(columns: &[(&str, bool)]) -> Vec<KeyColumn> {
        let column = |&(name, is_nullable): &(&str, bool)| KeyColumn {
            name: name.to_owned(),
            sql: name.to_owned(),
            is_nullable,
        };
        columns.iter().map(column).collect()
    }

    fn ints(values: &[i64]) -> Vec<Value> {
        values.iter().map(|&n| Value::I64(n)).collect()
    }

    #[test]
    fn a_range_of_one_column_has_unbounded_ends() {
        let key = key(&[("k", true)]);
        let (low, high) = (ints(&[3]), ints(&[7]));
        for (lower, upper, sql, values) in [
            (None, Some(&high), "k < ?", &[7][..]),
            (Some(&low), Some(&high), "k >= ? and k < ?", &[3, 7]),
            (Some(&low), None, "k >= ?", &[3]),
            (None, None, "k is not null", &[]),
        ] {
            let (lower, upper) = (lower.map(Vec::as_slice), upper.map(Vec::as_slice));
            let condition = range(&key, lower, upper, Dialect::Postgres);
            assert_eq!(
                (condition.sql.as_str(), condition.values),
                (sql, ints(values))
            );
        }
        assert_eq!(null(&key).unwrap().sql, "k is null");
    }

    #[test]
    fn a_key_without_null_has_no_part_for_it() {
        let key = key(&[("a", false), ("b", false)]);
        assert_eq!(null(&key), None);
        assert_eq!(range(&key, None, None, Dialect::Generic), Condition::all());
    }

    #[test]
    fn a_key_of_several_columns_is_compared_in_their_order() {
        let key = key(&[("a", true), ("b", true), ("c", false)]);
        let (low, high) = (ints(&[1, 2, 3]), ints(&[4, 5, 6]));
        let condition = range(&key, Some(&low), Some(&high), Dialect::MySql);
        assert_eq!(
            condition.sql,
            "a >= ? and (a > ? or b >= ? and (b > ? or c >= ?)) \
             and a <= ? and (a < ? or b <= ? and (b < ? or c < ?)) and b is not null"
        );
        assert_eq!(condition.values, ints(&[1, 1, 2, 2, 3, 4, 4, 5, 5, 6]));
        assert_eq!(null(&key).unwrap().sql, "a is null or b is null");
    }

    #[test]
    fn row_values_are_compared_where_an_index_serves_them() {
        let key = key(&[("a", true), ("b", true), ("c", false)]);
        let (low, high) = (ints(&[1, 2, 3]), ints(&[4, 5, 6]));
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let condition = range(&key, Some(&low), Some(&high), dialect);
            assert_eq!(
                condition.sql,
                "(a, b, c) >= (?, ?, ?) and (a, b, c) < (?, ?, ?) and b is not null"
            );
            assert_eq!(condition.values, ints(&[1, 2, 3, 4, 5, 6]));
        }
    }

    #[test]
    fn a_range_inside_of_one_value_tests_for_equality() {
        let key = key(&[("a", true), ("b", false), ("c", false)]);
        for (low, high, dialect, sql, values) in [
            (
                [1, 2, 3],
                [1, 5, 6],
                Dialect::MySql,
                "a = ? and b >= ? and (b > ? or c >= ?) and b <= ? and (b < ? or c < ?)",
                &[1, 2, 2, 3, 5, 5, 6][..],
            ),
            (
                [1, 2, 3],
                [1, 5, 6],
                Dialect::Postgres,
                "a = ? and (b, c) >= (?, ?) and (b, c) < (?, ?)",
                &[1, 2, 3, 5, 6],
            ),
            (
                [1, 2, 3],
                [1, 2, 6],
                Dialect::Postgres,
                "a = ? and b = ? and c >= ? and c < ?",
                &[1, 2, 3, 6],
            ),
            (
                [1, 2, 3],
                [1, 2, 3],
                Dialect::Generic,
                "a = ? and b = ? and c >= ? and c < ?",
                &[1, 2, 3, 3],
            ),
        ] {
            let condition = range(&key, Some(&ints(&low)), Some(&ints(&high)), dialect);
            assert_eq!(
                (condition.sql.as_str(), condition.values),
                (sql, ints(values))
            );
        }
    }

    #[test]
    fn two_rows_are_compared_by_the_operator_of_the_predicates() {
        let columns = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            sign(&columns(&["p"]), &columns(&["k"])),
            "case when p < k then 1 when k < p then -1 else 0 end"
        );
        assert!(
            sign(&columns(&["p", "q"]), &columns(&["k", "l"]))
                .starts_with("case when (p <= k and (p < k or q < l)) then 1 when (k <= p")
        );
    }

    #[test]
    fn ranges_of_pages_have_no_end() {
        let column = KeyColumn {
            name: "ctid".to_owned(),
            sql: "t.ctid".to_owned(),
            is_nullable: false,
        };
        let sql = |n_pages, n| -> Vec<String> {
            pages(&column, n_pages, n)
                .into_iter()
                .map(|c| c.sql)
                .collect()
        };
        assert_eq!(
            sql(10, 3),
            [
                "t.ctid < '(3,0)'::tid",
                "t.ctid >= '(3,0)'::tid and t.ctid < '(6,0)'::tid",
                "t.ctid >= '(6,0)'::tid"
            ]
        );
        assert_eq!(sql(0, 4), ["1 = 1"]);
        assert_eq!(sql(2, 4).len(), 2);
    }
}
