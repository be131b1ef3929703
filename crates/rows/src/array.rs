//! Parses arrays in PostgreSQL's text form, `{1,NULL,"a b"}`, and passes each element to an
//! [`ArrayVisitor`]. The row sinks use this parser to write arrays as JSON or as text. Source:
//! PostgreSQL's documentation, "Array Input and Output Syntax".

use onecopy_text::Units;

use crate::cell::{ArrayText, Cell, Date, ElementType, RangeText};
use crate::date_text::{date, time, time_with_offset, timestamp, timestamp_with_offset};
use crate::interval;
use crate::money_text;

/// The largest number of dimensions that PostgreSQL allows in an array.
const MOST_DIMENSIONS: usize = 6;

/// Receives the elements of an array, in order.
pub trait ArrayVisitor {
    /// The type of the error that a visitor returns to reject an array or an element.
    type Error;

    /// Called at the start of an array: the outermost array, or an array nested in another array.
    ///
    /// # Errors
    /// The visitor's error; no further element is passed to the visitor.
    fn begin(&mut self) -> Result<(), Self::Error>;

    /// Called for each element, in order.
    ///
    /// # Errors
    /// The visitor's error; no further element is passed to the visitor.
    fn element(&mut self, cell: Cell<'_>) -> Result<(), Self::Error>;

    /// Called at the end of the innermost array that has begun.
    ///
    /// # Errors
    /// The visitor's error; no further element is passed to the visitor.
    fn end(&mut self) -> Result<(), Self::Error>;
}

/// The reason why [`ArrayText::visit`] did not reach the end of an array.
#[derive(Debug)]
pub enum ArrayError<E> {
    /// The text is not an array in PostgreSQL's text form.
    Malformed,
    /// The visitor refused an element or an array with this error.
    Visitor(E),
}

impl<E> From<E> for ArrayError<E> {
    fn from(error: E) -> ArrayError<E> {
        ArrayError::Visitor(error)
    }
}

impl ArrayText<'_> {
    /// Passes each element of the array to `visitor`.
    ///
    /// # Errors
    /// [`ArrayError`]. The visitor has already received the elements before the error.
    pub fn visit<V: ArrayVisitor>(&self, visitor: &mut V) -> Result<(), ArrayError<V::Error>> {
        let mut text = self.text;
        // Skips the bounds of the dimensions, as in `[0:1]={a,b}`. PostgreSQL writes the bounds if
        // the indices of a dimension do not begin at 1.
        if text.first() == Some(&b'[') {
            let end = text.iter().position(|b| *b == b'=');
            text = &text[end.ok_or(ArrayError::Malformed)? + 1..];
        }
        let (mut at, mut depth, mut is_value_due) = (0, 0, true);
        let mut unescaped = Vec::new();
        while let Some(b) = text.get(at) {
            at += 1;
            match b {
                b'{' if is_value_due && depth < MOST_DIMENSIONS => {
                    visitor.begin()?;
                    depth += 1;
                    is_value_due = text.get(at) != Some(&b'}');
                }
                b'}' if depth > 0 && !is_value_due => {
                    visitor.end()?;
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b',' if depth > 0 && !is_value_due => is_value_due = true,
                b'"' if depth > 0 && is_value_due => {
                    let rest = &text[at..];
                    let value = quoted(rest, &mut unescaped).ok_or(ArrayError::Malformed)?;
                    at += value.1;
                    self.give(value.0, visitor)?;
                    is_value_due = false;
                }
                _ if depth > 0 && is_value_due => {
                    let rest = &text[at - 1..];
                    let end = rest.iter().position(|b| matches!(b, b',' | b'}'));
                    let value = &rest[..end.ok_or(ArrayError::Malformed)?];
                    if value.is_empty() {
                        return Err(ArrayError::Malformed);
                    }
                    at += value.len() - 1;
                    match value {
                        b"NULL" => visitor.element(Cell::Null)?,
                        value => self.give(value, visitor)?,
                    }
                    is_value_due = false;
                }
                _ => return Err(ArrayError::Malformed),
            }
        }
        match depth == 0 && at == text.len() && at > 0 {
            true => Ok(()),
            false => Err(ArrayError::Malformed),
        }
    }

    /// Passes the element with this text, which has no quotes and escapes, to `visitor`.
    fn give<V: ArrayVisitor>(
        &self,
        text: &[u8],
        visitor: &mut V,
    ) -> Result<(), ArrayError<V::Error>> {
        match self.element {
            ElementType::Text => visitor.element(Cell::Text(Units::Utf8(text)))?,
            ElementType::Bytes => {
                let bytes = bytes_of_text(text).ok_or(ArrayError::Malformed)?;
                visitor.element(Cell::Bytes(&bytes))?;
            }
            ElementType::Money => {
                let mut amount = text.to_vec();
                money_text::to_digits(&mut amount);
                visitor.element(money_text::cell(&amount))?;
            }
            element => {
                let cell = cell(element, text).ok_or(ArrayError::Malformed)?;
                visitor.element(match self.far_dates_as_text && cell.has_far_date() {
                    true => Cell::Text(Units::Utf8(text)),
                    false => cell,
                })?;
            }
        }
        Ok(())
    }
}

/// Parses a quoted element; `rest` begins after the opening quote. Returns the element without
/// escapes, and the number of bytes of `rest` up to and including the closing quote. Returns `None`
/// if there is no closing quote.
fn quoted<'a>(rest: &'a [u8], unescaped: &'a mut Vec<u8>) -> Option<(&'a [u8], usize)> {
    let end = rest.iter().position(|b| matches!(b, b'"' | b'\\'))?;
    if rest[end] == b'"' {
        return Some((&rest[..end], end + 1));
    }
    unescaped.clear();
    let mut bytes = rest.iter().enumerate();
    while let Some((at, b)) = bytes.next() {
        match b {
            b'"' => return Some((unescaped, at + 1)),
            b'\\' => unescaped.push(*bytes.next()?.1),
            b => unescaped.push(*b),
        }
    }
    None
}

