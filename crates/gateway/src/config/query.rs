//! Reads the tables `[queries.NAME]` of the configuration, with the parameters of each query.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use onecopy_rows::Dialect;
use onecopy_rows::Value;
use onecopy_rows::named;
use toml::Spanned;
use toml::de::DeValue;

use super::toml_table::{Problems, TomlTable, scalar};
use super::{Database, DefaultLimits, Query};
use crate::parameters::{Bound, Parameter, ParameterType, compare};

pub(super) fn read(
    name: String,
    table: &mut TomlTable<'_, '_>,
    databases: &[Database],
    limits: &DefaultLimits,
    folder: &Path,
    problems: &mut Problems<'_>,
) -> Option<Query> {
    let good_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 100 || name.starts_with('-') || !name.chars().all(good_name)
    {
        problems.add(
            table.span(),
            format!(
                "the query name `{name}` does not fit a path\n\
                 use letters, digits, `_` and `-` (not at the start), at most 100"
            ),
        );
    }
    let description = table.text("description", problems);
    let description = description.map_or_else(String::new, |(d, _)| d.trim().to_owned());
    let database = read_database_name(table, databases, problems);
    let sql = read_sql(table, folder, problems);
    let time_limit_s = table
        .number("time_limit_s", 1..=86_400, problems)
        .unwrap_or(limits.time_limit_s);
    let declarations = table.tables("parameters", problems);
    let declared: Vec<String> = declarations
        .iter()
        .map(|(name, ..)| (*name).to_string())
        .collect();
    let parameters: Vec<(Parameter, Range<usize>)> = declarations
        .into_iter()
        .filter_map(|(name, span, value)| {
            read_parameter(name, span.clone(), value, problems).map(|p| (p, span))
        })
        .collect();

    let (sql, sql_span) = sql?;
    let database = database?;
    let named = match named::positional(&sql, databases[database].dialect) {
        Ok(named) => named,
        Err(error) => {
            problems.add(sql_span, error.message);
            return None;
        }
    };
    match named.n_statements {
        1 => {}
        0 => problems.add(sql_span.clone(), format!("the SQL of `{name}` is empty")),
        n => problems.add(
            sql_span.clone(),
            format!("the SQL of `{name}` holds {n} statements\na query must be one statement"),
        ),
    }
    if named.names.is_empty()
        && named.sql.contains('?')
        && has_placeholder(&named.sql, databases[database].dialect)
    {
        problems.add(
            sql_span.clone(),
            format!("the SQL of `{name}` has a `?`\nname the parameter: `:city`"),
        );
    }
    let mut bindings = Vec::with_capacity(named.names.len());
    let mut undeclared: Vec<&str> = Vec::new();
    for used in &named.names {
        match parameters.iter().position(|(p, _)| p.name == *used) {
            Some(i) => bindings.push(i),
            None if undeclared.contains(&used.as_str()) => {}
            None => undeclared.push(used),
        }
    }
    // A declaration with an error was reported already.
    undeclared.retain(|used| !declared.iter().any(|name| name == used));
    for used in undeclared {
        problems.add(
            sql_span.clone(),
            format!(
                "the SQL of `{name}` uses `:{used}`, which is not declared\n\
                 add: parameters.{used} = \"text\" (or {})",
                type_names(1)
            ),
        );
    }
    for (i, (parameter, span)) in parameters.iter().enumerate() {
        if !bindings.contains(&i) {
            problems.add(
                span.clone(),
                format!(
                    "the parameter `{}` is not used in the SQL of `{name}`\nuse it as `:{0}`, or remove it",
                    parameter.name
                ),
            );
        }
    }
    Some(Query {
        name,
        description,
        database,
        positional_sql: named.sql,
        sql,
        bindings,
        parameters: parameters.into_iter().map(|(p, _)| p).collect(),
        time_limit: Duration::from_secs(time_limit_s),
    })
}

