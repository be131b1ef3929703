//! [`Key`]: the columns whose values divide a statement into parts.

use onecopy_rows::sql::query_shape::{TableShape, column_names};
use onecopy_rows::{Dialect, Schema};

use super::catalog::{RowAddress, Table};
use super::predicate::KeyColumn;
use crate::error::Error;

/// The key of a plan: the columns by whose values the rows of a statement are divided into parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) columns: Vec<KeyColumn>,
    /// Additional columns for division. If too many rows for one part have the same values in
    /// `columns`, the columns in `further` are appended to `columns`.
    pub(crate) further: Vec<KeyColumn>,
    /// The description of the key for the user, such as `primary key`.
    pub(crate) kind: &'static str,
    /// `true` if the key consists of columns of the table, `false` if it consists of columns of the
    /// result. For columns of the table, the predicate of a part is added to the condition of the
    /// query.
    pub(crate) is_of_table: bool,
}

/// Returns a name in SQL, in the quotation marks of a dialect.
pub(crate) fn quoted(name: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::MySql => format!("`{}`", name.replace('`', "``")),
        Dialect::SqlServer => format!("[{}]", name.replace(']', "]]")),
        _ => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// The table that a statement reads, with the alias that qualifies its columns in the SQL.
pub(crate) struct TableOfKey<'a> {
    pub(crate) table: &'a Table,
    pub(crate) alias: &'a str,
    pub(crate) dialect: Dialect,
}

impl<'a> TableOfKey<'a> {
    pub(crate) fn new(
        table: &'a Table,
        shape: &TableShape,
        sql: &'a str,
        dialect: Dialect,
    ) -> TableOfKey<'a> {
        TableOfKey {
            table,
            alias: &sql[shape.alias.clone()],
            dialect,
        }
    }

    fn column(&self, name: &str) -> Option<KeyColumn> {
        let column = self.table.column(name)?;
        Some(KeyColumn {
            name: column.name.clone(),
            sql: format!("{}.{}", self.alias, quoted(&column.name, self.dialect)),
            is_nullable: column.is_nullable,
        })
    }

    fn columns(&self, names: &[String]) -> Vec<KeyColumn> {
        names.iter().filter_map(|name| self.column(name)).collect()
    }

    fn address(&self) -> Option<KeyColumn> {
        let name = self.table.address.as_ref()?.name();
        Some(KeyColumn {
            name: name.to_owned(),
            sql: format!("{}.{name}", self.alias),
            is_nullable: false,
        })
    }

    /// Returns the columns that, together with `columns`, identify a single row: those of the
    /// primary key or of a unique index, otherwise the physical address.
    fn further(&self, columns: &[KeyColumn]) -> Vec<KeyColumn> {
        let unique = self
            .table
            .key()
            .map(|(index, _)| self.columns(&index.columns));
        let further = unique.or_else(|| self.address().map(|column| vec![column]));
        let mut further = further.unwrap_or_default();
        further.retain(|column| columns.iter().all(|c| c.sql != column.sql));
        further
    }

    /// Returns the best key of the table. The order of preference is: the primary key, a unique
    /// index without NULL, the physical address, any other index.
    ///
    /// # Errors
    /// [`Error::Usage`] if the table has none of them.
    pub(crate) fn choose(&self) -> Result<Key, Error> {
        let key = |mut columns: Vec<KeyColumn>, kind| {
            // The key begins with one column, because its predicates are the simplest and often
            // suffice.
            let further = columns.split_off(1);
            Key {
                columns,
                further,
                kind,
                is_of_table: true,
            }
        };
        if let Some((index, kind)) = self.table.key() {
            return Ok(key(self.columns(&index.columns), kind));
        }
        if let Some(address) = self.address() {
            return Ok(key(vec![address], "physical address"));
        }
        if let Some(index) = self.table.any_index() {
            return Ok(key(self.columns(&index.columns), "index"));
        }
        let names: Vec<String> = self
            .table
            .columns
            .iter()
            .map(|c| format!("`{}`", c.name))
            .collect();
        Err(Error::Usage(format!(
            "the table `{}` has no key{}\ngive the columns to divide it by: `--key NAME` (it has {})",
            self.alias,
            self.table
                .no_address
                .map_or(String::new(), |reason| format!(
                    ", and no physical addresses: {reason}"
                )),
            names.join(", ")
        )))
    }

    /// Returns the key with the columns `names`, which may be qualified by the alias of the table.
    /// Returns `None` if one of them is not a column of the table.
    ///
    /// # Errors
    /// [`Error::Usage`] for a column that cannot be a key.
    pub(crate) fn named(&self, names: &[String]) -> Result<Option<Key>, Error> {
        let mut columns = Vec::new();
        for name in names {
            let parts = column_names(name, self.dialect);
            let name = match parts.as_deref() {
                Some([alias, name]) if alias.eq_ignore_ascii_case(self.alias) => name,
                _ => name,
            };
            let address = self.address().filter(|address| address.name == *name);
            let Some(column) = address.or_else(|| self.column(name)) else {
                return Ok(None);
            };
            if let Some(reason) = self.table.column(name).and_then(|column| column.unfit) {
                return Err(unfit(name, reason));
            }
            columns.push(column);
        }
        let address = self.table.address.as_ref().map(RowAddress::name);
        let is_address = columns.len() == 1 && Some(columns[0].name.as_str()) == address;
        Ok(Some(Key {
            further: self.further(&columns),
            kind: match is_address {
                true => "physical address",
                false => "given columns",
            },
            columns,
            is_of_table: true,
        }))
    }
}

