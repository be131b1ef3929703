//! Adds a cast to each parameter of a statement for which the server would infer a wrong type.
//!
//! MariaDB's driver sends decimals as text, and without a cast the server would compute with them
//! as doubles. psqlodbc sends intervals as text, and without a cast PostgreSQL would parse this
//! text as a value of the other operand's type.

use std::borrow::Cow;

use crate::sql::dialect::Dialect;
use crate::sql::named;
use crate::sql::statements;
use crate::value::Value;

/// The largest total number of digits of MariaDB's type `decimal`.
const MOST_DIGITS: usize = 65;
/// The largest number of digits after the decimal point of MariaDB's type `decimal`.
const MOST_SCALE: usize = 30;

/// Returns the cast expression that replaces the `?` of a value; `None` if the value needs no cast.
fn cast_of(value: &Value, dialect: Dialect) -> Option<String> {
    match (value, dialect) {
        (Value::Cast(_, sql_type), Dialect::Postgres) => Some(format!("cast(? as {sql_type})")),
        (Value::Decimal(digits), Dialect::MySql) => {
            let n_digits = digits.bytes().filter(u8::is_ascii_digit).count();
            let scale = digits.split_once('.').map_or(0, |(_, after)| after.len());
            let fits = n_digits <= MOST_DIGITS && scale <= MOST_SCALE;
            fits.then(|| format!("cast(? as decimal({n_digits},{scale}))"))
        }
        (Value::Declared(inner, _), _) => cast_of(inner, dialect),
        _ => None,
    }
}

/// Returns `true` if any of the values needs a cast.
pub(super) fn are_needed(values: &[Value], dialect: Dialect) -> bool {
    values.iter().any(|value| cast_of(value, dialect).is_some())
}

/// Returns a statement of PostgreSQL for `executemany`, with a cast for each parameter whose value
/// needs a cast in at least one of `rows`.
pub(super) fn of_rows<'s>(sql: &'s str, rows: &[Vec<Value>]) -> Cow<'s, str> {
    let n = rows.first().map_or(0, Vec::len);
    let is_cast = |value: &&Value| cast_of(value, Dialect::Postgres).is_some();
    let of_column = |k| rows.iter().filter_map(|row| row.get(k)).find(is_cast);
    let found: Vec<Value> = (0..n)
        .map(|k| of_column(k).cloned().unwrap_or(Value::Null))
        .collect();
    with_casts(sql, &found, Dialect::Postgres)
}

/// Returns the statement with a cast for each parameter whose value needs one.
pub(super) fn with_casts<'s>(sql: &'s str, values: &[Value], dialect: Dialect) -> Cow<'s, str> {
    // A parameter of a procedure may be an output parameter, which cannot be a cast expression.
    if !are_needed(values, dialect) || statements::first_word(sql, dialect) == "CALL" {
        return Cow::Borrowed(sql);
    }
    let of = |index: usize| cast_of(values.get(index)?, dialect);
    let replaced = named::replace_marks(sql, dialect, of);
    replaced.map_or(Cow::Borrowed(sql), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_mariadb_and_intervals_of_postgresql_are_cast() {
        let values = [
            Value::Decimal("-0.25".to_owned()),
            Value::Cast("48:00:00".to_owned(), "interval"),
            Value::I64(1),
        ];
        let sql = "select ?, '?', ?, ?";
        let mysql = "select cast(? as decimal(3,2)), '?', ?, ?";
        assert_eq!(with_casts(sql, &values, Dialect::MySql), mysql);
        let postgres = "select ?, '?', cast(? as interval), ?";
        assert_eq!(with_casts(sql, &values, Dialect::Postgres), postgres);
        assert_eq!(with_casts(sql, &values, Dialect::SqlServer), sql);
    }
}