/// Returns `true` if the SQL has a `?` outside of literals and comments. A query with both `?` and
/// a named placeholder is an error.
fn has_placeholder(sql: &str, dialect: Dialect) -> bool {
    named::positional(&format!(":x {sql}"), dialect).is_err()
}

/// Returns the quoted names of all parameter types except the first `skip` types, separated by
/// commas. Used in error messages.
fn type_names(skip: usize) -> String {
    let names: Vec<String> = ParameterType::ALL[skip..]
        .iter()
        .map(|t| format!("\"{}\"", t.name()))
        .collect();
    names.join(", ")
}

fn read_database_name(
    table: &mut TomlTable<'_, '_>,
    databases: &[Database],
    problems: &mut Problems<'_>,
) -> Option<usize> {
    let known = || -> String {
        let names: Vec<String> = databases.iter().map(|d| format!("`{}`", d.name)).collect();
        names.join(", ")
    };
    match table.text("database", problems) {
        Some((name, span)) => {
            let found = databases.iter().position(|d| d.name == name);
            if found.is_none() && !databases.is_empty() {
                let message = format!("no database is named `{name}`\nnamed are: {}", known());
                problems.add(span, message);
            }
            found
        }
        None if databases.len() > 1 => {
            let message = format!(
                "which `database` does this query read?\nnamed are: {}",
                known()
            );
            problems.add(table.span(), message);
            None
        }
        None => (!databases.is_empty()).then_some(0),
    }
}

fn read_sql(
    table: &mut TomlTable<'_, '_>,
    folder: &Path,
    problems: &mut Problems<'_>,
) -> Option<(String, Range<usize>)> {
    match (table.text("sql", problems), table.text("file", problems)) {
        (Some((sql, span)), None) => Some((sql.trim().to_owned(), span)),
        (None, Some((path, span))) => match std::fs::read_to_string(folder.join(path)) {
            Ok(sql) => Some((sql.trim().to_owned(), span)),
            Err(error) => {
                problems.add(span, format!("`file` \"{path}\" cannot be read: {error}"));
                None
            }
        },
        (None, None) => {
            problems.add(table.span(), "a query needs `sql` or `file`");
            None
        }
        (Some(_), Some((_, span))) => {
            problems.add(
                span,
                "a query has `sql` or `file`, not both\nkeep one of them",
            );
            None
        }
    }
}

fn read_parameter(
    name: String,
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
    problems: &mut Problems<'_>,
) -> Option<Parameter> {
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        problems.add(
            span.clone(),
            format!(
                "the parameter name `{name}` cannot be written in SQL\n\
                 use letters, digits and `_`, with no digit at the start"
            ),
        );
    }
    let mut parameter = Parameter::new(name);
    let table = match value.get_ref() {
        DeValue::String(short) => {
            parameter.parameter_type = read_type(short, value.span(), problems)?;
            return Some(parameter);
        }
        DeValue::Table(table) => table,
        _ => {
            let message = format!(
                "the parameter `{}` must be a type or a table: {{ type = \"int\", default = 1 }}",
                parameter.name
            );
            problems.add(value.span(), message);
            return None;
        }
    };
    let path = format!("the parameter `{}`", parameter.name);
    let mut table = TomlTable::new(table, path, span);
    read_parameter_table(&mut table, &mut parameter, problems);
    table.finish(problems);
    Some(parameter)
}

fn read_type(name: &str, span: Range<usize>, problems: &mut Problems<'_>) -> Option<ParameterType> {
    let found = ParameterType::of_name(name);
    if found.is_none() {
        problems.add(
            span,
            format!("`{name}` is no parameter type\ntypes: {}", type_names(0)),
        );
    }
    found
}

