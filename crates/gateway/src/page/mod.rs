//! The page at `/`: the queries with their parameters, each with a form and a `curl` line. The page
//! uses no script and no external resources.

use std::fmt::Write;

use onecopy_rows::Value;
use onecopy_serve::Response;

use crate::config::{Config, Query};
use crate::formats::FORMATS;
use crate::json::Builder;
use crate::parameters::{Parameter, ParameterType};
use crate::problem::{header, with_common_headers};

/// The path of the page's style sheet.
pub(crate) const STYLE_PATH: &str = "/-/page.css";

/// Returns `true` if the `Accept` field of a request contains `application/json` and not
/// `text/html`. A client that accepts any media type gets the HTML page.
pub(crate) fn wants_json(accept: Option<&[u8]>) -> bool {
    let accept = String::from_utf8_lossy(accept.unwrap_or(b"")).to_ascii_lowercase();
    let mut types = accept
        .split(',')
        .map(|part| part.split(';').next().unwrap_or("").trim());
    let mut json = false;
    let html = types.any(|t| {
        json |= t == "application/json";
        t == "text/html"
    });
    json && !html
}

/// Returns a response with the style sheet, which browsers may cache.
pub(crate) fn style() -> Response {
    let response = Response::new(200)
        .content_type("text/css; charset=utf-8")
        .body(include_str!("style.css"));
    let response = header(response, "Cache-Control", "max-age=3600");
    header(response, "X-Content-Type-Options", "nosniff")
}

/// Returns a response that lists the queries and their parameters as JSON.
pub(crate) fn list(config: &Config) -> Response {
    let mut json = Builder::new();
    json.open('{');
    text_member(&mut json, "title", &config.server.title);
    text_member(&mut json, "description", &config.server.description);
    json.key("queries");
    json.open('[');
    for query in &config.queries {
        json.open('{');
        text_member(&mut json, "name", &query.name);
        text_member(&mut json, "description", &query.description);
        json.key("formats");
        json.open('{');
        for (end, ..) in FORMATS {
            text_member(&mut json, end, &format!("/{}.{end}", query.name));
        }
        json.close('}');
        json.key("parameters");
        json.open('[');
        for parameter in &query.parameters {
            list_parameter(&mut json, parameter);
        }
        json.close(']');
        json.close('}');
    }
    json.close(']');
    json.close('}');
    let response = with_common_headers(
        Response::new(200)
            .content_type("application/json")
            .body(json.finish()),
    );
    header(response, "Vary", "Accept")
}

fn text_member(json: &mut Builder, key: &str, value: &str) {
    json.key(key);
    json.string(value);
}

fn list_parameter(json: &mut Builder, parameter: &Parameter) {
    json.open('{');
    text_member(json, "name", &parameter.name);
    text_member(json, "type", parameter.parameter_type.name());
    json.key("required");
    json.raw(if parameter.is_required() {
        "true"
    } else {
        "false"
    });
    let bound = |b: &Option<crate::parameters::Bound>| b.as_ref().map(|b| b.text.clone());
    for (key, value) in [
        ("default", parameter.default_text.clone()),
        ("min", bound(&parameter.min)),
        ("max", bound(&parameter.max)),
        ("example", parameter.example.clone()),
    ] {
        if let Some(value) = value {
            text_member(json, key, &value);
        }
    }
    if let Some(n) = parameter.max_length {
        json.key("max_length");
        json.raw(&n.to_string());
    }
    if !parameter.values.is_empty() {
        json.key("values");
        json.open('[');
        for value in &parameter.values {
            json.string(&value.text);
        }
        json.close(']');
    }
    text_member(json, "description", &parameter.description);
    json.close('}');
}

/// Returns a response with the HTML page. `host` is the host and port in its `curl` lines.
pub(crate) fn html(config: &Config, host: &str) -> Response {
    let mut out = String::with_capacity(4096);
    // Writing to a `String` never fails.
    let _ = write_page(&mut out, config, host);
    let response = with_common_headers(
        Response::new(200)
            .content_type("text/html; charset=utf-8")
            .body(out),
    );
    let response = header(
        response,
        "Content-Security-Policy",
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'",
    );
    let response = header(response, "Referrer-Policy", "no-referrer");
    header(response, "Vary", "Accept")
}

