//! [`Conditions`] and [`EntityTag`]: the evaluation of conditional requests (RFC 9110, section 13).

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::field::trim;

/// An entity tag, which identifies a version of a representation (RFC 9110, section 8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// `true` for a weak tag. Two representations with the same weak tag are equivalent, but their
    /// bytes may differ.
    pub is_weak: bool,
    /// The characters of the tag between its quotes.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Parses `text` as exactly one entity tag. Returns `None` if it is not an entity tag.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Option<EntityTag<'a>> {
        match EntityTag::first(text) {
            Some((tag, b"")) => Some(tag),
            _ => None,
        }
    }

    /// Parses the entity tag at the start of `text`. Returns the tag and the remaining text.
    /// Returns `None` if `text` does not start with an entity tag.
    fn first(text: &'a [u8]) -> Option<(EntityTag<'a>, &'a [u8])> {
        // The prefix `W/` of a weak tag is case-sensitive.
        let (is_weak, quoted) = match text.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, text),
        };
        let quoted = quoted.strip_prefix(b"\"")?;
        let end = quoted.iter().position(|b| *b == b'"')?;
        let (opaque, rest) = (&quoted[..end], &quoted[end + 1..]);
        let is_tag = opaque.iter().all(|b| *b > b' ' && *b != 0x7F);
        is_tag.then_some((EntityTag { is_weak, opaque }, rest))
    }

    /// Compares two tags by the strong comparison (RFC 9110, section 8.8.3.2). It returns `true` if
    /// both tags are strong and equal, which means that the representations have the same bytes.
    #[must_use]
    pub fn is_strongly(&self, other: &EntityTag<'_>) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// Compares two tags by the weak comparison (RFC 9110, section 8.8.3.2). It returns `true` if
    /// the tags are equal apart from their weakness, which means that the representations are
    /// equivalent.
    #[must_use]
    pub fn is_weakly(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

/// The validators of the current representation of a resource, which responses carry in the fields
/// `ETag` and `Last-Modified`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Validators<'a> {
    /// The entity tag of the representation; `None` if the representation has no tag.
    pub tag: Option<EntityTag<'a>>,
    /// The time of the last change in whole seconds since 1970; `None` if it is unknown.
    pub modified: Option<u64>,
}

/// The fields of a request that make it conditional (such as `If-Match`), and its `Range` field.
#[derive(Clone, Debug, Default)]
pub struct Conditions<'a> {
    if_match: Option<Cow<'a, [u8]>>,
    if_none_match: Option<Cow<'a, [u8]>>,
    if_modified_since: SingleField<'a>,
    if_unmodified_since: SingleField<'a>,
    if_range: SingleField<'a>,
    range: SingleField<'a>,
}

/// The value of a header field that RFC 9110 permits only once in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SingleField<'a> {
    #[default]
    Absent,
    Given(&'a [u8]),
    /// The request contains this header field more than once, which RFC 9110 does not permit.
    Repeated,
}

/// The result of the evaluation of a request's conditions (RFC 9110, section 13.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The conditions permit the request, or there are none. The server performs the request.
    Proceed,
    /// The client's copy is current. The response has the status 304.
    NotModified,
    /// A condition is false. The response has the status 412.
    Failed,
}

impl<'a> SingleField<'a> {
    fn add(&mut self, value: &'a [u8]) {
        *self = match self {
            SingleField::Absent => SingleField::Given(value),
            _ => SingleField::Repeated,
        };
    }
}

