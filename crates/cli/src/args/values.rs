//! Parsers for the values of options that several commands have.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use onecopy_text::Policy;

/// The policies that `--errors` accepts for malformed text in a database or a document, each with
/// its description in the help.
pub(crate) const ROW_POLICIES: &[(Policy, &str)] = &[
    (Policy::Strict, "Fail, and report the position"),
    (Policy::Replace, "Replace it with U+FFFD"),
];

/// Returns a parser of `--errors` that accepts the names of the policies in `of`. The help displays
/// each policy with its description.
pub(crate) fn policies(of: &'static [(Policy, &str)]) -> impl TypedValueParser<Value = Policy> {
    let values = of
        .iter()
        .map(|(policy, help)| PossibleValue::new(policy.name()).help(*help));
    PossibleValuesParser::new(values).try_map(|name| Policy::of_name(&name, &Policy::ALL))
}

/// Parses a number of seconds above 0, at most one day. The number may have a fraction.
pub(crate) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(std::time::Duration::from_secs_f64(seconds))
    } else {
        Err("must be above 0 and at most 86400".to_owned())
    }
}
