//! [`Plan`] and [`PartSpec`]: a statement that was divided into parts, and its JSON.

use onecopy_rows::Value;
use onecopy_rows::connect::{Connection, Statement};

use super::hash::{plan_hash, schema_hash, statement_hash};
use super::snapshot::begin_part;
use super::template::Position;
use super::value_json;
use crate::error::Error;
use crate::json::{self, Json, JsonWriter, items, member, text};

/// One part of a statement, with everything that a process needs to execute it, except the
/// connection: it contains no connection string and no password.
#[derive(Clone, Debug, PartialEq)]
pub struct PartSpec {
    /// The hash of the plan to which the part belongs. All parts with the same hash together are
    /// the complete result.
    pub plan: String,
    /// A hash of the statement that was divided into parts: of its SQL text, of the values of its
    /// parameters, and of the columns of its result.
    pub statement: String,
    /// The hash of the names and types of the columns of the result.
    pub schema: String,
    /// The number of the part, from 1.
    pub number: usize,
    /// The number of parts of the plan.
    pub count: usize,
    /// The SQL statement that returns the rows of the part, with `?` for each parameter.
    pub sql: String,
    /// The values of the statement's parameters, in the order of the `?`.
    pub values: Vec<Value>,
    /// The name of the PostgreSQL snapshot that the part reads; `None` if it reads the current
    /// state.
    pub snapshot: Option<String>,
    /// The names of the key's columns.
    pub key: Vec<String>,
    /// A text for messages that describes the condition by which the rows of the part are selected.
    pub condition: String,
    /// The estimated number of rows of the part; `None` if unknown.
    pub rows: Option<u64>,
}

/// A statement that was divided into parts, with sentences about the properties of the parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The SQL text of the statement that was divided into parts, with `?` for each parameter.
    pub sql: String,
    /// The values of the statement's parameters, in the order of the `?`.
    pub values: Vec<Value>,
    /// The parts, in ascending order of their keys; rows with NULL in the key are the last part.
    pub parts: Vec<PartSpec>,
    /// The names and types of the columns of the result.
    pub columns: Vec<(String, String)>,
    /// The description of the key for the user, such as `primary key`.
    pub key_kind: String,
    /// The position in the statement at which the predicate of a part is inserted.
    pub position: Position,
    /// A sentence for the user: it states whether the database can use an index for the predicates.
    pub index: String,
    /// A sentence for the user that states whether all parts read the same state of the database.
    pub snapshot: String,
    /// Sentences for the user about other properties of the parts.
    pub notes: Vec<String>,
}

const VERSION: u64 = 1;

impl PartSpec {
    /// Returns the part as a JSON object on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = JsonWriter::of_line();
        self.write(&mut out);
        out.finish()
    }

    /// Parses the JSON that [`PartSpec::to_json`] has written, and returns the part.
    ///
    /// # Errors
    /// [`Error::Usage`] if the text is not the JSON of a part.
    pub fn from_json(text: &str) -> Result<PartSpec, Error> {
        let part = json::parse(text).as_ref().and_then(PartSpec::read);
        part.filter(|part| (1..=part.count).contains(&part.number))
            .ok_or_else(|| Error::Usage("this is not a part of a plan in JSON".to_owned()))
    }

    /// Executes the statement of the part. If the part has a snapshot, begins a transaction that
    /// reads the snapshot; the connection must have no open transaction.
    ///
    /// # Errors
    /// [`Error::Usage`] if the result does not have the columns of the planned statement, or if the
    /// connection of a part with a snapshot is in autocommit mode; the error of the database.
    pub fn execute(&self, connection: &Connection) -> Result<Statement, Error> {
        if let Some(snapshot) = &self.snapshot {
            begin_part(connection, snapshot)?;
        }
        let statement = connection.execute(&self.sql, &self.values)?;
        match schema_hash(statement.schema()) == self.schema {
            true => Ok(statement),
            false => Err(Error::Usage(
                "the columns of the result are not those of the planned statement\n\
                 the tables have changed since: make a new plan"
                    .to_owned(),
            )),
        }
    }

    fn write(&self, out: &mut JsonWriter) {
        out.open('{');
        for (name, text) in [
            ("plan", Some(self.plan.as_str())),
            ("statement", Some(&self.statement)),
            ("schema", Some(&self.schema)),
        ] {
            out.key(name);
            out.optional_string(text);
        }
        for (name, n) in [("part", self.number), ("parts", self.count)] {
            out.key(name);
            out.raw(&n.to_string());
        }
        out.key("rows");
        out.optional_number(self.rows);
        out.key("key");
        out.strings(&self.key);
        out.key("condition");
        out.string(&self.condition);
        out.key("sql");
        out.string(&self.sql);
        write_values(out, &self.values);
        out.key("snapshot");
        out.optional_string(self.snapshot.as_deref());
        out.close('}');
    }

    fn read(json: &Json) -> Option<PartSpec> {
        let string = |name| text(member(json, name)?);
        let count = |name| usize::try_from(member(json, name)?.as_u64()?).ok();
        Some(PartSpec {
            plan: string("plan")?,
            statement: string("statement")?,
            schema: string("schema")?,
            number: count("part")?,
            count: count("parts")?,
            sql: string("sql")?,
            values: read_values(json)?,
            snapshot: match member(json, "snapshot")? {
                Json::Null => None,
                snapshot => Some(text(snapshot)?),
            },
            key: items(member(json, "key")?)?
                .iter()
                .map(text)
                .collect::<Option<_>>()?,
            condition: string("condition")?,
            rows: match member(json, "rows")? {
                Json::Null => None,
                rows => Some(rows.as_u64()?),
            },
        })
    }
}