impl<'a> Conditions<'a> {
    /// Collects the conditions from the header fields of a request.
    ///
    /// The values are borrowed. A list of entity tags is copied only if it is divided over several
    /// header fields.
    pub fn of<N: AsRef<[u8]>>(fields: impl IntoIterator<Item = (N, &'a [u8])>) -> Conditions<'a> {
        let mut conditions = Conditions::default();
        for (name, value) in fields {
            conditions.add(name.as_ref(), value);
        }
        conditions
    }

    fn add(&mut self, name: &[u8], value: &'a [u8]) {
        // The lengths are compared first, which excludes nearly all fields at low cost.
        let is = |expected: &[u8]| name.eq_ignore_ascii_case(expected);
        match name.len() {
            5 if is(b"range") => self.range.add(value),
            8 if is(b"if-match") => join(&mut self.if_match, value),
            8 if is(b"if-range") => self.if_range.add(value),
            13 if is(b"if-none-match") => join(&mut self.if_none_match, value),
            17 if is(b"if-modified-since") => self.if_modified_since.add(value),
            19 if is(b"if-unmodified-since") => self.if_unmodified_since.add(value),
            _ => {}
        }
    }

    /// Evaluates the conditions against the validators `now` of the current representation.
    /// `is_read` must be `true` for the methods GET and HEAD, and `false` for all other methods.
    #[must_use]
    pub fn verdict(&self, now: &Validators<'_>, is_read: bool) -> Verdict {
        if let Some(list) = &self.if_match {
            if !names(list, |tag| now.tag.is_some_and(|own| own.is_strongly(&tag))) {
                return Verdict::Failed;
            }
        } else if let (SingleField::Given(date), Some(modified)) =
            (self.if_unmodified_since, now.modified)
            && parse_date(date).is_some_and(|date| modified > date)
        {
            return Verdict::Failed;
        }
        if let Some(list) = &self.if_none_match {
            return match names(list, |tag| now.tag.is_some_and(|own| own.is_weakly(&tag))) {
                true if is_read => Verdict::NotModified,
                true => Verdict::Failed,
                false => Verdict::Proceed,
            };
        }
        if let (SingleField::Given(date), Some(modified), true) =
            (self.if_modified_since, now.modified, is_read)
            && parse_date(date).is_some_and(|date| modified <= date)
        {
            return Verdict::NotModified;
        }
        Verdict::Proceed
    }

    /// Returns the value of the `Range` field if it applies; otherwise `None`. The `Range` field
    /// applies if `If-Range` is absent, or confirms that the client's copy is current (RFC 9110,
    /// section 13.1.5). A date in `If-Range` confirms this only if it is equal to the time of the
    /// last change and earlier than `now_s`, the current time in whole seconds since 1970.
    #[must_use]
    pub fn range(&self, now: &Validators<'_>, now_s: u64) -> Option<&'a [u8]> {
        let SingleField::Given(range) = self.range else {
            return None;
        };
        let holds = match self.if_range {
            SingleField::Absent => true,
            SingleField::Repeated => false,
            SingleField::Given(value) => match (EntityTag::parse(value), parse_date(value)) {
                (Some(tag), _) => now.tag.is_some_and(|own| own.is_strongly(&tag)),
                (None, Some(date)) => now.modified == Some(date) && date < now_s,
                (None, None) => false,
            },
        };
        holds.then_some(range)
    }
}

/// Appends a comma and `value`, the value of a further header field of the same name, to `list`
/// (RFC 9110, section 5.3).
fn join<'a>(list: &mut Option<Cow<'a, [u8]>>, value: &'a [u8]) {
    match list {
        None => *list = Some(Cow::Borrowed(value)),
        Some(list) => {
            let list = list.to_mut();
            list.extend_from_slice(b", ");
            list.extend_from_slice(value);
        }
    }
}

/// Returns `true` if a list of entity tags is `*`, or if it contains a tag for which `is_one`
/// returns `true`. Returns `false` if the list is malformed.
fn names(list: &[u8], is_one: impl Fn(EntityTag<'_>) -> bool) -> bool {
    let mut rest = trim(list);
    if rest == b"*" {
        return true;
    }
    let mut found = false;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(b",") {
            rest = trim(after);
            continue;
        }
        let Some((tag, after)) = EntityTag::first(rest) else {
            return false;
        };
        found |= is_one(tag);
        rest = trim(after);
        if !rest.is_empty() && !rest.starts_with(b",") {
            return false;
        }
    }
    found
}

/// Parses a date in one of the three HTTP formats (RFC 9110, section 5.6.7), and returns it in
/// seconds since 1970. Returns `None` for text in another format, and for a date before 1970.
#[must_use]
pub fn parse_date(text: &[u8]) -> Option<u64> {
    let date = httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()?;
    date.duration_since(UNIX_EPOCH)
        .ok()
        .map(|since| since.as_secs())
}

/// Formats a time, given in seconds since 1970, as an HTTP date such as
/// `Sun, 06 Nov 1994 08:49:37 GMT`.
#[must_use]
pub fn date_text(seconds: u64) -> String {
    // The year of an HTTP date has four digits, so later times are replaced by the end of the year
    // 9999.
    let most = Duration::from_secs(253_402_300_799);
    let date: SystemTime = UNIX_EPOCH + Duration::from_secs(seconds).min(most);
    httpdate::fmt_http_date(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const SECOND: u64 = 784_111_777;

    fn now() -> Validators<'static> {
        Validators {
            tag: EntityTag::parse(b"\"a\""),
            modified: Some(SECOND),
        }
    }

    fn verdict(fields: &[(&str, &str)], is_read: bool) -> Verdict {
        let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes()));
        Conditions::of(fields).verdict(&now(), is_read)
    }

