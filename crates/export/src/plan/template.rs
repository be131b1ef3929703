//! [`Template`]: a query into which the predicate of a part is inserted.

use onecopy_rows::Value;
use onecopy_rows::sql::query_shape::{QueryShape, TableShape};

use super::predicate::Condition;

/// The position in a statement at which the predicate of a part is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The predicate is added to the `where` condition of the query, which reads one table.
    Condition,
    /// The predicate replaces the placeholder `{part}`.
    Placeholder,
    /// The statement becomes a derived table (a subquery in `from`) of a new query. The predicate
    /// of a part is the `where` condition of the new query.
    DerivedTable,
}

/// A query into which a predicate can be inserted: the SQL text before and after the predicate, and
/// the values of the parameters in each of these two parts.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    before: String,
    after: String,
    values_before: Vec<Value>,
    values_after: Vec<Value>,
}

impl Template {
    /// Returns the template of the query `sql`, and the position at which a predicate is inserted.
    /// If the query contains the placeholder, the predicate replaces the placeholder. Otherwise, if
    /// `as_table` is `true` and the query reads only one table, the predicate is added to the
    /// condition of the query. In all other cases, the query becomes a derived table.
    pub(crate) fn new(
        sql: &str,
        shape: &QueryShape,
        as_table: bool,
        values: &[Value],
    ) -> (Template, Position) {
        let text = &sql[shape.text.clone()];
        if let Some(at) = &shape.placeholder {
            let (before, after) = values.split_at(shape.n_parameters_before.min(values.len()));
            let template = Template {
                before: text[..at.start].to_owned(),
                after: text[at.end..].to_owned(),
                values_before: before.to_vec(),
                values_after: after.to_vec(),
            };
            return (template, Position::Placeholder);
        }
        if as_table && let Some(table) = &shape.table {
            return (
                Template::of_table(text, table, "", values),
                Position::Condition,
            );
        }
        let template = Template {
            before: format!("select * from (\n{text}\n) t where "),
            after: String::new(),
            values_before: values.to_vec(),
            values_after: Vec::new(),
        };
        (template, Position::DerivedTable)
    }

    /// Returns the query that selects all rows, and the values of its parameters.
    pub(crate) fn whole(sql: &str, shape: &QueryShape, values: &[Value]) -> (String, Vec<Value>) {
        match shape.placeholder {
            Some(_) => Template::new(sql, shape, false, values)
                .0
                .with(&Condition::all()),
            None => (sql[shape.text.clone()].to_owned(), values.to_vec()),
        }
    }

    /// Returns the template of a query that reads one table. The predicate of a part is added to
    /// the `where` condition of the query. `sampling` is a SQL clause that selects a sample of the
    /// rows; it is inserted after the name of the table.
    fn of_table(text: &str, table: &TableShape, sampling: &str, values: &[Value]) -> Template {
        let (head, tail) = text.split_at(table.end);
        let before = match table.condition {
            // If the text ends with a `--` comment, the line end ends the comment.
            Some(at) => format!("{head}{sampling} where ({}\n) and ", &text[at..]),
            None => format!("{head}{sampling}{tail} where "),
        };
        Template {
            before,
            after: String::new(),
            values_before: values.to_vec(),
            values_after: Vec::new(),
        }
    }

    /// Returns the template of a query that reads the same rows of one table as `sql`, but selects
    /// the expressions `columns`. `sampling` is a SQL clause that selects a sample of the rows,
    /// such as `tablesample …`; it is inserted after the name of the table.
    pub(crate) fn of_columns(
        sql: &str,
        shape: &QueryShape,
        columns: &str,
        sampling: &str,
        values: &[Value],
    ) -> Option<Template> {
        let table = shape.table.as_ref()?;
        let text = &sql[shape.text.clone()];
        let head = format!("select {columns} ");
        let Some(at) = &shape.placeholder else {
            let moved = moved(table, table.from, head.len());
            return Some(Template::of_table(
                &(head + &text[table.from..]),
                &moved,
                sampling,
                values,
            ));
        };
        let (before, after) = values.split_at(shape.n_parameters_before.min(values.len()));
        let (from, rest) = text[table.from..at.start].split_at(table.end - table.from);
        Some(Template {
            before: format!("{head}{from}{sampling}{rest}"),
            after: text[at.end..].to_owned(),
            values_before: before.to_vec(),
            values_after: after.to_vec(),
        })
    }

