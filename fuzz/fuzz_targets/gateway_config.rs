//! The gateway's configuration: any text is accepted or refused.
//!
//! An error has positions inside the text and contains no secret. An accepted configuration that is
//! written again is parsed to the same configuration.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use onecopy_gateway::Config;
use onecopy_gateway::parameters::Parameter;
use onecopy_rows::Value;
use onecopy_text::Policy;
use toml::value::{Table, Value as Toml};

const PASSWORD: &str = "pa55-\u{3A9}-planted";

fuzz_target!(|text: &str| {
    if reaches_out(text) {
        return;
    }
    match parse(text) {
        Ok(config) => {
            let again = write(&config);
            let read = parse(&again).unwrap_or_else(|e| panic!("{e}\n{again}"));
            assert_eq!(seen(&read), seen(&config), "{again}");
            for query in &config.queries {
                assert!(query.bindings.iter().all(|i| *i < query.parameters.len()));
                assert!(query.parameters.iter().all(|p| defaults_are_allowed(p)));
            }
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(!shown.contains(PASSWORD), "{shown}");
            if let Some(url) = url_literal(text) {
                assert!(!shown.contains(url), "{shown}");
            }
            let lines: Vec<&str> = text.split('\n').collect();
            assert!(!error.problems.is_empty());
            for p in &error.problems {
                assert!((1..=lines.len()).contains(&p.line), "{p:?}");
                assert!((1..=lines[p.line - 1].chars().count() + 1).contains(&p.column), "{p:?}");
            }
        }
    }
});

fn parse(text: &str) -> Result<Config, onecopy_gateway::ConfigError> {
    Config::parse(text, Path::new("c.toml"), &|name| match name {
        "PASSWORD" => Some(PASSWORD.to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    })
}

/// Returns true if the configuration refers to other files or to a host name, which would be
/// resolved.
fn reaches_out(text: &str) -> bool {
    fn names_a_file(table: &Table) -> bool {
        table.iter().any(|(key, value)| {
            matches!(key.as_str(), "file" | "url_file") || value.as_table().is_some_and(names_a_file)
        })
    }
    let Ok(table) = text.parse::<Table>() else {
        return false;
    };
    let bind = table.get("server").and_then(|s| s.get("bind")).and_then(Toml::as_str);
    let resolves = bind.is_some_and(|b| b.contains(':') && b.parse::<std::net::SocketAddr>().is_err());
    names_a_file(&table) || resolves
}

/// Returns the URL in a line `url = "…"`, if the text contains this URL only once; the rest of the
/// text may be invalid.
fn url_literal(text: &str) -> Option<&str> {
    if text.contains("\"\"\"") || text.contains("'''") {
        return None;
    }
    let start = text.find("\nurl = \"")? + 8;
    let url = text[start..].split(['"', '\n', '\\']).next()?;
    (url.len() >= 12 && text.matches(url).count() == 1).then_some(url)
}

/// Returns all values of a configuration as text.
fn seen(config: &Config) -> String {
    let targets: Vec<&str> = config.databases.iter().map(|d| d.target.expose()).collect();
    format!("{config:?} {targets:?}")
}

fn defaults_are_allowed(p: &Parameter) -> bool {
    match (&p.default, &p.default_text) {
        (Some(default), Some(text)) => p.value_of(text).as_ref() == Ok(default),
        (Some(default), None) => *default == Value::Null,
        (None, text) => text.is_none(),
    }
}

fn write(config: &Config) -> String {
    let s = &config.server;
    let mut out = format!(
        "[server]\nbind = {}\ntitle = {}\ndescription = {}\nhosts = {}\ndebug = {}\n",
        escaped(&s.bind),
        string(&s.title),
        string(&s.description),
        Toml::from(s.hosts.clone()),
        s.debug
    );
    for d in &config.databases {
        let errors = match d.text_policy {
            Policy::Replace => "replace",
            _ => "strict",
        };
        out.push_str(&format!(
            "[databases.{}]\nurl = {}\nmax_concurrent = {}\nconnect_timeout_s = {}\nerrors = \"{errors}\"\n",
            string(&d.name),
            escaped(d.target.expose()),
            d.max_concurrent,
            d.connect_timeout_s,
        ));
    }
    for q in &config.queries {
        out.push_str(&format!(
            "[queries.{}]\ndescription = {}\ndatabase = {}\nsql = {}\ntime_limit_s = {}\n",
            string(&q.name),
            string(&q.description),
            string(&config.databases[q.database].name),
            string(&q.sql),
            q.time_limit.as_secs()
        ));
        for p in &q.parameters {
            out.push_str(&format!("parameters.{} = {}\n", string(&p.name), parameter(p)));
        }
    }
    out
}

fn parameter(p: &Parameter) -> Toml {
    let mut table = Table::new();
    let mut put = |key: &str, value: Toml| table.insert(key.to_owned(), value);
    put("type", p.parameter_type.name().into());
    put("description", p.description.clone().into());
    if let Some(example) = &p.example {
        put("example", example.clone().into());
    }
    match (&p.default, &p.default_text) {
        (_, Some(text)) => drop(put("default", text.clone().into())),
        (Some(_), None) => drop(put("required", false.into())),
        (None, None) => drop(put("required", true.into())),
    }
    for (key, bound) in [("min", &p.min), ("max", &p.max)] {
        if let Some(bound) = bound {
            put(key, bound.text.clone().into());
        }
    }
    if let Some(n) = p.max_length {
        put("max_length", (n as i64).into());
    }
    if !p.values.is_empty() {
        let texts: Vec<Toml> = p.values.iter().map(|b| b.text.clone().into()).collect();
        put("values", texts.into());
    }
    if p.allow_empty {
        put("allow_empty", true.into());
    }
    Toml::Table(table)
}

fn string(text: &str) -> Toml {
    text.into()
}

/// Returns a string whose `${` is escaped, for keys in which variables are expanded.
fn escaped(text: &str) -> Toml {
    text.replace("${", "$${").into()
}