/// Returns the key that consists of the result columns `names`. `is_placeholder` is `true` if the
/// key's predicate replaces a placeholder inside the statement. The predicate then contains the
/// names exactly as the caller wrote them.
///
/// # Errors
/// [`Error::Usage`] if a name is not that of a column of the result.
pub(crate) fn of_result(
    names: &[String],
    schema: &Schema,
    dialect: Dialect,
    is_placeholder: bool,
) -> Result<Key, Error> {
    let mut columns = Vec::new();
    for name in names {
        let parts = column_names(name, dialect);
        let last = parts.as_ref().and_then(|parts| parts.last());
        let found = match (is_placeholder, last) {
            (true, Some(last)) => of_schema(schema, last),
            (true, None) => {
                return Err(Error::Usage(format!(
                    "`{name}` is not the name of a column\n\
                     write `--key NAME` or `--key TABLE.NAME`; give an expression a name by a \
                     derived table"
                )));
            }
            (false, _) => of_schema(schema, name),
        };
        let Some(column) = found else {
            let names: Vec<String> = schema
                .columns
                .iter()
                .map(|c| format!("`{}`", c.name))
                .collect();
            return Err(Error::Usage(format!(
                "the result has no column `{}`\nit has {}",
                last.filter(|_| is_placeholder).unwrap_or(name),
                names.join(", ")
            )));
        };
        columns.push(KeyColumn {
            name: column.to_owned(),
            sql: match is_placeholder {
                true => name.clone(),
                false => format!("t.{}", quoted(column, dialect)),
            },
            is_nullable: true,
        });
    }
    Ok(Key {
        columns,
        further: Vec::new(),
        kind: "given columns",
        is_of_table: false,
    })
}

fn of_schema<'a>(schema: &'a Schema, name: &str) -> Option<&'a str> {
    let names = || schema.columns.iter().map(|column| column.name.as_str());
    names().find(|column| *column == name).or_else(|| {
        let mut same = names().filter(|column| column.eq_ignore_ascii_case(name));
        same.next().filter(|_| same.next().is_none())
    })
}

pub(crate) fn unfit(name: &str, reason: &str) -> Error {
    Error::Usage(format!(
        "the column `{name}` cannot be a key: {reason}\n\
         choose another column, or select `cast(…) as NAME` and divide by NAME"
    ))
}

#[cfg(test)]
mod tests {
    use onecopy_rows::{Column as ResultColumn, ColumnType};

    use super::*;
    use crate::plan::catalog::{TableColumn, TableIndex};

    fn table(primary: &[&str], address: Option<RowAddress>) -> Table {
        let column = |(name, is_nullable): (&str, bool)| TableColumn {
            name: name.to_owned(),
            is_nullable,
            unfit: (name == "j").then_some("its type has no order"),
        };
        Table {
            columns: [("id", false), ("part", false), ("n", true), ("j", true)]
                .map(column)
                .to_vec(),
            indexes: match primary {
                [] => Vec::new(),
                names => vec![TableIndex {
                    columns: names.iter().map(|&n| n.to_owned()).collect(),
                    is_primary: true,
                    is_unique: true,
                }],
            },
            address,
            ..Table::default()
        }
    }

    fn of(table: &Table) -> TableOfKey<'_> {
        TableOfKey {
            table,
            alias: "x",
            dialect: Dialect::Postgres,
        }
    }

    fn sql(columns: &[KeyColumn]) -> Vec<&str> {
        columns.iter().map(|c| c.sql.as_str()).collect()
    }

    #[test]
    fn the_first_column_of_a_key_is_used_and_the_others_are_in_reserve() {
        let table = table(&["id", "part"], None);
        let key = of(&table).choose().unwrap();
        assert_eq!(sql(&key.columns), ["x.\"id\""]);
        assert_eq!(sql(&key.further), ["x.\"part\""]);
    }

    #[test]
    fn a_given_column_is_completed_by_the_key_or_the_address() {
        let with_key = table(&["id"], None);
        let key = of(&with_key).named(&["X.n".to_owned()]).unwrap().unwrap();
        assert_eq!(
            (sql(&key.columns), sql(&key.further)),
            (vec!["x.\"n\""], vec!["x.\"id\""])
        );
        let heap = table(&[], Some(RowAddress::Ctid { n_pages: 1 }));
        let key = of(&heap).named(&["n".to_owned()]).unwrap().unwrap();
        assert_eq!(sql(&key.further), ["x.ctid"]);
        assert_eq!(of(&heap).choose().unwrap().kind, "physical address");
        assert!(of(&heap).named(&["m".to_owned()]).unwrap().is_none());
    }

    #[test]
    fn wrong_keys_are_refused_with_the_right_ones() {
        let table = table(&[], None);
        let message = of(&table).choose().unwrap_err().to_string();
        assert!(
            message.contains("has no key") && message.contains("`id`, `part`"),
            "{message}"
        );
        let message = of(&table).named(&["j".to_owned()]).unwrap_err().to_string();
        assert!(message.contains("has no order"), "{message}");
        let column = |name: &str| ResultColumn::new(name.to_owned(), ColumnType::Text);
        let schema = Schema::new(vec![column("a"), column("B")]);
        let of_result = |name: &str, is_placeholder| {
            let names = [name.to_owned()];
            super::of_result(&names, &schema, Dialect::Postgres, is_placeholder)
                .map(|key| key.columns[0].sql.clone())
                .map_err(|error| error.to_string())
        };
        assert_eq!(of_result("b", false).unwrap(), "t.\"B\"");
        assert_eq!(of_result("o.a", true).unwrap(), "o.a");
        assert!(
            of_result("c", false)
                .unwrap_err()
                .contains("it has `a`, `B`")
        );
        assert!(
            of_result("lower(a)", true)
                .unwrap_err()
                .contains("not the name of a column")
        );
    }
}
