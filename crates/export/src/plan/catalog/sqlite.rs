//! Reads the columns, keys and indexes of a table of SQLite from the catalog.

use onecopy_rows::Value;
use onecopy_rows::connect::Connection;

use super::table::{RowAddress, Sampling, Table, TableColumn, TableIndex, add_to_index};
use crate::error::Error;
use crate::plan::fetch::{int, rows, text};

/// The names that SQL can use for the row id. A column can have one of these names and then hides
/// the row id.
const ROWIDS: [&str; 3] = ["rowid", "_rowid_", "oid"];

pub(super) fn table(
    connection: &Connection,
    name: &str,
    names: &[String],
) -> Result<Option<Table>, Error> {
    let (schema, table) = match names {
        [table] => (None, table),
        [schema, table] => (Some(schema), table),
        _ => return Ok(None),
    };
    // The schemas are searched in the order in which SQLite resolves a table name without a schema.
    let found = rows(
        connection,
        "select schema, type, wr from pragma_table_list where name = ? collate nocase \
         and schema = coalesce(?, schema) collate nocase \
         order by schema <> 'temp', schema <> 'main' limit 1",
        &[
            Value::Text(table.clone()),
            schema.map_or(Value::Null, |schema| Value::Text(schema.clone())),
        ],
    )?
    .1;
    let Some(row) = found.first() else {
        return Ok(None);
    };
    let is_table = text(row.get(1)) == "table";
    let has_rowid = is_table && int(row.get(2)) == Some(0);
    let names = [Value::Text(table.clone()), Value::Text(text(row.first()))];
    let (_, columns) = rows(
        connection,
        "select name, type, \"notnull\", pk from pragma_table_xinfo(?, ?)",
        &names,
    )?;
    let (_, parts) = rows(
        connection,
        "select l.name, l.origin = 'pk', l.\"unique\", i.name, l.partial \
         from pragma_index_list(?, ?) l, pragma_index_info(l.name, ?) i \
         order by l.origin = 'pk' desc, l.\"unique\" desc, l.seq, i.seqno",
        &[names[0].clone(), names[1].clone(), names[1].clone()],
    )?;
    let (mut indexes, mut last) = (Vec::new(), String::new());
    // Partial indexes are omitted, because they do not contain all rows.
    for part in parts.iter().filter(|part| int(part.get(4)) == Some(0)) {
        add_to_index(
            &mut indexes,
            &mut last,
            text(part.first()),
            text(part.get(3)),
            int(part.get(1)) == Some(1),
            int(part.get(2)) == Some(1),
        );
    }
    indexes.retain(|index| index.columns.iter().all(|column| !column.is_empty()));
    let alias = integer_key(&columns, has_rowid, &indexes);
    if let Some(name) = &alias {
        let index = TableIndex {
            columns: vec![name.clone()],
            is_primary: true,
            is_unique: true,
        };
        indexes.insert(0, index);
    }
    let columns: Vec<TableColumn> = columns
        .iter()
        .map(|row| {
            let name = text(row.first());
            let is_never_null = int(row.get(2)) == Some(1)
                || alias.as_ref() == Some(&name)
                // A primary key excludes NULL only in a table without row ids.
                || (is_table && !has_rowid && int(row.get(3)).is_some_and(|pk| pk > 0));
            TableColumn {
                name,
                is_nullable: !(is_table && is_never_null),
                unfit: None,
            }
        })
        .collect();
    let is_free = |rowid: &&&str| !columns.iter().any(|c| c.name.eq_ignore_ascii_case(rowid));
    let rowid = ROWIDS.iter().find(is_free).copied().filter(|_| has_rowid);
    Ok(Some(Table {
        rows: match rowid {
            Some(rowid) => span(connection, name, rowid)?,
            None => None,
        },
        columns,
        indexes,
        address: rowid.map(|name| RowAddress::Rowid { name }),
        sampling: rowid.map_or(Sampling::None, Sampling::Rowid),
        no_address: match has_rowid {
            true => None,
            false => Some("it has no row ids (a view, a virtual table, or `without rowid`)"),
        },
    }))
}

/// Returns the name of the column that is an alias of the row id: the only column of the primary
/// key, if its type is `integer`.
fn integer_key(
    columns: &[crate::plan::fetch::Row],
    has_rowid: bool,
    indexes: &[TableIndex],
) -> Option<String> {
    let mut keys = columns.iter().filter(|row| int(row.get(3)) != Some(0));
    let (key, None) = (keys.next()?, keys.next()) else {
        return None;
    };
    let is_integer = text(key.get(1)).eq_ignore_ascii_case("integer");
    let has_index = indexes.iter().any(|index| index.is_primary);
    (has_rowid && is_integer && !has_index).then(|| text(key.first()))
}

/// Returns an upper bound of the number of rows: the number of integers from the smallest row id to
/// the largest one. (To count the rows, SQLite would have to read the whole table.)
fn span(connection: &Connection, name: &str, rowid: &str) -> Result<Option<u64>, Error> {
    let sql =
        format!("select (select max({rowid}) from {name}), (select min({rowid}) from {name})");
    let (_, found) = rows(connection, &sql, &[])?;
    let bounds = found.first().map(|row| (int(row.first()), int(row.get(1))));
    Ok(match bounds {
        Some((Some(most), Some(least))) => Some(most.abs_diff(least).saturating_add(1)),
        _ => Some(0),
    })
}
