//! Ranges and multiranges in PostgreSQL's text form: `[1,5)`, `(,"2024-01-01 00:00:00"]`, `empty`,
//! `{[1,5),[7,9)}`.
//!
//! Source: PostgreSQL's documentation, "Range Types", input and output.

use onecopy_text::Units;

use crate::array;
use crate::cell::{Cell, RangeText};

/// The bounds of a range, as parsed from its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeCells<'a> {
    /// The lower bound; NULL if the range has none.
    pub lower: Cell<'a>,
    /// The upper bound; NULL if the range has none.
    pub upper: Cell<'a>,
    /// `true` if the lower bound belongs to the range.
    pub includes_lower: bool,
    /// `true` if the upper bound belongs to the range.
    pub includes_upper: bool,
    /// `true` for the range `empty`, which contains no value.
    pub is_empty: bool,
}

const EMPTY: RangeCells<'static> = RangeCells {
    lower: Cell::Null,
    upper: Cell::Null,
    includes_lower: false,
    includes_upper: false,
    is_empty: true,
};

impl<'a> RangeText<'a> {
    /// Parses the text. Returns one range, or all ranges of a multirange; `None` if the text is
    /// invalid.
    #[must_use]
    pub fn parse(&self) -> Option<Vec<RangeCells<'a>>> {
        if !self.is_multi {
            let (range, rest) = self.range(self.text)?;
            return rest.is_empty().then(|| vec![range]);
        }
        let mut text = self.text.strip_prefix(b"{")?.strip_suffix(b"}")?;
        let mut ranges = Vec::new();
        while !text.is_empty() {
            let (range, rest) = self.range(text)?;
            ranges.push(range);
            text = match rest {
                [] => rest,
                [b',', rest @ ..] if !rest.is_empty() => rest,
                _ => return None,
            };
        }
        Some(ranges)
    }

    /// Returns `true` if a bound is a date or timestamp outside the years 1 to 9999.
    #[must_use]
    pub(crate) fn has_far_bound(&self) -> bool {
        let ranges = self.parse().unwrap_or_default();
        ranges
            .iter()
            .any(|r| r.lower.has_far_date() || r.upper.has_far_date())
    }

    /// Parses the range at the start of `text`. Returns the range and the text after it; `None` if
    /// `text` does not begin with a range.
    fn range(&self, text: &'a [u8]) -> Option<(RangeCells<'a>, &'a [u8])> {
        if let Some(rest) = text.strip_prefix(b"empty") {
            return Some((EMPTY, rest));
        }
        let (opening, text) = text.split_first()?;
        let (lower, text) = self.bound(text)?;
        let (upper, text) = self.bound(text.strip_prefix(b",")?)?;
        let (closing, rest) = text.split_first()?;
        let includes = |bracket: u8, included: u8, excluded: u8| match bracket {
            b if b == included => Some(true),
            b if b == excluded => Some(false),
            _ => None,
        };
        let range = RangeCells {
            lower,
            upper,
            includes_lower: includes(*opening, b'[', b'(')?,
            includes_upper: includes(*closing, b']', b')')?,
            is_empty: false,
        };
        Some((range, rest))
    }

    /// Parses the bound at the start of `text`. Returns the bound and the text after it; `None` if
    /// the bound is invalid. A bound with a quote or a backslash is treated as invalid, because no
    /// built-in type has such a bound.
    fn bound(&self, text: &'a [u8]) -> Option<(Cell<'a>, &'a [u8])> {
        let (bound, rest) = match text.strip_prefix(b"\"") {
            Some(text) => {
                let end = text.iter().position(|b| *b == b'"')?;
                (&text[..end], &text[end + 1..])
            }
            None => {
                let ends = |b: &u8| matches!(b, b',' | b')' | b']');
                text.split_at(text.iter().position(ends)?)
            }
        };
        if bound.iter().any(|b| matches!(b, b'"' | b'\\')) {
            return None;
        }
        let cell = match bound {
            [] => Cell::Null,
            bound => {
                array::cell(self.bound.element(), bound).unwrap_or(Cell::Text(Units::Utf8(bound)))
            }
        };
        Some((cell, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::BoundType;
    use proptest::prelude::*;

    fn of(text: &str, bound: BoundType) -> Option<Vec<RangeCells<'_>>> {
        let range = RangeText {
            text: text.as_bytes(),
            bound,
            is_multi: text.starts_with('{'),
        };
        range.parse()
    }

    fn integers(lower: Cell<'static>, upper: Cell<'static>, bounds: &str) -> RangeCells<'static> {
        RangeCells {
            lower,
            upper,
            includes_lower: bounds.starts_with('['),
            includes_upper: bounds.ends_with(']'),
            is_empty: false,
        }
    }

    #[test]
    fn ranges_have_their_bounds() {
        let (one, five) = (Cell::I64(1), Cell::I64(5));
        for (text, expected) in [
            ("[1,5)", vec![integers(one, five, "[)")]),
            ("(,5]", vec![integers(Cell::Null, five, "(]")]),
            ("(,)", vec![integers(Cell::Null, Cell::Null, "()")]),
            ("empty", vec![EMPTY]),
            ("{}", vec![]),
            (
                "{[1,5),[5,)}",
                vec![integers(one, five, "[)"), integers(five, Cell::Null, "[)")],
            ),
        ] {
            assert_eq!(of(text, BoundType::Integer), Some(expected), "{text}");
        }
        let moments = of(
            r#"["2024-02-29 01:02:03","infinity")"#,
            BoundType::Timestamp,
        );
        let moments = moments.unwrap();
        assert!(matches!(moments[0].lower, Cell::Timestamp(stamp, _) if stamp.date.day == 29));
        assert!(matches!(moments[0].upper, Cell::Timestamp(stamp, _) if stamp.date.year > 9999));
    }

    #[test]
    fn text_in_another_form_is_no_range() {
        for text in [
            "",
            "[",
            "[1",
            "[1,",
            "[1,5",
            "[1,5)x",
            "{[1,5)",
            "{[1,5),}",
            "{,}",
            "{[1,5)[6,7)}",
            "<1,5>",
            "[1;5)",
            "[\"1,5)",
            "[\"1\"\"\",5)",
            "[1\\,5)",
            "emptyx",
            "{empty",
        ] {
            assert_eq!(of(text, BoundType::Integer), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_range_or_none(text in "[{}\\[\\](),\"\\\\0-9a-z:. -]{0,30}") {
            for bound in [BoundType::Integer, BoundType::Date, BoundType::TimestampTz] {
                let _ = of(&text, bound);
            }
        }
    }
}
