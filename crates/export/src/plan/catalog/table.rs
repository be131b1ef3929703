//! [`Table`]: the description of a table, read from the catalog of its database.

/// The description of a table, read from the catalog of its database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<TableColumn>,
    /// The indexes that can order all rows: the primary key first, then other unique indexes.
    pub(crate) indexes: Vec<TableIndex>,
    /// The estimated number of rows; `None` if unknown.
    pub(crate) rows: Option<u64>,
    /// The column with the physical address of a row; `None` if the database cannot read ranges of
    /// addresses.
    pub(crate) address: Option<RowAddress>,
    /// The method of reading a sample of the table.
    pub(crate) sampling: Sampling,
    /// The reason why the table has no physical address, for an error message.
    pub(crate) no_address: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    /// `false` only if the database guarantees that the column has no NULL.
    pub(crate) is_nullable: bool,
    /// The reason why the column cannot be a key; `None` if it can.
    pub(crate) unfit: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableIndex {
    pub(crate) columns: Vec<String>,
    pub(crate) is_primary: bool,
    pub(crate) is_unique: bool,
}

/// The pseudo-column that has the physical address of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowAddress {
    /// PostgreSQL's `ctid`: the page of the row and its position in the page.
    Ctid {
        /// The number of pages of the table.
        n_pages: u64,
    },
    /// SQLite's `rowid`. This pseudo-column has three names. A name is used that no column of the
    /// table has.
    Rowid {
        /// The name: `rowid`, `_rowid_` or `oid`.
        name: &'static str,
    },
}

impl RowAddress {
    /// Returns the name of the pseudo-column in SQL.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            RowAddress::Ctid { .. } => "ctid",
            RowAddress::Rowid { name } => name,
        }
    }
}

/// The method of reading a random sample of a table's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// No method of sampling is known for the table.
    #[default]
    None,
    /// `tablesample system`, which reads only a part of the pages.
    Pages,
    /// A condition on a hash of the row id. The value is the name of the row id in SQL.
    Rowid(&'static str),
    /// A condition that compares a random number with a constant. The database generates one number
    /// for each row.
    Random,
}

impl Table {
    /// Returns the column with this name. If there is none, returns the column whose name differs
    /// from `name` only in the case of ASCII letters; `None` if there is no such column, or more
    /// than one.
    pub(crate) fn column(&self, name: &str) -> Option<&TableColumn> {
        let exact = self.columns.iter().find(|column| column.name == name);
        exact.or_else(|| {
            let is_same = |column: &&TableColumn| column.name.eq_ignore_ascii_case(name);
            let mut found = self.columns.iter().filter(is_same);
            found.next().filter(|_| found.next().is_none())
        })
    }

    fn without_null(&self, index: &TableIndex) -> bool {
        let is_never_null = |name: &String| self.column(name).is_some_and(|c| !c.is_nullable);
        index.columns.iter().all(is_never_null)
    }

    /// Returns the index that is best suited for dividing the rows, and a description of this index
    /// for the user. The index is the primary key, otherwise a unique index without NULL.
    pub(crate) fn key(&self) -> Option<(&TableIndex, &'static str)> {
        let fits = |index: &&TableIndex| {
            let is_fit = |name: &String| self.column(name).is_some_and(|c| c.unfit.is_none());
            index.columns.iter().all(is_fit)
        };
        let mut usable = self.indexes.iter().filter(fits);
        if let Some(primary) = usable.clone().find(|index| index.is_primary) {
            return Some((primary, "primary key"));
        }
        let unique = usable.find(|index| index.is_unique && self.without_null(index));
        unique.map(|index| (index, "unique index without NULL"))
    }

    /// Returns the first index whose columns can all be used to divide the rows. The caller uses
    /// this index if [`Table::key`] returns `None` and the rows have no physical addresses.
    pub(crate) fn any_index(&self) -> Option<&TableIndex> {
        self.indexes.iter().find(|index| {
            let is_fit = |name: &String| self.column(name).is_some_and(|c| c.unfit.is_none());
            index.columns.iter().all(is_fit)
        })
    }
}

/// Adds a column to the last index of `indexes`, or to a new index if the name of the index differs
/// from `last`. The caller calls this function for each row of a catalog query. The query returns
/// the columns of one index in consecutive rows.
pub(super) fn add_to_index(
    indexes: &mut Vec<TableIndex>,
    last: &mut String,
    name: String,
    column: String,
    is_primary: bool,
    is_unique: bool,
) {
    if *last != name || indexes.is_empty() {
        *last = name;
        indexes.push(TableIndex {
            columns: Vec::new(),
            is_primary,
            is_unique,
        });
    }
    if let Some(index) = indexes.last_mut() {
        index.columns.push(column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(indexes: &[(&[&str], bool, bool)]) -> Table {
        let column = |(name, is_nullable): (&str, bool)| TableColumn {
            name: name.to_owned(),
            is_nullable,
            unfit: (name == "json").then_some("x"),
        };
        Table {
            columns: [("id", false), ("ID2", false), ("n", true), ("json", false)]
                .map(column)
                .to_vec(),
            indexes: indexes
                .iter()
                .map(|&(columns, is_primary, is_unique)| TableIndex {
                    columns: columns.iter().map(|&c| c.to_owned()).collect(),
                    is_primary,
                    is_unique,
                })
                .collect(),
            ..Table::default()
        }
    }

    #[test]
    fn the_primary_key_is_preferred_then_a_unique_index_without_null() {
        let key = |indexes| {
            table(indexes)
                .key()
                .map(|(index, _)| index.columns.join(","))
        };
        for (indexes, expected) in [
            (
                &[(&["n"][..], false, true), (&["id"], true, true)][..],
                Some("id"),
            ),
            (
                &[(&["n"], false, true), (&["id", "ID2"], false, true)],
                Some("id,ID2"),
            ),
            (&[(&["n"], false, true), (&["id"], false, false)], None),
            (&[(&["json"], true, true)], None),
            (&[], None),
        ] {
            assert_eq!(key(indexes).as_deref(), expected);
        }
        assert_eq!(
            table(&[(&["n"], false, false)])
                .any_index()
                .unwrap()
                .columns,
            ["n"]
        );
    }

    #[test]
    fn a_column_is_found_by_its_name_in_any_case() {
        let table = table(&[]);
        assert_eq!(table.column("id2").unwrap().name, "ID2");
        assert_eq!(table.column("Id").unwrap().name, "id");
        assert!(table.column("x").is_none());
    }
}