impl Plan {
    /// Returns the hash of the plan.
    #[must_use]
    pub fn id(&self) -> &str {
        self.parts.first().map_or("", |part| &part.plan)
    }

    /// Returns the plan as JSON, with each part on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = JsonWriter::default();
        out.open('{');
        out.key("version");
        out.raw(&VERSION.to_string());
        out.key("sql");
        out.string(&self.sql);
        write_values(&mut out, &self.values);
        out.key("key_kind");
        out.string(&self.key_kind);
        out.key("position");
        out.string(position_name(self.position));
        out.key("index");
        out.string(&self.index);
        out.key("snapshot");
        out.string(&self.snapshot);
        out.key("notes");
        out.open('[');
        self.notes.iter().for_each(|note| out.string(note));
        out.close(']');
        out.key("columns");
        out.open('[');
        for (name, column_type) in &self.columns {
            out.open('{');
            out.key("name");
            out.string(name);
            out.key("type");
            out.string(column_type);
            out.close('}');
        }
        out.close(']');
        out.key("parts");
        out.open('[');
        self.parts.iter().for_each(|part| part.write(&mut out));
        out.close(']');
        out.close('}');
        out.finish() + "\n"
    }

    /// Reads a plan from the JSON of [`Plan::to_json`].
    ///
    /// # Errors
    /// [`Error::Usage`] if the text is not the JSON of a plan, or if parts of the plan are missing
    /// or were changed.
    pub fn from_json(text: &str) -> Result<Plan, Error> {
        let wrong =
            |what: &str| Error::Usage(format!("{what}\nmake a new plan with `onecopy plan`"));
        let json = json::parse(text).ok_or_else(|| wrong("the plan is not valid JSON"))?;
        match member(&json, "version") {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(_) => return Err(wrong("the plan is of another version of onecopy")),
            None => return Err(wrong("the text is not a plan")),
        }
        let plan =
            Plan::read(&json).ok_or_else(|| wrong("a member of the plan is missing or wrong"))?;
        let numbers = plan.parts.iter().map(|part| (part.number, part.count));
        let count = plan.parts.len();
        let statement = plan.parts.first().map_or("", |part| &part.statement);
        let id = plan_hash(statement, &plan.parts);
        let is_same = |part: &PartSpec| {
            part.plan == id
                && part.statement == *statement
                && *statement == statement_hash(&plan.sql, &plan.values, &part.schema)
        };
        if !numbers.eq((1..=count).map(|n| (n, count))) || !plan.parts.iter().all(is_same) {
            return Err(wrong("parts of the plan are missing or were changed"));
        }
        Ok(plan)
    }

    fn read(json: &Json) -> Option<Plan> {
        let string = |name| text(member(json, name)?);
        let column =
            |json: &Json| Some((text(member(json, "name")?)?, text(member(json, "type")?)?));
        Some(Plan {
            sql: string("sql")?,
            values: read_values(json)?,
            parts: items(member(json, "parts")?)?
                .iter()
                .map(PartSpec::read)
                .collect::<Option<_>>()?,
            columns: items(member(json, "columns")?)?
                .iter()
                .map(column)
                .collect::<Option<_>>()?,
            key_kind: string("key_kind")?,
            position: position_of(&string("position")?)?,
            index: string("index")?,
            snapshot: string("snapshot")?,
            notes: items(member(json, "notes")?)?
                .iter()
                .map(text)
                .collect::<Option<_>>()?,
        })
    }
}

