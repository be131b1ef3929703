//! [`bind`] converts the `--param` arguments of `onecopy query` to values for the placeholders of
//! the SQL.

use onecopy_gateway::parameters::ParameterType;
use onecopy_rows::Value;
use onecopy_rows::{Dialect, named};

/// Returns the SQL with `?` for each placeholder, and the values for these `?` in their order.
///
/// # Errors
/// The message names the parameter that is missing, unknown, given twice or not valid.
pub(crate) fn bind(
    sql: &str,
    params: &[String],
    dialect: Dialect,
) -> Result<(String, Vec<Value>), String> {
    let named = match named::positional(sql, dialect) {
        // The lexer may misinterpret the SQL of an unknown database. Without named parameters the
        // SQL is passed on unchanged.
        _ if params.is_empty() && dialect == Dialect::Generic => {
            return Ok((sql.to_owned(), Vec::new()));
        }
        Err(_) if params.is_empty() => return Ok((sql.to_owned(), Vec::new())),
        result => result.map_err(|error| error.message)?,
    };
    if named.names.is_empty() {
        let values = params.iter().map(|p| value(p)).collect::<Result<_, _>>()?;
        return Ok((sql.to_owned(), values));
    }
    let mut given: Vec<(&str, Value)> = Vec::new();
    for param in params {
        let Some((name, text)) = param.split_once('=') else {
            return Err(format!(
                "the SQL names its parameters, so `--param` needs a name\nwrite --param {}=VALUE",
                named.names[0]
            ));
        };
        if !named.names.iter().any(|n| n == name) {
            return Err(format!(
                "the SQL has no parameter `:{name}`\nit has {}",
                list(&named.names)
            ));
        }
        if given.iter().any(|(n, _)| *n == name) {
            return Err(format!("`--param {name}=…` is given more than once"));
        }
        given.push((name, value(text)?));
    }
    let mut values = Vec::with_capacity(named.names.len());
    let mut missing: Vec<String> = Vec::new();
    for name in &named.names {
        match given.iter().find(|(n, _)| n == name) {
            Some((_, value)) => values.push(value.clone()),
            None if missing.contains(name) => {}
            None => missing.push(name.clone()),
        }
    }
    if !missing.is_empty() {
        return Err(format!(
            "no value is given for {}\nwrite --param {}=VALUE",
            list(&missing),
            missing[0]
        ));
    }
    Ok((named.sql, values))
}

fn list(names: &[String]) -> String {
    let mut shown: Vec<String> = Vec::new();
    for name in names.iter().map(|n| format!("`:{n}`")) {
        if !shown.contains(&name) {
            shown.push(name);
        }
    }
    shown.join(", ")
}

/// Converts the text of a `--param` argument to a value. The type of the value follows from the
/// prefix or the form of the text.
fn value(text: &str) -> Result<Value, String> {
    if text == "null:" {
        return Ok(Value::Null);
    }
    if let Some((prefix, rest)) = text.split_once(':')
        && let Some(t) = ParameterType::of_name(prefix)
    {
        return t
            .parse(rest)
            .ok_or_else(|| format!("`{prefix}:` must be followed by {}", t.wanted()));
    }
    if is_json_number(text) {
        return Ok(number(text));
    }
    ParameterType::Text
        .parse(text)
        .ok_or_else(|| format!("a parameter must be {}", ParameterType::Text.wanted()))
}

