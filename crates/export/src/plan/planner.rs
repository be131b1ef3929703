//! [`plan`]: divides a statement into parts.

use onecopy_rows::connect::Connection;
use onecopy_rows::sql::query_shape::{PLACEHOLDER, QueryShape};
use onecopy_rows::{Dialect, Schema, Value};

use super::boundaries;
use super::catalog::{self, RowAddress, Table};
use super::count::count;
use super::hash::{plan_hash, schema_hash, statement_hash, type_name};
use super::index::{self, Explained};
use super::key::{self, Key, TableOfKey};
use super::notes::{self, BALANCED};
use super::predicate::{self, Condition, KeyColumn};
use super::quantiles::{Quantiles, quantiles};
use super::sample::Sample;
use super::snapshot;
use super::spec::{PartSpec, Plan};
use super::template::{Position, Template};
use super::value_json::{is_complete, shown};
use crate::error::Error;

/// The largest number of parts of a plan.
pub const MOST_PARTS: usize = 10_000;
/// The options of [`plan`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanOptions {
    /// The requested number of parts. The plan has fewer parts if the key has few values, and one
    /// more part if the key can be NULL.
    pub n_parts: usize,
    /// The names of the key's columns. If the list is empty, the best key of the table is used.
    pub key: Vec<String>,
    /// The number of rows in the sample; `None` to derive the number from `n_parts`. If a table has
    /// at most twice as many rows, all its rows are read instead of a sample.
    pub sample_rows: Option<u64>,
    /// `true` to export a snapshot of the database that all parts read. The snapshot exists until
    /// the transaction of the planner's connection ends.
    pub hold: bool,
}

/// The data of one call to [`plan`].
struct Planner<'a> {
    connection: &'a Connection,
    dialect: Dialect,
    sql: &'a str,
    values: &'a [Value],
    options: &'a PlanOptions,
    shape: QueryShape,
    table: Option<Table>,
    notes: Vec<String>,
}

/// Divides the rows of a query into parts.
///
/// The function reads the catalog and the key columns of the rows, or of a sample of the rows. It
/// changes no data. The transaction of the connection stays open after the call. If
/// [`PlanOptions::hold`] is set, the caller must keep this transaction open until all parts are
/// read, because the snapshot that the parts read exists only during this transaction.
///
/// # Errors
/// [`Error::Usage`] for a statement that cannot be divided, with advice; the error of the database.
pub fn plan(
    connection: &Connection,
    sql: &str,
    values: &[Value],
    options: &PlanOptions,
) -> Result<Plan, Error> {
    if !(1..=MOST_PARTS).contains(&options.n_parts) {
        return Err(Error::Usage(format!(
            "the number of parts must be 1 to {MOST_PARTS}, not {}",
            options.n_parts
        )));
    }
    if let Some(at) = values.iter().position(|value| !is_complete(value)) {
        return Err(Error::Usage(format!(
            "parameter {} has a declared type, which a plan cannot contain\n\
             cast the parameter in the SQL",
            at + 1
        )));
    }
    let dialect = connection.dialect();
    let shape = QueryShape::of(sql, dialect).map_err(|error| Error::Usage(error.message))?;
    let snapshot = match options.hold {
        true => Some(snapshot::export(connection)?),
        false => None,
    };
    let table = match &shape.table {
        Some(table) => catalog::table(connection, &sql[table.name.clone()], &table.names)?,
        None => None,
    };
    let mut planner = Planner {
        connection,
        dialect,
        sql,
        values,
        options,
        shape,
        table,
        notes: Vec::new(),
    };
    let has_key = !options.key.is_empty() || matches!(planner.key_of_table(), Ok(Some(_)));
    if options.n_parts == 1 && !has_key {
        return planner.one_part(snapshot);
    }
    planner.notes = notes::of_statement(&planner.shape)?;
    planner.plan(snapshot)
}

/// The ranges of a key, and the estimated number of rows in each range.
struct Ranges {
    columns: Vec<KeyColumn>,
    conditions: Vec<(Condition, Option<u64>)>,
}

