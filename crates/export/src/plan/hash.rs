//! Hashes that identify a statement, the columns of its result, and a plan.

use onecopy_rows::{ColumnType, Schema, Value};

use super::spec::PartSpec;
use super::value_json;
use crate::json::JsonWriter;

/// Computes a BLAKE3 hash of several fields. Each field is preceded by its length, so that
/// different lists of fields have different hashes.
struct FieldHasher(blake3::Hasher);

impl FieldHasher {
    /// Begins a hash with the field `kind`, which ensures that the hashes of statements, schemas
    /// and plans differ.
    fn new(kind: &str) -> FieldHasher {
        let mut fields = FieldHasher(blake3::Hasher::new());
        fields.add("onecopy plan 1");
        fields.add(kind);
        fields
    }

    fn add(&mut self, field: &str) {
        self.0.update(&(field.len() as u64).to_le_bytes());
        self.0.update(field.as_bytes());
    }

    fn add_values(&mut self, values: &[Value]) {
        self.add(&values.len().to_string());
        for value in values {
            let mut out = JsonWriter::default();
            value_json::write(&mut out, value);
            self.add(&out.finish());
        }
    }

    fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// Returns the hash of a statement: its SQL text, its values, and the hash of the columns of its
/// result.
#[must_use]
pub(super) fn statement_hash(sql: &str, values: &[Value], schema: &str) -> String {
    let mut fields = FieldHasher::new("statement");
    fields.add(sql);
    fields.add_values(values);
    fields.add(schema);
    fields.finish()
}

/// Returns the hash of the names and types of columns. The size of a type is not hashed, because
/// some drivers report a different size after the execution of a statement than before it.
#[must_use]
pub(super) fn schema_hash(schema: &Schema) -> String {
    let mut fields = FieldHasher::new("schema");
    for column in schema.columns.iter() {
        fields.add(&column.name);
        fields.add(type_name(column.column_type));
    }
    fields.finish()
}

/// Returns the hash of a plan. It is computed from the statement, and from the SQL, the values and
/// the snapshot of each part.
pub(crate) fn plan_hash(statement: &str, parts: &[PartSpec]) -> String {
    let mut fields = FieldHasher::new("plan");
    fields.add(statement);
    for part in parts {
        fields.add(&part.sql);
        fields.add_values(&part.values);
        fields.add(part.snapshot.as_deref().unwrap_or_default());
    }
    fields.finish()
}

/// Returns the name of a type, without its size.
pub(crate) fn type_name(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Any => "any",
        ColumnType::Bool => "bool",
        ColumnType::Integer { .. } => "integer",
        ColumnType::Real | ColumnType::Double => "float",
        ColumnType::Decimal { .. } => "decimal",
        ColumnType::Text => "text",
        ColumnType::Binary => "binary",
        ColumnType::Date => "date",
        ColumnType::Time { .. } => "time",
        ColumnType::TimeTz { .. } => "time with offset",
        ColumnType::Timestamp { .. } => "timestamp",
        ColumnType::Interval => "interval",
        ColumnType::Uuid => "uuid",
        ColumnType::Range => "range",
        ColumnType::Array(_) => "array",
        _ => "other",
    }
}
