//! Tables of MariaDB and MySQL.

use onecopy_rows::Value;
use onecopy_rows::connect::Connection;

use super::table::{Sampling, Table, TableColumn, add_to_index};
use crate::error::Error;
use crate::plan::fetch::{int, rows, text};

pub(super) fn table(connection: &Connection, names: &[String]) -> Result<Option<Table>, Error> {
    let (schema, values): (_, Vec<Value>) = match names {
        [table] => ("database()", vec![Value::Text(table.clone())]),
        [schema, table] => (
            "?",
            vec![Value::Text(schema.clone()), Value::Text(table.clone())],
        ),
        _ => return Ok(None),
    };
    let of = |columns: &str, view: &str, order: &str| {
        let sql = format!(
            "select {columns} from information_schema.{view} \
             where table_schema = {schema} and table_name = ? {order}"
        );
        rows(connection, &sql, &values).map(|(_, rows)| rows)
    };
    let columns = of(
        "column_name, is_nullable, data_type",
        "columns",
        "order by ordinal_position",
    )?;
    if columns.is_empty() {
        return Ok(None);
    }
    let tables = of("table_rows, table_type", "tables", "")?;
    let parts = of(
        "index_name, non_unique, column_name, sub_part, index_type",
        "statistics",
        "order by index_name <> 'PRIMARY', non_unique, index_name, seq_in_index",
    )?;
    let is_table = tables
        .first()
        .is_some_and(|row| text(row.get(1)) == "BASE TABLE");
    let (mut indexes, mut last) = (Vec::new(), String::new());
    let mut prefixes = Vec::new();
    for part in parts.iter().filter(|part| text(part.get(4)) == "BTREE") {
        let name = text(part.first());
        // An index of only the first characters of a column orders the rows differently from the
        // column, and does not make the column unique.
        if int(part.get(3)).is_some() {
            prefixes.push(indexes.len().saturating_sub(usize::from(last == name)));
        }
        add_to_index(
            &mut indexes,
            &mut last,
            name.clone(),
            text(part.get(2)),
            name == "PRIMARY",
            int(part.get(1)) == Some(0),
        );
    }
    let indexes = indexes
        .into_iter()
        .enumerate()
        .filter(|(at, _)| !prefixes.contains(at))
        .map(|(_, index)| index)
        .collect();
    Ok(Some(Table {
        columns: columns
            .iter()
            .map(|row| TableColumn {
                name: text(row.first()),
                is_nullable: text(row.get(1)) != "NO" || !is_table,
                unfit: match text(row.get(2)).to_ascii_lowercase().as_str() {
                    // `order by` compares the positions of an `enum`, `<` compares its texts.
                    "enum" | "set" => {
                        Some("`order by` and `<` order an `enum` or `set` differently")
                    }
                    "json" | "geometry" | "point" => Some("its type has no order"),
                    _ => None,
                },
            })
            .collect(),
        indexes,
        rows: tables
            .first()
            .and_then(|row| int(row.first()))
            .and_then(|n| u64::try_from(n).ok()),
        address: None,
        sampling: match is_table {
            true => Sampling::Random,
            false => Sampling::None,
        },
        no_address: Some("MariaDB and MySQL have no physical addresses of rows"),
    }))
}
