//! Determines from the result of `explain` whether the database can use an index for the predicate
//! of a part.

use onecopy_rows::connect::Connection;
use onecopy_rows::{Dialect, Value};

use super::fetch::{Row, rows, text};
use crate::error::Error;
use crate::json::{self, Json, items, member};

/// The SQL statement of a part, for which `explain` is executed, with its values and its key.
pub(crate) struct Explained<'a> {
    pub(crate) sql: &'a str,
    pub(crate) values: &'a [Value],
    /// The names of the columns of the key by which the rows were divided into parts.
    pub(crate) columns: &'a [&'a str],
}

/// Returns a sentence for the user that states whether the database can use an index for the
/// predicate of this part.
///
/// # Errors
/// The error of the database.
pub(crate) fn sentence(connection: &Connection, part: &Explained<'_>) -> Result<String, Error> {
    Ok(match connection.dialect() {
        Dialect::Postgres => {
            let plan = postgres(connection, part)?;
            match plan {
                Some(scan) => reaches(&scan),
                None => match possible(connection, part)? {
                    Some(scan) => format!(
                        "the predicate can use {scan}, but PostgreSQL estimates that reading \
                         everything is faster for a part of this size"
                    ),
                    None => misses(),
                },
            }
        }
        Dialect::Sqlite => {
            let (_, plan) = rows(
                connection,
                &format!("explain query plan {}", part.sql),
                part.values,
            )?;
            let details: Vec<String> = plan.iter().map(|row| text(row.get(3))).collect();
            sqlite(&details, part.columns).map_or_else(misses, |scan| reaches(&scan))
        }
        Dialect::MySql => match mariadb(connection, part)? {
            Some(index) => reaches(&format!("the index `{index}`")),
            None => misses(),
        },
        _ => unknown(),
    })
}

fn reaches(scan: &str) -> String {
    format!("the predicate reaches {scan}: each part reads only its own rows")
}

fn misses() -> String {
    "the predicate reaches no index: each part reads all rows and keeps its own".to_owned()
}

fn unknown() -> String {
    "it is unknown if the predicate reaches an index: this database's `explain` is not read"
        .to_owned()
}

/// Returns a description of how PostgreSQL finds the rows of a part: the index on the key, or the
/// range of row addresses, that its query plan uses. Returns `None` if the plan uses neither.
fn postgres(connection: &Connection, part: &Explained<'_>) -> Result<Option<String>, Error> {
    let (_, plan) = rows(
        connection,
        &format!("explain (format json) {}", part.sql),
        part.values,
    )?;
    let plan = json::parse(&text(plan.first().and_then(|row| row.first())));
    let nodes = plan.as_ref().and_then(items).unwrap_or_default();
    let root = nodes.first().and_then(|node| member(node, "Plan"));
    Ok(root.and_then(|root| scan_of_postgres(root, part.columns)))
}

/// Does the same as [`postgres`], but for the query plan that PostgreSQL chooses while sequential
/// scans are disabled.
fn possible(connection: &Connection, part: &Explained<'_>) -> Result<Option<String>, Error> {
    connection.execute("set enable_seqscan = off", &[])?;
    let plan = postgres(connection, part);
    connection.execute("reset enable_seqscan", &[])?;
    plan
}

fn scan_of_postgres(node: &Json, columns: &[&str]) -> Option<String> {
    let of = |name| member(node, name).and_then(json::text);
    let names = |condition: Option<String>| {
        let has = |condition: String| columns.iter().any(|name| contains_name(&condition, name));
        condition.is_some_and(has)
    };
    if names(of("TID Cond")) {
        return Some("the pages of the table (`ctid`)".to_owned());
    }
    if names(of("Index Cond"))
        && let Some(index) = of("Index Name")
    {
        return Some(format!("the index `{index}`"));
    }
    let below = member(node, "Plans").and_then(items).unwrap_or_default();
    below
        .iter()
        .find_map(|node| scan_of_postgres(node, columns))
}

/// Returns `true` if `condition` contains `column` as a whole name. A longer name that contains
/// `column` does not count.
fn contains_name(condition: &str, column: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    condition.match_indices(column).any(|(at, _)| {
        let before = condition[..at].chars().next_back();
        let after = condition[at + column.len()..].chars().next();
        !before.is_some_and(is_inside) && !after.is_some_and(is_inside)
    })
}