fn write_values(out: &mut JsonWriter, values: &[Value]) {
    out.key("values");
    out.open('[');
    for value in values {
        value_json::write(out, value);
    }
    out.close(']');
}

fn read_values(json: &Json) -> Option<Vec<Value>> {
    let values = items(member(json, "values")?)?.iter();
    values.map(value_json::read).collect()
}

const POSITIONS: [(Position, &str); 3] = [
    (Position::Condition, "condition"),
    (Position::Placeholder, "placeholder"),
    (Position::DerivedTable, "derived table"),
];

fn position_name(position: Position) -> &'static str {
    POSITIONS
        .iter()
        .find(|(p, _)| *p == position)
        .map_or("", |(_, name)| name)
}

fn position_of(name: &str) -> Option<Position> {
    POSITIONS
        .iter()
        .find(|(_, n)| *n == name)
        .map(|(position, _)| *position)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let part = |number: usize| PartSpec {
            plan: String::new(),
            statement: statement_hash("select a from t", &[Value::I64(7)], "c"),
            schema: "c".to_owned(),
            number,
            count: 2,
            sql: format!("select \"a\" from t where (k < {number})"),
            values: vec![Value::Null, Value::Text("é".to_owned())],
            snapshot: Some("00000003-1".to_owned()),
            key: vec!["k".to_owned(), "l".to_owned()],
            condition: "k < 1".to_owned(),
            rows: (number == 1).then_some(7),
        };
        let mut parts = vec![part(1), part(2)];
        let id = plan_hash(&parts[0].statement, &parts);
        for part in &mut parts {
            part.plan.clone_from(&id);
        }
        Plan {
            sql: "select a from t".to_owned(),
            values: vec![Value::I64(7)],
            parts,
            columns: vec![("a".to_owned(), "text".to_owned())],
            key_kind: "primary key".to_owned(),
            position: Position::Condition,
            index: "i".to_owned(),
            snapshot: "n".to_owned(),
            notes: vec!["one".to_owned()],
        }
    }

    #[test]
    fn a_plan_and_its_parts_are_read_back() {
        let plan = plan();
        let text = plan.to_json();
        assert_eq!(Plan::from_json(&text).unwrap(), plan);
        for part in &plan.parts {
            let line = part.to_json();
            assert!(!line.contains('\n') && text.contains(&line), "{line}");
            assert_eq!(PartSpec::from_json(&line).unwrap(), *part);
        }
    }

    #[test]
    fn a_plan_that_was_changed_is_refused() {
        let text = plan().to_json();
        for (from, to, words) in [
            ("\"version\": 1", "\"version\": 2", "another version"),
            ("k < 1)", "k < 9)", "were changed"),
            ("select a from", "select b from", "were changed"),
            ("\"7\"", "\"8\"", "were changed"),
            ("00000003-1", "00000003-2", "were changed"),
            ("\"part\": 2", "\"part\": 1", "missing"),
            ("\"key_kind\"", "\"kind\"", "missing or wrong"),
            ("{", "[", "not valid JSON"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Plan::from_json(&text.replace(from, to))
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{from}: {error}");
        }
        assert!(
            Plan::from_json("{}")
                .unwrap_err()
                .to_string()
                .contains("is not a plan")
        );
        assert!(PartSpec::from_json("{}").is_err());
    }
}