/// Returns `true` if `text` is a number of JSON (RFC 8259, section 6). Digits with a leading zero
/// or a plus sign are not a JSON number. They are probably a code, such as a postal code.
fn is_json_number(text: &str) -> bool {
    let is_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    is_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(|e| is_digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

/// Returns the value of a JSON number: an integer if the number fits into a signed 64-bit integer,
/// a float if the number has at most 15 digits after its leading zeros, otherwise a decimal.
fn number(text: &str) -> Value {
    /// The largest number of digits that every decimal number keeps if it is converted to the
    /// closest float and back.
    const EXACT_DIGITS: usize = 15;
    if let Ok(n) = text.parse::<i64>() {
        return Value::I64(n);
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.trim_start_matches(['-', '0', '.']);
    let n_digits = digits.bytes().filter(u8::is_ascii_digit).count();
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && n_digits <= EXACT_DIGITS => Value::F64(x),
        _ => Value::Decimal(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(list: &[&str]) -> Vec<String> {
        list.iter().map(|&s| s.to_owned()).collect()
    }

    fn text(s: &str) -> Value {
        Value::Text(s.to_owned())
    }

    #[test]
    fn looks_and_prefixes_decide_the_type() {
        for (given, expected) in [
            ("5", Value::I64(5)),
            ("-5", Value::I64(-5)),
            ("05", text("05")),
            ("+5", text("+5")),
            ("2.5", Value::F64(2.5)),
            ("2.50", Value::F64(2.5)),
            ("-0.5", Value::F64(-0.5)),
            ("1e5", Value::F64(1e5)),
            ("2.5E-3", Value::F64(0.0025)),
            ("0", Value::I64(0)),
            ("-0.0", Value::F64(-0.0)),
            (
                "9223372036854775808",
                Value::Decimal("9223372036854775808".to_owned()),
            ),
            (
                "0.1234567890123456789",
                Value::Decimal("0.1234567890123456789".to_owned()),
            ),
            ("1e400", Value::Decimal("1e400".to_owned())),
            ("00.5", text("00.5")),
            (".5", text(".5")),
            ("5.", text("5.")),
            ("1e", text("1e")),
            ("-", text("-")),
            ("0x10", text("0x10")),
            ("1_000", text("1_000")),
            ("inf", text("inf")),
            ("", text("")),
            ("12:30", text("12:30")),
            ("text:5", text("5")),
            ("int:05", Value::I64(5)),
            ("null:", Value::Null),
            ("decimal:2.50", Value::Decimal("2.50".to_owned())),
            ("bool:true", Value::Bool(true)),
        ] {
            assert_eq!(value(given).unwrap(), expected, "{given}");
        }
        assert!(value("date:2024-02-30").unwrap_err().contains("2024-02-29"));
    }

    #[test]
    fn names_and_question_marks_are_bound_in_order() {
        let d = Dialect::Sqlite;
        let (sql, values) = bind("select :b, :a, :b", &params(&["a=1", "b=x=y"]), d).unwrap();
        assert_eq!(sql, "select ?, ?, ?");
        assert_eq!(values, [text("x=y"), Value::I64(1), text("x=y")]);
        let (sql, values) = bind("select ?, ':c'", &params(&["a=1"]), d).unwrap();
        assert_eq!(
            (sql.as_str(), values),
            ("select ?, ':c'", vec![text("a=1")])
        );
    }

    #[test]
    fn sql_that_the_lexer_does_not_know_is_left_to_the_database() {
        let odd = r"select 'it\'s :a'";
        assert!(bind(odd, &params(&["a=1"]), Dialect::Sqlite).is_err());
        for dialect in [Dialect::Sqlite, Dialect::Generic] {
            assert_eq!(bind(odd, &[], dialect).unwrap().0, odd);
        }
        assert_eq!(
            bind("select a[:n]", &[], Dialect::Generic).unwrap().0,
            "select a[:n]"
        );
    }

    #[test]
    fn wrong_names_are_told_with_the_right_ones() {
        let d = Dialect::Sqlite;
        let problem = |list: &[&str]| bind("select :a, :b, :a", &params(list), d).unwrap_err();
        assert!(problem(&["a=1"]).contains("no value is given for `:b`"));
        assert!(problem(&["1"]).contains("write --param a=VALUE"));
        assert!(problem(&["c=1"]).contains("it has `:a`, `:b`"));
        assert!(problem(&["a=1", "a=2"]).contains("more than once"));
    }
}
