//! [`bind`] parses a query string into the values for a query's placeholders, and reports every
//! problem.

use std::borrow::Cow;

use onecopy_rows::Value;

use crate::config::Query;

/// A problem with one parameter of a request, which the response lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// The name of the parameter in the request, truncated to 100 characters.
    pub parameter: String,
    /// The message, as the end of a sentence that starts with the parameter's name. It does not
    /// contain the value.
    pub detail: String,
}

/// The largest number of problems that are reported for one request, because a request may have
/// thousands of parameters.
const MAX_PROBLEMS: usize = 20;

/// Parses the query string of a request. Returns a value for each `?` in the SQL of `query`, in
/// their order.
///
/// # Errors
/// A problem for each parameter that is wrong, missing, unknown, repeated or badly encoded. At most
/// twenty problems are returned.
pub fn bind(query: &Query, query_string: Option<&str>) -> Result<Vec<Value>, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut given: Vec<Option<Value>> = vec![None; query.parameters.len()];
    let mut seen = vec![false; query.parameters.len()];
    let pairs = query_string.unwrap_or("").split('&');
    for pair in pairs.filter(|p| !p.is_empty()) {
        if problems.len() >= MAX_PROBLEMS {
            return Err(problems);
        }
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        let mut wrong = |name: &str, detail: String| {
            problems.push(FieldProblem {
                parameter: name.chars().take(100).collect(),
                detail,
            });
        };
        let name = match decode(name) {
            Ok(name) => name,
            Err(why) => {
                wrong(name, format!("has a name that {why}"));
                continue;
            }
        };
        let Some(i) = query.parameters.iter().position(|p| p.name == name) else {
            wrong(&name, unknown(query));
            continue;
        };
        if std::mem::replace(&mut seen[i], true) {
            wrong(&name, "is given more than once".to_owned());
            continue;
        }
        let parameter = &query.parameters[i];
        match decode(text) {
            Ok(text) if text.is_empty() && !parameter.allow_empty => {}
            Ok(text) => match parameter.value_of(&text) {
                Ok(value) => given[i] = Some(value),
                Err(detail) => wrong(&name, detail),
            },
            Err(why) => wrong(&name, format!("has a value that {why}")),
        }
    }
    for (i, parameter) in query.parameters.iter().enumerate() {
        let reported = problems.iter().any(|p| p.parameter == parameter.name);
        if given[i].is_none() && !reported {
            match &parameter.default {
                Some(default) => given[i] = Some(default.clone()),
                None => problems.push(FieldProblem {
                    parameter: parameter.name.clone(),
                    detail: format!("is required: {}", parameter.parameter_type.wanted()),
                }),
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let values: Vec<Value> = given.into_iter().flatten().collect();
    Ok(query.bindings.iter().map(|&i| values[i].clone()).collect())
}

fn unknown(query: &Query) -> String {
    if query.parameters.is_empty() {
        return "is unknown: this query has no parameters".to_owned();
    }
    let names: Vec<String> = query
        .parameters
        .iter()
        .map(|p| format!("`{}`", p.name))
        .collect();
    format!("is unknown: this query has {}", names.join(", "))
}

/// Decodes `application/x-www-form-urlencoded`: `+` denotes a space, and `%XX` a byte. The bytes
/// must be UTF-8.
fn decode(text: &str) -> Result<String, &'static str> {
    let bytes = text.as_bytes();
    let hex = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_hexdigit);
    for (i, _) in text.match_indices('%') {
        if !(hex(i + 1) && hex(i + 2)) {
            return Err("has a `%` without two hexadecimal digits (write `%` as `%25`)");
        }
    }
    let spaced = match text.contains('+') {
        true => Cow::Owned(text.replace('+', " ")),
        false => Cow::Borrowed(text),
    };
    percent_encoding::percent_decode_str(&spaced)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| "is not UTF-8")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Config;

    fn query() -> Query {
        let text = "[databases.d]\nurl = \"sqlite:a.db\"\n[queries.q]\nsql = \"select :b, :a, :b, :c, :d\"\n\
                    parameters.a = \"int\"\nparameters.b = { type = \"text\", default = \"x\" }\n\
                    parameters.c = { type = \"float\", required = false }\n\
                    parameters.d = { type = \"text\", allow_empty = true, default = \"y\" }\n";
        Config::parse(text, Path::new("c.toml"), &|_| None)
            .unwrap()
            .queries
            .remove(0)
    }

    fn problems(query_string: &str) -> Vec<String> {
        bind(&query(), Some(query_string))
            .unwrap_err()
            .into_iter()
            .map(|p| format!("{} {}", p.parameter, p.detail))
            .collect()
    }

    fn text(s: &str) -> Value {
        Value::Text(s.to_owned())
    }

    #[test]
    fn values_stand_in_the_order_of_the_placeholders() {
        assert_eq!(
            bind(&query(), Some("a=5&b=S%C3%A3o+Paulo%2B&&c=")).unwrap(),
            [
                text("São Paulo+"),
                Value::I64(5),
                text("São Paulo+"),
                Value::Null,
                text("y")
            ]
        );
        assert_eq!(bind(&query(), Some("a=5&b=&d=")).unwrap()[4], text(""));
        assert_eq!(bind(&query(), Some("a=5&d")).unwrap()[4], text(""));
    }

    #[test]
    fn each_fault_is_told_with_its_field() {
        assert_eq!(
            problems("a=5x&A=1&b=1&b=2&c=%zz&d=%ff"),
            [
                "a must be an integer of 64 bit, such as `42`",
                "A is unknown: this query has `a`, `b`, `c`, `d`",
                "b is given more than once",
                "c has a value that has a `%` without two hexadecimal digits (write `%` as `%25`)",
                "d has a value that is not UTF-8",
            ]
        );
        assert_eq!(
            problems(""),
            ["a is required: an integer of 64 bit, such as `42`"]
        );
        assert_eq!(problems("a="), problems(""));
        assert_eq!(problems("a=1&%ff=2"), ["%ff has a name that is not UTF-8"]);
        assert!(problems("a=1%").first().unwrap().contains("`%25`"));
    }

    #[test]
    fn a_flood_of_unknown_fields_is_told_in_part() {
        assert_eq!(problems(&"x=1&".repeat(5000)).len(), MAX_PROBLEMS);
    }

    proptest::proptest! {
        #[test]
        fn any_text_comes_back_as_it_was_encoded(value in "\\PC{1,40}", plus in proptest::bool::ANY) {
            let encoded = percent_encoding::utf8_percent_encode(&value, percent_encoding::NON_ALPHANUMERIC);
            let mut encoded = encoded.to_string();
            if plus {
                encoded = encoded.replace("%20", "+");
            }
            let values = bind(&query(), Some(&format!("a=1&b={encoded}"))).unwrap();
            proptest::prop_assert_eq!(&values[0], &Value::Text(value));
        }

        #[test]
        fn any_query_string_is_bound_or_refused(raw in "[abcd=&%+0-9xf\\x00é]{0,60}") {
            if let Err(problems) = bind(&query(), Some(&raw)) {
                proptest::prop_assert!(!problems.is_empty());
            }
        }
    }
}
