use std::path::Path;

use onecopy_rows::{Date, Value};

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("/etc/onecopy.toml"), &|name| {
        (name == "PASSWORD").then(|| "hush-7f3a".to_owned())
    })
}

/// Returns the error message for an invalid configuration, as the user sees it.
fn problems(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

const SMALL: &str = "[databases.d]\nurl = \"sqlite:a.db\"\n";

#[test]
fn five_lines_are_a_configuration() {
    let config = parse(
        "[databases.d]\nurl = \"sqlite:a.db\"\n[queries.q]\nsql = \"select :n\"\nparameters.n = \"int\"",
    )
    .unwrap();
    assert_eq!(config.databases[0].target.expose(), "sqlite:/etc/a.db");
    assert_eq!(config.server.bind, "127.0.0.1:8000");
    let query = &config.queries[0];
    assert_eq!(query.positional_sql, "select ?");
    assert_eq!(query.time_limit, Duration::from_secs(30));
    assert!(query.parameters[0].is_required());
}

#[test]
fn a_parameter_used_twice_is_bound_twice() {
    let config = parse(&format!(
        "{SMALL}[queries.q]\nsql = 'select :b, :a, :b'\nparameters = {{ a = \"int\", b = \"text\" }}"
    ))
    .unwrap();
    assert_eq!(config.queries[0].bindings, [1, 0, 1]);
}

#[test]
fn defaults_and_limits_are_values_of_the_parameters_type() {
    let config = parse(&format!(
        "{SMALL}[queries.q]\nsql = 'select :a, :b, :c, :d'\n[queries.q.parameters]\n\
         a = {{ type = \"decimal\", default = 0.10, max = 99999999999999999999.5 }}\n\
         b = {{ type = \"date\", default = 2024-02-29 }}\n\
         c = {{ type = \"int\", values = [1, 0x10] , default = 16 }}\n\
         d = {{ type = \"text\", required = false }}"
    ))
    .unwrap();
    let p = &config.queries[0].parameters;
    assert_eq!(p[0].default, Some(Value::Decimal("0.10".to_owned())));
    assert!(p[0].value_of("99999999999999999999.6").is_err());
    let day = Date {
        year: 2024,
        month: 2,
        day: 29,
    };
    assert_eq!(p[1].default, Some(Value::Date(day)));
    assert_eq!(p[2].default, Some(Value::I64(16)));
    assert_eq!(p[3].default, Some(Value::Null));
}

#[test]
fn unknown_keys_are_named_with_the_line_and_the_known_ones() {
    let text = format!("{SMALL}[queries.q]\nsqll = 'select 1'\nsql = 'select 1'\n[sever]\n");
    let message = problems(&text);
    assert!(
        message.contains("/etc/onecopy.toml:4:1: unknown key `sqll` in [queries.q]"),
        "{message}"
    );
    assert!(
        message.contains("known keys: `description`, `database`, `sql`"),
        "{message}"
    );
    assert!(
        message.contains("onecopy.toml:6:2: unknown key `sever` in the file"),
        "{message}"
    );
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_file() {
    let message = problems(
        "[databases.d]\nurl = 5\n[queries.'a b']\nsql = 'select :x; select 2'\n\
         parameters.y = 'integer'\nparameters.z = { type = 'bool', min = 1, default = 'yes' }\n\
         time_limit_s = 0\n[queries.c]\ndatabase = 'e'\n",
    );
    let lines: Vec<&str> = message.lines().filter(|l| l.starts_with("/etc")).collect();
    for (line, part) in [
        (1, "needs `url`"),
        (2, "`url` in [databases.d] must be a string"),
        (3, "the query name `a b`"),
        (4, "holds 2 statements"),
        (4, "uses `:x`, which is not declared"),
        (5, "`integer` is no parameter type"),
        (6, "`min` does not fit a parameter of type \"bool\""),
        (6, "`default` must be `true` or `false`"),
        (6, "the parameter `z` is not used"),
        (
            7,
            "`time_limit_s` in [queries.a b] must be a whole number from 1 to 86400",
        ),
        (8, "a query needs `sql` or `file`"),
        (9, "no database is named `e`"),
    ] {
        assert!(
            lines
                .iter()
                .any(|l| l.contains(&format!("toml:{line}:")) && l.contains(part)),
            "line {line}: {part}\nin:\n{message}"
        );
    }
    assert_eq!(lines.len(), 12, "{message}");
}

#[test]
fn passwords_stand_in_no_message_and_no_debug_form() {
    for text in [
        "[databases.d]\nurl = \"Driver=x;Pwd=${PASSWORD};Server=${NOT_SET}\"",
        "[databases.d]\nurl = \"Driver=x;Pwd=hush-7f3a\n[queries.q]\nsql=''",
        "[databases.d]\nurl = [\"hush-7f3a\"]",
        "[databases.d]\nurl = \"Pwd=hush-7f3a\" \"hush-7f3a\"",
    ] {
        let error = parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
    }
    let config = parse("[databases.d]\nurl = \"DSN=x;PWD=${PASSWORD}\"").unwrap();
    assert_eq!(config.databases[0].target.expose(), "DSN=x;PWD=hush-7f3a");
    assert!(!format!("{config:?}").contains("hush"));
}

#[test]
fn url_file_and_sql_file_are_relative_to_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("url"), "sqlite::memory:\n").unwrap();
    std::fs::write(folder.path().join("q.sql"), "select 1;\n").unwrap();
    let file = folder.path().join("onecopy.toml");
    std::fs::write(
        &file,
        "[databases.d]\nurl_file = 'url'\n[queries.q]\nfile = 'q.sql'",
    )
    .unwrap();
    let config = Config::load(&file).unwrap();
    assert_eq!(config.databases[0].target.expose(), "sqlite::memory:");
    assert_eq!(config.queries[0].sql, "select 1;");
    std::fs::write(
        &file,
        "[databases.d]\nurl_file = 'none'\n[queries.q]\nfile = 'none.sql'",
    )
    .unwrap();
    let message = Config::load(&file).unwrap_err().to_string();
    assert!(
        message.contains(":2:12: `url_file` \"none\" cannot be read"),
        "{message}"
    );
    assert!(
        message.contains(":4:8: `file` \"none.sql\" cannot be read"),
        "{message}"
    );
}