/// Converts the text of an array element, or of one bound of a range, to a cell. `element` is the
/// type of the value. Returns `None` if the text is not a value of that type. The types `Text`,
/// `Bytes` and `Money` always return `None`, because the callers convert their text themselves.
pub(crate) fn cell(element: ElementType, text: &[u8]) -> Option<Cell<'_>> {
    let named = match text {
        b"infinity" => Some(Date::INFINITY),
        b"-infinity" => Some(Date::MINUS_INFINITY),
        _ => None,
    };
    // A date that is not in ISO style must not become a value of another type.
    let midnight = |offset| named.unwrap_or(Date::OTHER_STYLE).midnight(offset);
    let as_str = || std::str::from_utf8(text).ok();
    Some(match element {
        ElementType::Text | ElementType::Bytes | ElementType::Money => return None,
        ElementType::Json => Cell::Json(Units::Utf8(text)),
        ElementType::Bool => match text {
            b"t" => Cell::Bool(true),
            b"f" => Cell::Bool(false),
            _ => return None,
        },
        ElementType::Integer { .. } => Cell::I64(as_str()?.parse().ok()?),
        ElementType::Real => Cell::F32(as_str()?.parse().ok()?),
        ElementType::Double => Cell::F64(as_str()?.parse().ok()?),
        ElementType::Decimal { .. } => Cell::Decimal(text),
        ElementType::Date => {
            Cell::Date(date(text).unwrap_or_else(|| named.unwrap_or(Date::OTHER_STYLE)))
        }
        ElementType::Time(digits) => Cell::Time(time(text)?, digits),
        ElementType::Timestamp(digits) => {
            Cell::Timestamp(timestamp(text).unwrap_or_else(|| midnight(None)), digits)
        }
        ElementType::TimestampTz(digits) => Cell::Timestamp(
            timestamp_with_offset(text).unwrap_or_else(|| midnight(Some(0))),
            digits,
        ),
        ElementType::TimeTz(_) => time_with_offset(text)?,
        ElementType::Interval => interval::cell(text),
        ElementType::Uuid => Cell::Uuid(uuid(text)?),
        ElementType::Range(bound) | ElementType::Multirange(bound) => Cell::Range(RangeText {
            text,
            bound,
            is_multi: matches!(element, ElementType::Multirange(_)),
        }),
    })
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|n| n as u8)
}

/// Parses a `bytea` in either text form of PostgreSQL's setting `bytea_output`: `hex` (`\x00ff`) or
/// `escape` (`\000\377`). Returns `None` if the text has neither form.
fn bytes_of_text(text: &[u8]) -> Option<Vec<u8>> {
    let Some(digits) = text.strip_prefix(b"\\x") else {
        return bytes_of_escapes(text);
    };
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| match pair {
            [a, b] => Some(nibble(*a)? << 4 | nibble(*b)?),
            _ => None,
        })
        .collect()
}

fn bytes_of_escapes(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => (b'\\', after),
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), after),
            (b'\\', _) => return None,
            (byte, after) => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    Some(bytes)
}

fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.iter().copied().filter(|b| *b != b'-').collect();
    let mut uuid = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTEGER: ElementType = ElementType::Integer {
        bits: 32,
        unsigned: false,
    };

    /// An [`ArrayVisitor`] for tests, which writes an array as `[a, b]`.
    #[derive(Default)]
    struct Written(String);

    impl ArrayVisitor for Written {
        type Error = std::convert::Infallible;

        fn begin(&mut self) -> Result<(), Self::Error> {
            self.0.push('[');
            Ok(())
        }

        fn element(&mut self, cell: Cell<'_>) -> Result<(), Self::Error> {
            let shown = match cell {
                Cell::Text(Units::Utf8(text)) => format!("{:?}", String::from_utf8_lossy(text)),
                cell => format!("{cell:?}"),
            };
            self.0.push_str(&shown);
            self.0.push(' ');
            Ok(())
        }

        fn end(&mut self) -> Result<(), Self::Error> {
            self.0.push(']');
            Ok(())
        }
    }

    fn written(text: &str, element: ElementType) -> Option<String> {
        let mut out = Written::default();
        let text = text.as_bytes();
        let visited = ArrayText {
            text,
            element,
            far_dates_as_text: false,
        }
        .visit(&mut out);
        visited.ok().map(|()| out.0)
    }

    #[test]
    fn elements_are_read_in_their_order() {
        let of = |text, element| written(text, element).unwrap();
        assert_eq!(of("{}", INTEGER), "[]");
        assert_eq!(of("{1,NULL,-3}", INTEGER), "[I64(1) Null I64(-3) ]");
        assert_eq!(
            of("[0:1][2:3]={{1,2},{3,4}}", INTEGER),
            "[[I64(1) I64(2) ][I64(3) I64(4) ]]"
        );
        assert_eq!(
            of(r#"{a,"NULL","","{,}","q\"b\\c"}"#, ElementType::Text),
            r#"["a" "NULL" "" "{,}" "q\"b\\c" ]"#
        );
        assert_eq!(of("{t,f}", ElementType::Bool), "[Bool(true) Bool(false) ]");
        assert_eq!(
            of(r#"{"\\x00ff"}"#, ElementType::Bytes),
            "[Bytes([0, 255]) ]"
        );
        assert_eq!(
            of(r#"{"\\000\\377a\\\\","\\x",""}"#, ElementType::Bytes),
            "[Bytes([0, 255, 97, 92]) Bytes([]) Bytes([]) ]"
        );
        for wrong in [r#"{"\\400"}"#, r#"{"\\xf"}"#, r#"{"a\\"}"#] {
            assert_eq!(written(wrong, ElementType::Bytes), None, "{wrong}");
        }
    }

    #[test]
    fn an_element_in_another_form_is_not_text() {
        assert_eq!(written("{x}", INTEGER), None);
        for (text, element) in [
            ("{29.02.2024}", ElementType::Date),
            ("{02/29/2024}", ElementType::Date),
            ("{\"29.02.2024 12:00:00\"}", ElementType::Timestamp(6)),
            ("{\"29.02.2024 12:00:00 CET\"}", ElementType::TimestampTz(6)),
        ] {
            let shown = written(text, element).unwrap();
            assert!(
                shown.contains(&format!("{}", Date::OTHER_STYLE.year)),
                "{shown}"
            );
        }
    }

    #[test]
    fn what_is_not_an_array_is_refused() {
        for text in [
            "",
            "{",
            "}",
            "{1",
            "{1,}",
            "{,1}",
            "{1}}",
            "{1}{2}",
            "x",
            "[0:1]",
            "{\"a",
            "{\"a\\",
            "{{{{{{{1}}}}}}}",
            "{1}x",
            "{\"a\"b}",
            "{{1}2}",
        ] {
            assert_eq!(written(text, ElementType::Text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_an_array_or_refused(text in "[-{},\"\\\\a1=\\[:NUL ]{0,40}") {
            let _ = written(&text, INTEGER);
        }

        #[test]
        fn texts_come_back_as_they_were(texts in prop::collection::vec(".{0,8}", 1..5)) {
            let quoted: Vec<String> = texts
                .iter()
                .map(|t| format!("\"{}\"", t.replace('\\', "\\\\").replace('"', "\\\"")))
                .collect();
            let expected: Vec<String> = texts.iter().map(|t| format!("{t:?} ")).collect();
            let text = format!("{{{}}}", quoted.join(","));
            let expected = format!("[{}]", expected.concat());
            prop_assert_eq!(written(&text, ElementType::Text), Some(expected));
        }
    }
}
