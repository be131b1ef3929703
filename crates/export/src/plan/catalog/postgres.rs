//! Reads the properties of a table (size, columns, indexes) from PostgreSQL's catalog.

use onecopy_rows::Value;
use onecopy_rows::connect::Connection;

use super::table::{RowAddress, Sampling, Table, TableColumn, TableIndex, add_to_index};
use crate::error::Error;
use crate::plan::fetch::{int, rows, text};

const TABLE: &str = "\
select c.oid::int8, c.relkind::text, coalesce(a.amname::text, ''), c.reltuples::float8,
       pg_relation_size(c.oid) / current_setting('block_size')::int8, c.relhassubclass::int,
       current_setting('server_version_num')::int, version()
from pg_catalog.pg_class c left join pg_catalog.pg_am a on a.oid = c.relam
where c.oid = to_regclass(?)";

const COLUMNS: &str = "\
select a.attname::text, a.attnotnull::int, t.typname::text
from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
where a.attrelid = to_regclass(?) and a.attnum > 0 and not a.attisdropped order by a.attnum";

/// The query for the indexes that can order all rows of a table: valid B-tree indexes on columns.
/// Partial indexes and indexes on expressions are omitted.
const INDEXES: &str = "\
select i.indexrelid::int8, i.indisprimary::int, i.indisunique::int, a.attname::text
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indexrelid
join pg_catalog.pg_am m on m.oid = c.relam and m.amname = 'btree'
cross join lateral unnest(i.indkey::int2[]) with ordinality k(attnum, position)
join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
where i.indrelid = to_regclass(?) and i.indisvalid and i.indpred is null and i.indexprs is null
  and k.position <= i.indnkeyatts
order by i.indisprimary desc, i.indisunique desc, i.indexrelid, k.position";

/// The first server version in which a query for a range of `ctid` reads only the pages of this
/// range.
const RANGE_SCANS: i64 = 140_000;
/// Names that `version()` returns in databases that are compatible with PostgreSQL, but do not
/// store tables as a heap.
const OTHERS: [&str; 5] = ["YB", "Redshift", "Greenplum", "Cloudberry", "Cockroach"];

/// The PostgreSQL types whose values cannot be ordered.
const UNORDERED: [&str; 10] = [
    "json", "xml", "point", "lseg", "path", "box", "polygon", "line", "circle", "jsonpath",
];

pub(super) fn table(connection: &Connection, name: &str) -> Result<Option<Table>, Error> {
    let name = [Value::Text(name.to_owned())];
    let (_, found) = rows(connection, TABLE, &name)?;
    let Some(row) = found.first() else {
        return Ok(None);
    };
    let kind = text(row.get(1));
    let (method, version) = (text(row.get(2)), text(row.get(7)));
    let n_pages = u64::try_from(int(row.get(4)).unwrap_or(0)).unwrap_or(0);
    let has_children = int(row.get(5)) == Some(1);
    let is_table = kind == "r" && !has_children;
    let is_postgres =
        version.starts_with("PostgreSQL ") && !OTHERS.iter().any(|name| version.contains(name));
    let no_address = match () {
        () if !is_table => Some("it is not one table (a view, or a table with partitions)"),
        () if !is_postgres || method != "heap" => Some("its storage is not PostgreSQL's heap"),
        () if int(row.get(6)).is_none_or(|version| version < RANGE_SCANS) => {
            Some("before PostgreSQL 14 each range of `ctid` reads the whole table")
        }
        () => None,
    };
    let (_, columns) = rows(connection, COLUMNS, &name)?;
    let (_, indexes) = rows(connection, INDEXES, &name)?;
    Ok(Some(Table {
        columns: columns
            .iter()
            .map(|row| TableColumn {
                name: text(row.first()),
                // `not null` is no guarantee for a table with child tables, which may contain NULL,
                // or for a foreign table, whose constraints are not enforced.
                is_nullable: int(row.get(1)) != Some(1) || !(is_table || kind == "p"),
                unfit: UNORDERED
                    .contains(&text(row.get(2)).as_str())
                    .then_some("its type has no order"),
            })
            .collect(),
        indexes: read_indexes(&indexes),
        rows: estimate(row, n_pages),
        address: no_address.is_none().then_some(RowAddress::Ctid { n_pages }),
        sampling: match kind.as_str() {
            "r" | "m" | "p" => Sampling::Pages,
            _ => Sampling::None,
        },
        no_address,
    }))
}

fn read_indexes(found: &[crate::plan::fetch::Row]) -> Vec<TableIndex> {
    let (mut indexes, mut last) = (Vec::new(), String::new());
    for row in found {
        add_to_index(
            &mut indexes,
            &mut last,
            text(row.first()),
            text(row.get(3)),
            int(row.get(1)) == Some(1),
            int(row.get(2)) == Some(1),
        );
    }
    indexes
}

/// Returns the number of rows in PostgreSQL's statistics about the table. If the table has no
/// statistics yet, returns an estimate from its number of pages.
fn estimate(row: &[Option<Value>], n_pages: u64) -> Option<u64> {
    const ROWS_PER_PAGE: u64 = 60;
    match row.get(3) {
        Some(Some(Value::F64(n))) if *n >= 0.0 && (*n > 0.0 || n_pages == 0) => Some(*n as u64),
        _ => Some(n_pages * ROWS_PER_PAGE),
    }
}