fn write_page(out: &mut String, config: &Config, host: &str) -> std::fmt::Result {
    let title = Html(&config.server.title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"{STYLE_PATH}\">\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n"
    )?;
    for paragraph in paragraphs(&config.server.description) {
        writeln!(out, "<p>{}</p>", Prose(paragraph))?;
    }
    out.push_str("</header>\n<main>\n");
    match config.queries.as_slice() {
        [] => writeln!(
            out,
            "<p>No query is named yet. Add <code>[queries.NAME]</code> to the configuration.</p>"
        )?,
        [_] => {}
        many => {
            out.push_str("<nav aria-label=\"Queries\">\n");
            for query in many {
                writeln!(out, "<a href=\"#{0}\">{0}</a>", Html(&query.name))?;
            }
            out.push_str("</nav>\n");
        }
    }
    for query in &config.queries {
        write_query(out, config, query, host)?;
    }
    write!(
        out,
        "</main>\n<footer><p>Each query as <code>.json</code>, <code>.ndjson</code> or <code>.csv</code>, streamed. \
         An answer is complete when its last chunk came, with the trailer <code>onecopy-status: ok</code>; \
         otherwise the connection breaks.</p>\n<p>Served by onecopy {}.</p></footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(str::trim).filter(|p| !p.is_empty())
}

fn write_query(out: &mut String, config: &Config, query: &Query, host: &str) -> std::fmt::Result {
    let name = Html(&query.name);
    writeln!(
        out,
        "<section id=\"{name}\" aria-labelledby=\"{name}-title\">"
    )?;
    writeln!(out, "<h2 id=\"{name}-title\">{name}</h2>")?;
    for paragraph in paragraphs(&query.description) {
        writeln!(out, "<p>{}</p>", Prose(paragraph))?;
    }
    writeln!(out, "<form method=\"get\" action=\"/{name}.json\">")?;
    if !query.parameters.is_empty() {
        out.push_str("<div class=\"fields\">\n");
        for parameter in &query.parameters {
            write_field(out, query, parameter)?;
        }
        out.push_str("</div>\n");
    }
    out.push_str("<div class=\"formats\">\n");
    for (end, ..) in FORMATS {
        writeln!(
            out,
            "<button formaction=\"/{name}.{end}\">{}</button>",
            end.to_uppercase()
        )?;
    }
    out.push_str("</div>\n</form>\n");
    writeln!(
        out,
        "<pre class=\"curl\" tabindex=\"0\"><code>{}</code></pre>",
        Html(&curl(query, host))
    )?;
    if config.server.debug {
        writeln!(
            out,
            "<details><summary>SQL</summary><pre tabindex=\"0\"><code>{}</code></pre></details>",
            Html(&query.sql)
        )?;
    }
    out.push_str("</section>\n");
    Ok(())
}

fn write_field(out: &mut String, query: &Query, parameter: &Parameter) -> std::fmt::Result {
    let id = format!("{}-{}", query.name, parameter.name);
    let id = Html(&id);
    let name = Html(&parameter.name);
    let required = if parameter.is_required() {
        " required"
    } else {
        ""
    };
    write!(
        out,
        "<div class=\"field\">\n<label for=\"{id}\">{name} <span class=\"type\">{}</span></label>\n",
        parameter.parameter_type.name()
    )?;
    let shown = parameter
        .default_text
        .as_deref()
        .or(parameter.example.as_deref());
    let choices: Vec<&str> = match parameter.parameter_type {
        ParameterType::Bool if parameter.values.is_empty() => vec!["true", "false"],
        _ => parameter.values.iter().map(|v| v.text.as_str()).collect(),
    };
    if choices.is_empty() {
        write!(out, "<input id=\"{id}\" name=\"{name}\"{required}")?;
        if let Some(value) = shown {
            write!(out, " value=\"{}\"", Html(value))?;
        }
        if let Some(n) = parameter.max_length {
            write!(out, " maxlength=\"{n}\"")?;
        }
        let mode = match parameter.parameter_type {
            ParameterType::Int => " inputmode=\"numeric\"",
            ParameterType::Float | ParameterType::Decimal => " inputmode=\"decimal\"",
            _ => "",
        };
        writeln!(out, "{mode} autocomplete=\"off\" spellcheck=\"false\">")?;
    } else {
        writeln!(out, "<select id=\"{id}\" name=\"{name}\"{required}>")?;
        if !parameter.is_required() && parameter.default_text.is_none() {
            out.push_str("<option value=\"\">any</option>\n");
        }
        for choice in choices {
            let selected = if Some(choice) == shown {
                " selected"
            } else {
                ""
            };
            writeln!(out, "<option{selected}>{}</option>", Html(choice))?;
        }
        out.push_str("</select>\n");
    }
    let hint = hint(parameter);
    if !hint.is_empty() {
        writeln!(out, "<p class=\"hint\">{}</p>", Prose(&hint))?;
    }
    out.push_str("</div>\n");
    Ok(())
}

/// Returns one line with the description and the limits of a parameter.
fn hint(parameter: &Parameter) -> String {
    let mut parts = Vec::new();
    if !parameter.description.is_empty() {
        parts.push(parameter.description.clone());
    }
    match (&parameter.min, &parameter.max) {
        (Some(min), Some(max)) => parts.push(format!("{} to {}", min.text, max.text)),
        (Some(min), None) => parts.push(format!("from {}", min.text)),
        (None, Some(max)) => parts.push(format!("up to {}", max.text)),
        (None, None) => {}
    }
    match &parameter.default {
        Some(Value::Null) => parts.push("optional".to_owned()),
        Some(_) => {
            let text = parameter.default_text.as_deref().unwrap_or_default();
            parts.push(format!("default {text}"));
        }
        None => {}
    }
    parts.join(" · ")
}

/// Returns a shell command that uses `curl` to request `query` from the server at `host`.
pub fn curl(query: &Query, host: &str) -> String {
    let mut url = format!("http://{host}/{}.json", query.name);
    let mut separator = '?';
    for parameter in &query.parameters {
        let value = match (&parameter.example, &parameter.default) {
            (Some(example), _) => example.clone(),
            (None, Some(_)) => continue,
            (None, None) => sample(parameter),
        };
        url.push(separator);
        separator = '&';
        url.push_str(&parameter.name);
        url.push('=');
        // All characters except letters and digits are percent-encoded, including quotes.
        let encoded =
            percent_encoding::utf8_percent_encode(&value, percent_encoding::NON_ALPHANUMERIC);
        url.push_str(&encoded.to_string().replace("%2D", "-").replace("%2E", "."));
    }
    format!("curl '{}'", url.replace('\'', "%27"))
}

/// Returns an example of a value that the parameter accepts.
fn sample(parameter: &Parameter) -> String {
    let bound = parameter
        .values
        .first()
        .or(parameter.min.as_ref())
        .or(parameter.max.as_ref());
    if let Some(bound) = bound {
        return bound.text.clone();
    }
    match parameter.parameter_type {
        ParameterType::Text => "text",
        ParameterType::Int => "1",
        ParameterType::Float | ParameterType::Decimal => "1.5",
        ParameterType::Bool => "true",
        ParameterType::Date => "2024-02-29",
        ParameterType::Time => "12:00",
        ParameterType::Timestamp => "2024-02-29T12:00:00",
        ParameterType::Uuid => "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    }
    .to_owned()
}

/// Formats a text as HTML: escapes the characters that are special in elements or in quoted
/// attributes.
struct Html<'a>(&'a str);

impl std::fmt::Display for Html<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Formats the text of a description as HTML. Special characters are escaped, and text in backticks
/// becomes a `code` element.
struct Prose<'a>(&'a str);