fn read_parameter_table(
    table: &mut TomlTable<'_, '_>,
    parameter: &mut Parameter,
    problems: &mut Problems<'_>,
) {
    match table.text("type", problems) {
        Some((name, span)) => {
            if let Some(t) = read_type(name, span, problems) {
                parameter.parameter_type = t;
            }
        }
        None => problems.add(
            table.span(),
            format!(
                "the parameter `{}` needs a `type`\ntypes: {}",
                parameter.name,
                type_names(0)
            ),
        ),
    }
    let t = parameter.parameter_type;
    if let Some((description, _)) = table.text("description", problems) {
        description.trim().clone_into(&mut parameter.description);
    }
    for key in ["min", "max"] {
        let Some(value) = table.get(key) else {
            continue;
        };
        if t.is_ordered() {
            let bound = read_bound(key, value, t, problems);
            if key == "min" {
                parameter.min = bound;
            } else {
                parameter.max = bound;
            }
        } else {
            let message = format!("`{key}` does not fit a parameter of type \"{}\"", t.name());
            problems.add(value.span(), message);
        }
    }
    if let (Some(min), Some(max)) = (&parameter.min, &parameter.max)
        && compare(&min.value, &max.value) == Some(std::cmp::Ordering::Greater)
    {
        problems.add(table.span(), "`min` is above `max`");
    }
    for key in ["max_length", "allow_empty"] {
        if let Some(value) = table.get(key)
            && t != ParameterType::Text
        {
            let message = format!("`{key}` is only valid for parameters of type \"text\"");
            problems.add(value.span(), message);
        }
    }
    let max_length = table.number("max_length", 1..=1_000_000, problems);
    parameter.max_length = max_length.map(|n| n as usize);
    parameter.allow_empty = table
        .boolean("allow_empty", problems)
        .is_some_and(|(b, _)| b);
    if let Some(value) = table.get("values") {
        match value.get_ref().as_array() {
            Some(array) if !array.is_empty() => {
                parameter.values = array
                    .iter()
                    .filter_map(|v| read_bound("values", v, t, problems))
                    .collect();
            }
            _ => problems.add(value.span(), "`values` must be a list: [\"a\", \"b\"]"),
        }
    }
    if let Some(value) = table.get("example") {
        match scalar(value.get_ref()) {
            Some(text) => match parameter.value_of(&text) {
                Ok(_) => parameter.example = Some(text),
                Err(message) => problems.add(value.span(), format!("`example` {message}")),
            },
            None => problems.add(value.span(), "`example` must be a single value"),
        }
    }
    read_default(table, parameter, problems);
}

fn read_bound(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    t: ParameterType,
    problems: &mut Problems<'_>,
) -> Option<Bound> {
    let text = scalar(value.get_ref());
    let bound = text.and_then(|text| t.parse(&text).map(|value| Bound { value, text }));
    if bound.is_none() {
        problems.add(value.span(), format!("`{key}` must be {}", t.wanted()));
    }
    bound
}

/// Reads the keys `default` and `required` of a parameter. A parameter without either key is
/// required.
fn read_default(
    table: &mut TomlTable<'_, '_>,
    parameter: &mut Parameter,
    problems: &mut Problems<'_>,
) {
    if let Some(value) = table.get("default") {
        let text = scalar(value.get_ref());
        let checked = match &text {
            Some(text) => parameter.value_of(text),
            None => Err("must be a single value".to_owned()),
        };
        match checked {
            Ok(v) => {
                parameter.default = Some(v);
                parameter.default_text = text;
            }
            Err(message) => {
                // This prevents an invalid default from also being reported as a missing one.
                parameter.default = Some(Value::Null);
                problems.add(value.span(), format!("`default` {message}"));
            }
        }
    }
    match table.boolean("required", problems) {
        Some((true, span)) if parameter.default.is_some() => problems.add(
            span,
            "a parameter with a `default` is never required\nremove one of the two",
        ),
        Some((false, _)) if parameter.default.is_none() => parameter.default = Some(Value::Null),
        _ => {}
    }
}
