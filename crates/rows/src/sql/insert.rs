//! `TableInsert`: the statement that inserts rows into a table, in the dialect of the database.

use super::dialect::Dialect;
use super::lexer::{Lexer, Token, TokenKind};

/// A table and the columns of its new rows, with names quoted for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInsert {
    /// The quoted name of the table, with its schema if the caller named one.
    pub table: String,
    /// The quoted names of the columns, separated by commas.
    pub columns: String,
    n_columns: usize,
}

impl TableInsert {
    /// Quotes the names of a table and its columns. `table` may begin with a schema and a dot.
    #[must_use]
    pub fn new(table: &str, columns: &[&str], dialect: Dialect) -> TableInsert {
        let table: Vec<String> = table.split('.').map(|part| quoted(part, dialect)).collect();
        let names: Vec<String> = columns.iter().map(|name| quoted(name, dialect)).collect();
        TableInsert {
            table: table.join("."),
            columns: names.join(", "),
            n_columns: names.len(),
        }
    }

    /// Returns the `INSERT` statement, with a parameter for each column.
    #[must_use]
    pub fn sql(&self) -> String {
        let values = vec!["?"; self.n_columns].join(", ");
        let TableInsert { table, columns, .. } = self;
        format!("INSERT INTO {table} ({columns}) VALUES ({values})")
    }
}

/// An INSERT of one row whose values are constants and parameters: `INSERT INTO t (a, b) VALUES (?,
/// 1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowInsert<'a> {
    /// The name of the table, exactly as the statement contains it.
    pub(crate) table: &'a str,
    /// The names of the columns, separated by commas, as they are written in the statement; `None`
    /// if the statement has no list of columns.
    pub(crate) columns: Option<&'a str>,
    /// `true` if each value is a parameter.
    pub(crate) has_only_parameters: bool,
    /// The text of the statement up to the list of values.
    head: &'a str,
    /// The part of the SQL text that contains the values of the row, with its parentheses.
    values: &'a str,
}

impl<'a> RowInsert<'a> {
    /// Parses an INSERT of one row in PostgreSQL's dialect, so that several executions can be
    /// combined into one INSERT of several rows. Returns `None` for any other statement. Also
    /// returns `None` if a value is computed, because it may be a query that depends on the rows
    /// inserted before.
    pub(crate) fn read(sql: &'a str) -> Option<RowInsert<'a>> {
        let mut tokens = Lexer::of_statement(sql, Dialect::Postgres)
            .filter(|token| !token.is_blank())
            .peekable();
        let mut keyword = |word: &str| tokens.next_if(|token| token.is(word)).map(|_| ());
        keyword("INSERT")?;
        keyword("INTO")?;
        let first = tokens.next().filter(is_name)?;
        let mut last = first;
        // For `database.schema.table`, the second dot fails the check for `VALUES`: the result is
        // `None`.
        if tokens.next_if(|token| token.text == ".").is_some() {
            last = tokens.next().filter(is_name)?;
        }
        let mut columns = None;
        if let Some(open) = tokens.next_if(|token| token.text == "(") {
            loop {
                tokens.next().filter(is_name)?;
                let token = tokens.next()?;
                match token.text {
                    "," => {}
                    ")" => {
                        columns = Some(&sql[open.start + 1..token.start]);
                        break;
                    }
                    _ => return None,
                }
            }
        }
        tokens.next_if(|token| token.is("VALUES"))?;
        let open = tokens.next().filter(|token| token.text == "(")?;
        let mut has_only_parameters = true;
        let end = loop {
            let value = tokens.next().filter(is_constant)?;
            has_only_parameters &= value.kind == TokenKind::QuestionMark;
            let token = tokens.next()?;
            match token.text {
                "," => {}
                ")" => break token.start + 1,
                _ => return None,
            }
        };
        match tokens.all(|token| token.kind == TokenKind::Semicolon) {
            true => Some(RowInsert {
                table: &sql[first.start..last.start + last.text.len()],
                columns,
                has_only_parameters,
                head: &sql[..open.start],
                values: &sql[open.start..end],
            }),
            false => None,
        }
    }

    /// Returns the text of this INSERT with `n_rows` rows of values. The parameters of each row
    /// follow the parameters of the previous row.
    pub(crate) fn of_rows(&self, n_rows: usize) -> String {
        let values = vec![self.values; n_rows];
        format!("{}{}", self.head, values.join(", "))
    }
}

fn is_name(token: &Token<'_>) -> bool {
    let is_word = token.kind == TokenKind::Word && !token.is("VALUES");
    is_word || token.kind == TokenKind::Quoted && token.text.starts_with('"')
}

fn is_constant(token: &Token<'_>) -> bool {
    let words = ["NULL", "TRUE", "FALSE", "DEFAULT"];
    match token.kind {
        TokenKind::QuestionMark => true,
        TokenKind::Quoted => token.text.starts_with('\''),
        TokenKind::Word => {
            words.iter().any(|word| token.is(word))
                || token.text.bytes().all(|b| b.is_ascii_digit())
        }
        _ => false,
    }
}

/// Quotes a name for the database, and doubles the closing quotes inside it.
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
    fn inserts_of_one_row_are_repeated() {
        let of = |sql| RowInsert::read(sql).map(|insert| (insert.table, insert.of_rows(2)));
        for (sql, table, two) in [
            (
                "insert into t values (?, ?)",
                "t",
                "insert into t values (?, ?), (?, ?)",
            ),
            (
                "insert into t values (?) -- )",
                "t",
                "insert into t values (?), (?)",
            ),
            (
                "INSERT INTO s.\"T )\" (a, \"b(\") VALUES\n(?, null, DEFAULT, 'x)', 7) ; ",
                "s.\"T )\"",
                "INSERT INTO s.\"T )\" (a, \"b(\") VALUES\n(?, null, DEFAULT, 'x)', 7), (?, null, DEFAULT, 'x)', 7)",
            ),
        ] {
            assert_eq!(of(sql), Some((table, two.to_owned())), "{sql}");
        }
        for sql in [
            "insert into t values (?), (?)",
            "insert into t values (?) returning a",
            "insert into t values (?) on conflict do nothing",
            "insert into t select ?",
            "insert into t default values",
            "insert into t as u values (?)",
            "insert into a.b.c values (?)",
            "insert into t () values (?)",
            "insert into t (a[1]) values (?)",
            "insert into t values ((select max(a) from t))",
            "insert into t values (f(?))",
            "insert into t values (? + 1)",
            "insert into t values (current_timestamp)",
            "insert into t values (?); select 1",
            "insert into t values (?",
            "insert into t values",
            "with a as (select 1) insert into t values (?)",
            "update t set a = ?",
            "",
        ] {
            assert_eq!(of(sql), None, "{sql}");
        }
    }

    #[test]
    fn the_columns_and_parameters_of_an_insert_are_found() {
        let of = |sql| RowInsert::read(sql).map(|i| (i.columns, i.has_only_parameters));
        for (sql, columns, has_only_parameters) in [
            ("insert into t values (?, ?)", None, true),
            (
                "insert into t(a, \"b)\") values (?, ?)",
                Some("a, \"b)\""),
                true,
            ),
            ("insert into t (a) values (1)", Some("a"), false),
            (
                "insert into t (a, b) values (?, default)",
                Some("a, b"),
                false,
            ),
        ] {
            assert_eq!(of(sql), Some((columns, has_only_parameters)), "{sql}");
        }
    }

    #[test]
    fn names_are_quoted_as_each_database_wants() {
        let of = |dialect| TableInsert::new("s.t\"`]", &["a", "b c"], dialect).sql();
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
