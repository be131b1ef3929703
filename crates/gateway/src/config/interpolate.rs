//! [`interpolate`] replaces `${NAME}` and `${NAME:-default}` in values of the configuration with
//! the values of environment variables.

/// Replaces every `${NAME}` in a text by the value of the environment variable `NAME`. `$${`
/// denotes a literal `${`.
///
/// # Errors
/// The message names a variable that is not set, or reports a `${` without a closing `}`. The
/// message never contains the surrounding text, which may be a password.
pub(super) fn interpolate(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(i) = rest.find("${") {
        if let Some(before) = rest[..i].strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &rest[i + 2..];
            continue;
        }
        out.push_str(&rest[..i]);
        let inner = &rest[i + 2..];
        let end = inner
            .find('}')
            .ok_or("a `${` has no `}`\nwrite `$${` for the characters themselves")?;
        let (name, default) = match inner[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inner[..end], None),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err("`${…}` must contain the name of an environment variable".to_owned());
        }
        match (
            env(name).filter(|v| default.is_none() || !v.is_empty()),
            default,
        ) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the environment variable `{name}` is not set\n\
                     set it, or give a default: `${{{name}:-…}}`"
                ));
            }
        }
        rest = &inner[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<String, String> {
        interpolate(text, &|name| match name {
            "HOST" => Some("db".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_and_their_defaults_are_put_in() {
        assert_eq!(run("a ${HOST}:${PORT:-5432} b").unwrap(), "a db:5432 b");
        assert_eq!(run("${EMPTY:-x}${EMPTY}").unwrap(), "x");
        assert_eq!(run("$${HOST} $5 $").unwrap(), "${HOST} $5 $");
    }

    #[test]
    fn an_unset_variable_is_named_and_the_rest_is_not() {
        let error = run("Pwd=secret;Server=${SERVER}").unwrap_err();
        assert!(error.contains("`SERVER` is not set"), "{error}");
        assert!(!error.contains("secret"));
        assert!(run("${HOST").is_err());
        assert!(run("${a b}").is_err());
    }
}