#[test]
fn question_marks_are_refused_where_the_parameter_has_no_name() {
    let message = problems(&format!("{SMALL}[queries.q]\nsql = 'select ?'"));
    assert!(message.contains("name the parameter: `:city`"), "{message}");
    assert!(parse(&format!("{SMALL}[queries.q]\nsql = \"select '?'\"")).is_ok());
}

#[test]
fn the_reference_page_is_a_configuration_that_parses() {
    let page = include_str!("../../../../docs/reference/gateway-config.md");
    let blocks: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|b| b.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        let config = parse(block).unwrap_or_else(|e| panic!("{e}\n{block}"));
        assert!(!config.queries.is_empty());
    }
    for t in crate::parameters::ParameterType::ALL {
        assert!(
            page.contains(&format!("| `{}` |", t.name())),
            "{}",
            t.name()
        );
    }
}

#[test]
fn sqlite_paths_are_relative_to_the_folder_of_the_file() {
    let target = |url: &str, file: &str| {
        let text = format!("[databases.d]\nurl = \"{url}\"");
        let config = Config::parse(&text, Path::new(file), &|_| None).unwrap();
        config.databases[0].target.expose().to_owned()
    };
    for (url, file, expected) in [
        ("sqlite:a.db", "x/c.toml", "sqlite:x/a.db"),
        ("sqlite://a.db", "x/c.toml", "sqlite:x/a.db"),
        (
            "sqlite:a.db?immutable=1",
            "/50%?/c.toml",
            "sqlite:/50%25%3F/a.db?immutable=1",
        ),
        ("sqlite:a.db", "c.toml", "sqlite:a.db"),
        ("sqlite:/v/a.db", "x/c.toml", "sqlite:/v/a.db"),
        ("sqlite::memory:", "x/c.toml", "sqlite::memory:"),
        ("DSN=a", "x/c.toml", "DSN=a"),
    ] {
        assert_eq!(target(url, file), expected);
    }
}

#[test]
fn the_demo_is_a_configuration_that_parses() {
    let text = include_str!("../../../../examples/cities/onecopy.toml");
    let config = parse(text).unwrap();
    assert!(config.queries.len() >= 5);
    for query in &config.queries {
        // The page and the log of `serve` suggest a request, which the query must accept.
        let line = crate::curl(query, "127.0.0.1:8000");
        let query_string = line.trim_end_matches('\'').split_once('?').map(|(_, q)| q);
        assert!(
            crate::query_string::bind(query, query_string).is_ok(),
            "{line}"
        );
    }
}