    fn applies(fields: &[(&str, &str)], now_s: u64) -> bool {
        let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes()));
        Conditions::of(fields).range(&now(), now_s).is_some()
    }

    #[test]
    fn tags_are_compared_as_the_standard_has_it() {
        // The examples in the table of RFC 9110, section 8.8.3.2.
        let tag = |text: &'static str| EntityTag::parse(text.as_bytes()).unwrap();
        for (a, b, strongly, weakly) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            assert_eq!(tag(a).is_strongly(&tag(b)), strongly);
            assert_eq!(tag(a).is_weakly(&tag(b)), weakly);
        }
        for bad in [
            "",
            "a",
            "\"a",
            "a\"",
            "w/\"a\"",
            "\"a b\"",
            "\"a\"\"b\"",
            "W/a",
            "'a'",
            "\"a\" ",
            "\"\u{7f}\"",
        ] {
            assert_eq!(EntityTag::parse(bad.as_bytes()), None, "{bad:?}");
        }
        assert!(EntityTag::parse(b"\"\"").is_some() && EntityTag::parse(b"\"\xE9,x\"").is_some());
    }

    #[test]
    fn if_none_match_goes_before_the_date() {
        use Verdict::{Failed, NotModified, Proceed};
        for (value, is_read, expected) in [
            ("\"a\"", true, NotModified),
            ("W/\"a\"", true, NotModified),
            ("\"b\", \"a\"", true, NotModified),
            ("*", true, NotModified),
            ("\"a\"", false, Failed),
            ("\"b\"", true, Proceed),
            ("a", true, Proceed),
            ("\"a\" \"b\"", true, Proceed),
            ("\"a\", b", true, Proceed),
        ] {
            let fields = [("If-None-Match", value), ("If-Modified-Since", DATE)];
            assert_eq!(verdict(&fields, is_read), expected, "{value}");
        }
        let two = [("If-None-Match", "\"b\""), ("if-none-match", "\"a\"")];
        assert_eq!(verdict(&two, true), NotModified);
    }

    #[test]
    fn if_match_wants_the_same_bytes() {
        for (value, holds) in [
            ("\"a\"", true),
            ("*", true),
            ("W/\"a\"", false),
            ("\"b\"", false),
            ("", false),
        ] {
            let fields = [
                ("If-Match", value),
                ("If-Unmodified-Since", "Sun, 06 Nov 1970 08:49:37 GMT"),
            ];
            assert_eq!(verdict(&fields, true) == Verdict::Proceed, holds, "{value}");
        }
    }

    #[test]
    fn dates_count_where_no_tags_are_given() {
        use Verdict::{Failed, NotModified, Proceed};
        let (before, after) = (
            "Sun, 06 Nov 1994 08:49:36 GMT",
            "Sunday, 06-Nov-94 08:49:38 GMT",
        );
        for (name, value, expected) in [
            ("If-Modified-Since", before, Proceed),
            ("If-Modified-Since", DATE, NotModified),
            ("If-Modified-Since", after, NotModified),
            ("If-Modified-Since", "Sun Nov  6 08:49:37 1994", NotModified),
            ("If-Modified-Since", "yesterday", Proceed),
            ("If-Unmodified-Since", before, Failed),
            ("If-Unmodified-Since", DATE, Proceed),
            ("If-Unmodified-Since", after, Proceed),
            ("If-Unmodified-Since", "784111776", Proceed),
        ] {
            assert_eq!(verdict(&[(name, value)], true), expected, "{name}: {value}");
        }
        assert_eq!(verdict(&[("If-Modified-Since", DATE)], false), Proceed);
        assert_eq!(
            verdict(
                &[("If-Modified-Since", DATE), ("If-Modified-Since", DATE)],
                true
            ),
            Proceed
        );
    }

    #[test]
    fn if_range_takes_the_very_bytes_alone() {
        let range = ("Range", "bytes=0-1");
        for (value, holds) in [
            ("\"a\"", true),
            ("W/\"a\"", false),
            ("\"b\"", false),
            ("*", false),
            ("", false),
            ("a", false),
            (DATE, true),
            ("Sun, 06 Nov 1994 08:49:38 GMT", false),
            ("Sun, 06 Nov 1994 08:49:36 GMT", false),
            ("\"a\", \"b\"", false),
        ] {
            assert_eq!(
                applies(&[range, ("If-Range", value)], SECOND + 1),
                holds,
                "{value}"
            );
        }
        assert!(
            !applies(&[range, ("If-Range", DATE)], SECOND),
            "it may change in this second still"
        );
        assert!(
            applies(&[range], SECOND) && !applies(&[], SECOND) && !applies(&[range, range], SECOND)
        );
        assert!(!applies(
            &[range, ("If-Range", "\"a\""), ("If-Range", "\"a\"")],
            SECOND
        ));
    }

    #[test]
    fn dates_are_written_as_they_are_read() {
        assert_eq!(date_text(SECOND), DATE);
        assert_eq!(parse_date(DATE.as_bytes()), Some(SECOND));
        assert_eq!(parse_date(date_text(0).as_bytes()), Some(0));
        assert!(date_text(u64::MAX).contains(" 9999 "));
    }
}