impl Planner<'_> {
    /// Returns a plan without a key, whose only part is the whole statement.
    fn one_part(self, snapshot: Option<String>) -> Result<Plan, Error> {
        let (sql, values) = Template::whole(self.sql, &self.shape, self.values);
        let schema = self.schema_of(&sql, &values)?;
        let position = match self.shape.placeholder {
            Some(_) => Position::Placeholder,
            None => Position::Condition,
        };
        let part = PartSpec {
            plan: String::new(),
            statement: String::new(),
            schema: schema_hash(&schema),
            number: 1,
            count: 1,
            sql,
            values,
            snapshot,
            key: Vec::new(),
            condition: "all rows".to_owned(),
            rows: None,
        };
        self.finish(vec![part], &schema, "none", position, &[])
    }

    /// Returns the plan that consists of `parts`, and sets the hashes in them.
    fn finish(
        self,
        mut parts: Vec<PartSpec>,
        schema: &Schema,
        key_kind: &str,
        position: Position,
        key: &[KeyColumn],
    ) -> Result<Plan, Error> {
        let statement = statement_hash(self.sql, self.values, &schema_hash(schema));
        let id = plan_hash(&statement, &parts);
        for part in &mut parts {
            part.plan.clone_from(&id);
            part.statement.clone_from(&statement);
        }
        let index = self.index(&parts, key)?;
        let snapshot = parts.first().and_then(|part| part.snapshot.as_deref());
        Ok(Plan {
            sql: self.sql.to_owned(),
            values: self.values.to_vec(),
            columns: schema
                .columns
                .iter()
                .map(|c| (c.name.clone(), type_name(c.column_type).to_owned()))
                .collect(),
            key_kind: key_kind.to_owned(),
            position,
            index,
            snapshot: snapshot::sentence(self.dialect, snapshot),
            notes: self.notes,
            parts,
        })
    }

    fn plan(mut self, snapshot: Option<String>) -> Result<Plan, Error> {
        let of_table = self.key_of_table()?;
        let (template, position) =
            Template::new(self.sql, &self.shape, of_table.is_some(), self.values);
        let schema = self.describe(&template)?;
        if position == Position::DerivedTable {
            // The statement itself is described, because SQLite renames equal column names in a
            // derived table.
            let text = &self.sql[self.shape.text.clone()];
            let own = self.connection.prepare_check(text)?.schema;
            check_names(own.as_ref().unwrap_or(&schema), self.dialect)?;
        }
        let key = match of_table {
            Some(key) => key,
            None => self.key_of_result(&schema)?,
        };
        let ranges = self.ranges(&key, &template)?;
        let names: Vec<String> = ranges.columns.iter().map(|c| c.name.clone()).collect();
        let columns = schema_hash(&schema);
        let count = ranges.conditions.len();
        let parts: Vec<PartSpec> = ranges
            .conditions
            .iter()
            .enumerate()
            .map(|(at, (condition, rows))| {
                let (sql, values) = template.with(condition);
                PartSpec {
                    plan: String::new(),
                    statement: String::new(),
                    schema: columns.clone(),
                    number: at + 1,
                    count,
                    sql,
                    values,
                    snapshot: snapshot.clone(),
                    key: names.clone(),
                    condition: for_people(condition, self.dialect),
                    rows: *rows,
                }
            })
            .collect();
        self.finish(parts, &schema, key.kind, position, &ranges.columns)
    }

    fn table_of_key(&self) -> Option<TableOfKey<'_>> {
        let (table, shape) = (self.table.as_ref()?, self.shape.table.as_ref()?);
        Some(TableOfKey::new(table, shape, self.sql, self.dialect))
    }

    /// Returns the key of a part's rows if it consists of columns of the table. Returns `None` if
    /// the key must consist of columns of the query's result.
    fn key_of_table(&self) -> Result<Option<Key>, Error> {
        match (self.table_of_key(), self.options.key.as_slice()) {
            (Some(table), []) => table.choose().map(Some),
            (Some(table), names) => table.named(names),
            (None, _) => Ok(None),
        }
    }

    fn key_of_result(&self, schema: &Schema) -> Result<Key, Error> {
        if self.options.key.is_empty() {
            let names: Vec<String> = schema
                .columns
                .iter()
                .map(|c| format!("`{}`", c.name))
                .collect();
            let reason = match &self.shape.table {
                Some(_) => "the key of the table is unknown",
                None => "the statement is not `select COLUMNS from TABLE`, so its key is unknown",
            };
            return Err(Error::Usage(format!(
                "{reason}\ngive the columns to divide it by: `--key NAME` (the result has {})",
                names.join(", ")
            )));
        }
        let is_placeholder = self.shape.placeholder.is_some();
        key::of_result(&self.options.key, schema, self.dialect, is_placeholder)
    }

    /// Returns the columns of the result. No rows are read, because the query gets a condition that
    /// is never true.
    fn describe(&self, template: &Template) -> Result<Schema, Error> {
        let (sql, values) = template.with(&Condition::none());
        self.schema_of(&sql, &values)
    }

    /// Returns the columns of a query. Some databases must execute the query for this; no row is
    /// fetched.
    fn schema_of(&self, sql: &str, values: &[Value]) -> Result<Schema, Error> {
        let prepared = self.connection.prepare_check(sql)?;
        if prepared.read_only == Some(false) {
            return Err(Error::Usage(
                "the statement changes the database, so it cannot be read in parts".to_owned(),
            ));
        }
        let schema = match prepared.schema {
            Some(schema) => schema,
            None => self.connection.execute(sql, values)?.schema().clone(),
        };
        if !schema.has_rows() {
            return Err(Error::Usage("the statement returns no rows".to_owned()));
        }
        Ok(schema)
    }

    /// Returns the condition of each part, and the estimated number of rows of each part.
    fn ranges(&mut self, key: &Key, template: &Template) -> Result<Ranges, Error> {
        if let Some(RowAddress::Ctid { n_pages }) =
            self.table.as_ref().and_then(|t| t.address.as_ref())
            && key.kind == "physical address"
        {
            let ranges = predicate::pages(&key.columns[0], *n_pages, self.options.n_parts);
            let rows = self.table.as_ref().and_then(|table| table.rows);
            let n = ranges.len() as u64;
            let rows = rows
                .filter(|_| self.has_no_condition())
                .map(|rows| rows / n);
            self.notes.push(
                "a row that is updated while parts are read can move to another part: read them \
                 from one snapshot, or do not update the table"
                    .to_owned(),
            );
            return Ok(Ranges {
                columns: key.columns.clone(),
                conditions: ranges
                    .into_iter()
                    .map(|condition| (condition, rows))
                    .collect(),
            });
        }
        let n = self.options.n_parts;
        let mut columns = key.columns.clone();
        if n == 1 {
            let rows = self.n_rows(template)?;
            return Ok(Ranges {
                columns,
                conditions: vec![(Condition::all(), rows)],
            });
        }
        let (mut best, mut scale) = self.quantiles(key, &columns, template)?;
        for further in &key.further {
            if best.skew(n) <= BALANCED || best.n_rows() < n as u64 {
                break;
            }
            columns.push(further.clone());
            let (next, next_scale) = self.quantiles(key, &columns, template)?;
            (best, scale) = (next, next_scale);
        }
        self.notes.extend(notes::of_skew(&columns, &best, n));
        let starts = boundaries::choose(&best.weights, n);
        let sizes = boundaries::sizes(&best.weights, &starts);
        let bounds: Vec<Option<&[Value]>> = std::iter::once(None)
            .chain(starts.iter().map(|&at| Some(best.keys[at].as_slice())))
            .chain([None])
            .collect();
        let estimate = |rows: u64| scale.map(|scale| (rows as f64 * scale) as u64);
        if starts.is_empty() {
            let rows = estimate(best.n_rows() + best.n_null);
            return Ok(Ranges {
                columns,
                conditions: vec![(Condition::all(), rows)],
            });
        }
        let mut conditions: Vec<(Condition, Option<u64>)> = bounds
            .windows(2)
            .zip(sizes)
            .map(|(pair, size)| {
                let range = predicate::range(&columns, pair[0], pair[1], self.dialect);
                (range, estimate(size))
            })
            .collect();
        conditions.extend(predicate::null(&columns).map(|null| (null, estimate(best.n_null))));
        Ok(Ranges {
            columns,
            conditions,
        })
    }

    /// Returns the number of rows of the query: an estimate from the catalog if there is a usable
    /// one, otherwise an exact count by the database.
    fn n_rows(&self, template: &Template) -> Result<Option<u64>, Error> {
        let estimate = self.table.as_ref().and_then(|table| table.rows);
        match self.dialect {
            // For SQLite, the catalog has only an upper bound.
            Dialect::Postgres | Dialect::MySql if self.has_no_condition() && estimate.is_some() => {
                Ok(estimate)
            }
            _ => {
                let (sql, values) = template.with(&Condition::all());
                count(self.connection, &sql, &values, None).map(Some)
            }
        }
    }

    fn has_no_condition(&self) -> bool {
        let table = self.shape.table.as_ref();
        table.is_some_and(|table| table.condition.is_none())
    }

    /// Returns the quantiles of the key's values in a sample of the rows or in all rows. Also
    /// returns the number of table rows that each sampled row represents.
    fn quantiles(
        &self,
        key: &Key,
        columns: &[KeyColumn],
        template: &Template,
    ) -> Result<(Quantiles, Option<f64>), Error> {
        let n = self.options.n_parts;
        let names = |text: &dyn Fn(&KeyColumn) -> String| {
            let names = columns.iter().enumerate();
            let names: Vec<String> = names
                .map(|(at, column)| format!("{} as k{}", text(column), at + 1))
                .collect();
            names.join(", ")
        };
        if !key.is_of_table {
            let names = names(&|c| format!("t.{}", key::quoted(&c.name, self.dialect)));
            let (sql, values) = template.with(&Condition::all());
            let source = format!("select {names} from (\n{sql}\n) t");
            let found = quantiles(self.connection, &source, &values, columns, n)?;
            return Ok((found, Some(1.0)));
        }
        let names = names(&|c| c.sql.clone());
        let table = self.table_of_key();
        let sample = table.and_then(|t| Sample::of(t.table, t.alias, n, self.options.sample_rows));
        if let Some(sample) = sample
            && let Some(found) = self.quantiles_of(&names, columns, &sample)?
            && found.n_rows() >= (n as u64).saturating_mul(16)
        {
            return Ok((found, Some(1.0 / sample.fraction)));
        }
        let found = self.quantiles_of(&names, columns, &Sample::whole())?;
        Ok((found.unwrap_or_default(), Some(1.0)))
    }

    fn quantiles_of(
        &self,
        names: &str,
        columns: &[KeyColumn],
        sample: &Sample,
    ) -> Result<Option<Quantiles>, Error> {
        // The expressions in `names` are columns of the table, so they contain no parameters.
        let template = Template::of_columns(
            self.sql,
            &self.shape,
            names,
            &sample.after_table,
            self.values,
        );
        let Some(template) = template else {
            return Ok(None);
        };
        let (source, values) = template.with(&sample.condition);
        let n = self.options.n_parts;
        quantiles(self.connection, &source, &values, columns, n).map(Some)
    }

    /// Returns a sentence for the user that describes whether the parts can be read by an index. It
    /// is based on the result of `explain` for the part in the middle.
    fn index(&self, parts: &[PartSpec], columns: &[KeyColumn]) -> Result<String, Error> {
        if parts.len() < 2 {
            return Ok("there is only one part, which reads all rows".to_owned());
        }
        let middle = &parts[(parts.len() - 1) / 2];
        let explained = Explained {
            sql: &middle.sql,
            values: &middle.values,
            columns: &columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
        };
        index::sentence(self.connection, &explained)
    }
}

/// Returns an error if two columns of a derived table have the same name, or if a column has no
/// name.
fn check_names(schema: &Schema, dialect: Dialect) -> Result<(), Error> {
    let mut seen = std::collections::HashSet::new();
    for column in schema.columns.iter() {
        // Only PostgreSQL distinguishes names by upper and lower case.
        let name = match dialect {
            Dialect::Postgres => column.name.clone(),
            _ => column.name.to_lowercase(),
        };
        if !name.is_empty() && seen.insert(name) {
            continue;
        }
        let problem = match column.name.as_str() {
            "" => "a column of the result has no name".to_owned(),
            name => format!("two columns of the result have the name `{name}`"),
        };
        return Err(Error::Usage(format!(
            "{problem}, so the statement cannot be a derived table\n\
             give each column a name (`as NAME`), or write `{PLACEHOLDER}` where the condition \
             belongs"
        )));
    }
    Ok(())
}

/// Returns a condition as text for messages: the placeholders are replaced by their values.
fn for_people(condition: &Condition, dialect: Dialect) -> String {
    let values: Vec<String> = condition.values.iter().map(shown).collect();
    onecopy_rows::sql::named::fill_marks(&condition.sql, dialect, &values)
}
