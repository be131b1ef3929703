//! The statement that puts rows into a table, in the words of its database.

use crate::sql::dialect::Dialect;

/// `INSERT` of all columns by their names, each value a parameter. `table` may have a schema before it, with a point between.
#[must_use]
pub fn insert_statement(table: &str, columns: &[&str], dialect: Dialect) -> String {
    let table: Vec<String> = table.split('.').map(|part| quoted(part, dialect)).collect();
    let names: Vec<String> = columns.iter().map(|name| quoted(name, dialect)).collect();
    let places = vec!["?"; columns.len()].join(", ");
    let (table, names) = (table.join("."), names.join(", "));
    format!("INSERT INTO {table} ({names}) VALUES ({places})")
}

/// A name between the quotes that the database has for names, those inside doubled.
fn quoted(name: &str, dialect: Dialect) -> String {
    let (open, close) = match dialect {
        Dialect::MySql => ('`', '`'),
        Dialect::SqlServer => ('[', ']'),
        _ => ('"', '"'),
    };
    let inside = name.replace(close, &format!("{close}{close}"));
    format!("{open}{inside}{close}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_each_database_wants() {
        let of = |dialect| insert_statement("s.t\"`]", &["a", "b c"], dialect);
        assert_eq!(
            of(Dialect::Postgres),
            "INSERT INTO \"s\".\"t\"\"`]\" (\"a\", \"b c\") VALUES (?, ?)"
        );
        assert_eq!(
            of(Dialect::MySql),
            "INSERT INTO `s`.`t\"``]` (`a`, `b c`) VALUES (?, ?)"
        );
        assert_eq!(
            of(Dialect::SqlServer),
            "INSERT INTO [s].[t\"`]]] ([a], [b c]) VALUES (?, ?)"
        );
    }
}