    /// Returns the complete query, with `condition` as the predicate. Also returns the values of
    /// all its parameters, in the order of the parameters.
    pub(crate) fn with(&self, condition: &Condition) -> (String, Vec<Value>) {
        let sql = format!("{}({}){}", self.before, condition.sql, self.after);
        let parts = [&self.values_before, &condition.values, &self.values_after];
        (sql, parts.into_iter().flatten().cloned().collect())
    }
}

/// Returns the positions of `table` in a changed query, in which all text before the keyword `FROM`
/// was replaced by `n_bytes` bytes. `from` is the position of `FROM` in the original query.
fn moved(table: &TableShape, from: usize, n_bytes: usize) -> TableShape {
    TableShape {
        from: n_bytes,
        end: table.end - from + n_bytes,
        condition: table.condition.map(|at| at - from + n_bytes),
        ..table.clone()
    }
}

#[cfg(test)]
mod tests {
    use onecopy_rows::Dialect;

    use super::*;

    fn made(sql: &str, as_table: bool, values: &[i64]) -> (String, Vec<Value>, Position) {
        let shape = QueryShape::of(sql, Dialect::Sqlite).unwrap();
        let values: Vec<Value> = values.iter().map(|&n| Value::I64(n)).collect();
        let (template, position) = Template::new(sql, &shape, as_table, &values);
        let condition = Condition {
            sql: "k < ?".to_owned(),
            values: vec![Value::I64(0)],
        };
        let (sql, values) = template.with(&condition);
        (sql, values, position)
    }

    #[test]
    fn a_predicate_is_added_to_the_condition_of_a_table() {
        for (sql, expected) in [
            ("select * from t", "select * from t where (k < ?)"),
            (
                "select a from t x where a = ? or b -- c\n;",
                "select a from t x where ( a = ? or b\n) and (k < ?)",
            ),
        ] {
            let (sql, _, position) = made(sql, true, &[1]);
            assert_eq!((sql.as_str(), position), (expected, Position::Condition));
        }
    }

    #[test]
    fn a_predicate_replaces_the_placeholder_and_its_values_are_in_order() {
        let (sql, values, position) = made(
            "select ?, '{part}' from t, u where {part} and a = ?",
            true,
            &[1, 2],
        );
        assert_eq!(sql, "select ?, '{part}' from t, u where (k < ?) and a = ?");
        assert_eq!(values, [1, 0, 2].map(Value::I64));
        assert_eq!(position, Position::Placeholder);
    }

    #[test]
    fn other_queries_become_derived_tables() {
        let (sql, values, position) = made("select count(*) k from t where a = ? -- x", true, &[1]);
        assert_eq!(
            sql,
            "select * from (\nselect count(*) k from t where a = ?\n) t where (k < ?)"
        );
        assert_eq!(values, [1, 0].map(Value::I64));
        assert_eq!(position, Position::DerivedTable);
        assert_eq!(
            made("select * from t", false, &[]).2,
            Position::DerivedTable
        );
    }

    #[test]
    fn the_columns_of_a_table_are_read_under_the_condition_of_the_query() {
        for (sql, expected) in [
            (
                "select a, b from t x",
                "select k from t x SAMPLE where (1 = 1)",
            ),
            (
                "select a from t where a = 1",
                "select k from t SAMPLE where ( a = 1\n) and (1 = 1)",
            ),
            (
                "select a from t where {part} and a = 1",
                "select k from t SAMPLE where (1 = 1) and a = 1",
            ),
        ] {
            let shape = QueryShape::of(sql, Dialect::Sqlite).unwrap();
            let template = Template::of_columns(sql, &shape, "k", " SAMPLE", &[]).unwrap();
            assert_eq!(template.with(&Condition::all()).0, expected);
        }
    }
}