/// Returns the first index in which SQLite searches a range of the key, or `None` if there is no
/// such index. `details` are the lines that `explain query plan` returned.
fn sqlite(details: &[String], columns: &[&str]) -> Option<String> {
    details.iter().find_map(|detail| {
        let (head, ranges) = detail.strip_prefix("SEARCH ")?.split_once(" (")?;
        let is_rowid = head.ends_with("INTEGER PRIMARY KEY");
        // The key column is compared directly, or is the first column of a row value.
        let has = |name: &str| {
            let forms = [format!("{name}<"), format!("{name}>"), format!("({name},")];
            forms.iter().any(|form| ranges.contains(form))
        };
        if is_rowid && has("rowid") {
            return Some("the row ids of the table".to_owned());
        }
        let (_, index) = head.rsplit_once("INDEX ")?;
        let is_of_key = columns.iter().any(|name| has(name));
        is_of_key.then(|| format!("the index `{index}`"))
    })
}

/// Returns the index on which MariaDB or MySQL performs a range scan for the key; `None` if no
/// index is used so. The query is `explain`, whose result has several columns, and not
/// `explain format=json`, because a driver declares the column of JSON shorter than its values.
fn mariadb(connection: &Connection, part: &Explained<'_>) -> Result<Option<String>, Error> {
    let (schema, plan) = rows(connection, &format!("explain {}", part.sql), part.values)?;
    let names: Vec<String> = schema
        .columns
        .iter()
        .map(|c| c.name.to_lowercase())
        .collect();
    for index in ranges(&names, &plan) {
        let values = [Value::Text(index.clone())];
        let (_, found) = rows(
            connection,
            "select column_name from information_schema.statistics where index_name = ?",
            &values,
        )?;
        let of_index = found.iter().map(|row| text(row.first()));
        let is_of_key = |name: &String| part.columns.iter().any(|c| c.eq_ignore_ascii_case(name));
        if of_index.collect::<Vec<_>>().iter().any(is_of_key) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Returns the names of the indexes on which MariaDB or MySQL performs a range scan. `plan` is the
/// result of `explain`, with one row for each step of the query plan. `names` are the names of its
/// columns in lower case.
fn ranges(names: &[String], plan: &[Row]) -> Vec<String> {
    let at = |name: &str| names.iter().position(|n| n == name);
    let (Some(kind), Some(key)) = (at("type"), at("key")) else {
        return Vec::new();
    };
    let is_range = |row: &&Row| text(row.get(kind)) == "range";
    plan.iter()
        .filter(is_range)
        .map(|row| text(row.get(key)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_of_sqlite_counts_only_with_a_range_of_the_key() {
        for (detail, column, expected) in [
            (
                "SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
                "id",
                Some("the row ids of the table"),
            ),
            (
                "SEARCH t USING COVERING INDEX i (k>? AND k<?)",
                "k",
                Some("the index `i`"),
            ),
            (
                "SEARCH t USING INDEX i (a=? AND k<?)",
                "k",
                Some("the index `i`"),
            ),
            (
                "SEARCH t USING INDEX i ((k,b)>(?,?) AND (k,b)<(?,?))",
                "k",
                Some("the index `i`"),
            ),
            ("SEARCH t USING INDEX i (a=?)", "k", None),
            ("SCAN t", "k", None),
            ("SCAN t USING INDEX i", "k", None),
            ("CO-ROUTINE t", "k", None),
        ] {
            assert_eq!(
                sqlite(&[detail.to_owned()], &[column]).as_deref(),
                expected,
                "{detail}"
            );
        }
    }

    #[test]
    fn an_index_of_postgres_counts_only_with_a_condition_on_the_key() {
        let plan = |text| scan_of_postgres(&json::parse(text).unwrap(), &["id"]);
        let nested = r#"{"Node Type":"Gather","Plans":[
            {"Index Name":"t_pkey","Index Cond":"((id >= 5) AND (id < 9))"}]}"#;
        assert_eq!(plan(nested).unwrap(), "the index `t_pkey`");
        assert_eq!(
            plan(r#"{"Index Name":"i","Index Cond":"(grid = 5)"}"#),
            None
        );
        assert_eq!(
            plan(r#"{"Node Type":"Seq Scan","Filter":"(id >= 5)"}"#),
            None
        );
    }

    #[test]
    fn ranges_of_mariadb_are_found_by_the_names_of_the_columns() {
        let names = ["id", "table", "partitions", "type", "key"].map(str::to_owned);
        let row = |kind: &str, key: &str| -> Row {
            ["1", "t", "", kind, key]
                .map(|text| Some(Value::Text(text.to_owned())))
                .to_vec()
        };
        let plan = [row("ALL", ""), row("range", "PRIMARY"), row("ref", "i")];
        assert_eq!(ranges(&names, &plan), ["PRIMARY"]);
        assert!(ranges(&names[..2], &plan).is_empty());
    }
}