impl std::fmt::Display for Prose<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.0;
        while let Some((before, code, after)) = rest.split_once('`').and_then(|(before, tail)| {
            let (code, after) = tail.split_once('`')?;
            Some((before, code, after))
        }) {
            write!(f, "{}<code>{}</code>", Html(before), Html(code))?;
            rest = after;
        }
        write!(f, "{}", Html(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_given_where_it_is_named_and_html_is_not() {
        for (accept, json) in [
            (None, false),
            (Some("*/*"), false),
            (Some("application/json"), true),
            (Some("Application/JSON;q=0.9, */*"), true),
            (Some("text/html,application/json"), false),
        ] {
            assert_eq!(wants_json(accept.map(str::as_bytes)), json, "{accept:?}");
        }
    }

    #[test]
    fn prose_is_escaped_and_backticks_are_code() {
        assert_eq!(
            Prose("a <b> `c<d` e ` f").to_string(),
            "a &lt;b&gt; <code>c&lt;d</code> e ` f"
        );
    }

    #[test]
    fn curl_lines_hold_values_the_query_takes_and_no_quote() {
        let text = "[databases.d]\nurl = \"sqlite:a.db\"\n[queries.q]\nsql = \"select :a, :b, :c, :d\"\n\
                    parameters.a = { type = \"text\", example = \"O'Brien & São\" }\n\
                    parameters.b = { type = \"int\", min = 5 }\nparameters.c = \"date\"\n\
                    parameters.d = { type = \"int\", default = 3 }\n";
        let config = Config::parse(text, std::path::Path::new("c.toml"), &|_| None).unwrap();
        let line = curl(&config.queries[0], "127.0.0.1:8000");
        assert_eq!(
            line,
            "curl 'http://127.0.0.1:8000/q.json?a=O%27Brien%20%26%20S%C3%A3o&b=5&c=2024-02-29'"
        );
        let query_string = line.split_once('?').unwrap().1.trim_end_matches('\'');
        assert!(crate::query_string::bind(&config.queries[0], Some(query_string)).is_ok());
    }
}
