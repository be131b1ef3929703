//! [`HeadParser`]: parses a request head line by line while its bytes arrive in a buffer.

use std::ops::Range;

use super::error::HeadError;
use super::field;
use super::framing::FramingFields;
use super::index::{Field, HeadIndex};
use super::request::{Method, RequestHead, TargetForm, Version};

/// The length in bytes of the longest accepted method. The longest method registered with IANA has
/// 17 bytes.
const MAX_METHOD_BYTES: usize = 24;

/// The limits on the size of a request head, and whether names of header fields may contain `_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The largest accepted size of a head in bytes, including the empty line at its end: 64 KiB by
    /// default.
    pub max_head_bytes: usize,
    /// The largest accepted length of a target in bytes: 16 KiB by default.
    pub max_target_bytes: usize,
    /// The largest accepted number of header fields: 100 by default.
    pub max_headers: usize,
    /// `true` if field names may contain `_`, which is the default. CGI and WSGI convert `X_A` and
    /// `X-A` to the same name. A client could therefore use `X_A` to set a field `X-A` that only a
    /// proxy may set. The WSGI server sets this option to `false`.
    pub underscores: bool,
}

impl Default for HeadLimits {
    fn default() -> Self {
        HeadLimits {
            max_head_bytes: 64 << 10,
            max_target_bytes: 16 << 10,
            max_headers: 100,
            underscores: true,
        }
    }
}

/// The type of line that the parser expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadLine {
    /// The request line, before which one empty line is permitted (RFC 9112, section 2.2).
    First,
    /// The next line is the request line. One empty line before it was already skipped.
    Request,
    /// A field line, or the empty line at the end of the head.
    Field,
    /// No further line is expected, because the head is complete or was rejected.
    Nothing,
}

/// A parser of one request head, whose bytes arrive in a buffer. Each byte is examined once for
/// line ends and once for its contents, even if only few bytes arrive at a time. The parser reports
/// an error when the line that contains it is complete. It reports a control character as soon as
/// the character arrives.
///
/// A connection reuses its parser for all its requests, so that a request allocates no memory for
/// it.
#[derive(Clone, Debug)]
pub struct HeadParser {
    limits: HeadLimits,
    next: HeadLine,
    /// The number of bytes at the start of the buffer in which line ends were already searched.
    scanned: usize,
    line_start: usize,
    index: HeadIndex,
    seen: FramingFields,
    refused: Option<HeadError>,
}

impl HeadParser {
    /// Creates a parser for the first request of a connection.
    #[must_use]
    pub fn new(limits: HeadLimits) -> HeadParser {
        HeadParser {
            limits,
            next: HeadLine::First,
            scanned: 0,
            line_start: 0,
            index: HeadIndex::default(),
            seen: FramingFields::default(),
            refused: None,
        }
    }

    /// Prepares the parser for the next request. The buffer passed to the next call to
    /// [`HeadParser::advance`] must start with the first byte of this request.
    pub fn reset(&mut self) {
        let mut fields = std::mem::take(&mut self.index.fields);
        fields.clear();
        *self = HeadParser::new(self.limits);
        self.index.fields = fields;
    }

    /// Continues to parse the head. `buffer` must contain all bytes of the head that have arrived
    /// so far, including those of earlier calls. Returns the length of the head in bytes if its
    /// empty line has arrived, otherwise `None`. Bytes after the head are not examined.
    ///
    /// # Errors
    /// Returns a [`HeadError`]. All later calls return the same error.
    pub fn advance(&mut self, buffer: &[u8]) -> Result<Option<usize>, HeadError> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        self.read_lines(buffer).inspect_err(|error| {
            self.refused = Some(*error);
            self.next = HeadLine::Nothing;
        })
    }

    /// Returns the parsed head as a view of `buffer`. Returns `None` if [`HeadParser::advance`] has
    /// not returned the length of the head yet.
    #[must_use]
    pub fn head<'a>(&'a self, buffer: &'a [u8]) -> Option<RequestHead<'a>> {
        self.is_complete().then(|| self.index.view(buffer))
    }

    /// Returns the parsed positions of a complete head, and resets the parser for the next head.
    /// The positions refer to the buffer of the head, so the caller must keep this buffer. Returns
    /// `None` if [`HeadParser::advance`] has not returned the length of the head yet.
    pub fn take(&mut self) -> Option<HeadIndex> {
        if !self.is_complete() {
            return None;
        }
        let index = std::mem::take(&mut self.index);
        self.reset();
        Some(index)
    }

    /// Returns `true` if at least one byte of the next request line has arrived. This distinguishes
    /// a slow peer, which has sent a part of a head, from an idle peer. An empty line before the
    /// request line does not count, because some clients send one after a request body (RFC 9112,
    /// section 2.2).
    #[must_use]
    pub fn has_begun(&self) -> bool {
        match self.next {
            HeadLine::First | HeadLine::Request => self.scanned > self.line_start,
            HeadLine::Field | HeadLine::Nothing => true,
        }
    }

    fn is_complete(&self) -> bool {
        self.next == HeadLine::Nothing && self.refused.is_none()
    }

    fn read_lines(&mut self, buffer: &[u8]) -> Result<Option<usize>, HeadError> {
        if self.next == HeadLine::Nothing {
            return Ok(Some(self.index.len_bytes));
        }
        loop {
            // Bytes after the limit are not examined. Therefore the result does not depend on the
            // sizes of the reads by which the bytes arrived.
            let (limit, too_long) = self.line_limit();
            let within = &buffer[..buffer.len().min(limit)];
            let Some(end) = self.find_line_end(within)? else {
                return if buffer.len() >= limit {
                    Err(too_long)
                } else {
                    Ok(None)
                };
            };
            let line = self.line_start..end;
            self.line_start = end + 2;
            self.scanned = self.line_start;
            match self.next {
                HeadLine::First if line.is_empty() => self.next = HeadLine::Request,
                HeadLine::First | HeadLine::Request => {
                    self.request_line(within, line)?;
                    self.next = HeadLine::Field;
                }
                HeadLine::Field if line.is_empty() => {
                    self.index.len_bytes = self.line_start;
                    std::mem::take(&mut self.seen).settle(&mut self.index)?;
                    self.next = HeadLine::Nothing;
                    return Ok(Some(self.index.len_bytes));
                }
                HeadLine::Field => self.field_line(within, line)?,
                HeadLine::Nothing => unreachable!("a complete head has returned"),
            }
        }
    }

    /// Returns the maximum position of the end of the next line, including its CR LF. Also returns
    /// the error to report if the line is longer.
    fn line_limit(&self) -> (usize, HeadError) {
        let whole = self.limits.max_head_bytes;
        if self.next == HeadLine::Field {
            return (whole, HeadError::HeadTooLarge);
        }
        let line = MAX_METHOD_BYTES + self.limits.max_target_bytes + "  HTTP/1.1\r\n".len();
        let limit = whole.min(self.line_start.saturating_add(line));
        (limit, HeadError::TargetTooLong)
    }

    /// Returns the position of the next CR LF; `None` if it has not arrived. A control character is
    /// an error, and so is a CR or LF that is not part of a CR LF.
    fn find_line_end(&mut self, buffer: &[u8]) -> Result<Option<usize>, HeadError> {
        let unseen = &buffer[self.scanned..];
        let Some(offset) = unseen.iter().position(|b| !field::is_value_byte(*b)) else {
            self.scanned = buffer.len();
            return Ok(None);
        };
        self.scanned += offset;
        match unseen[offset..] {
            [b'\r', b'\n', ..] => Ok(Some(self.scanned)),
            [b'\r'] => Ok(None),
            [b'\r', ..] => Err(HeadError::BareCr),
            [b'\n', ..] => Err(HeadError::BareLf),
            _ => Err(HeadError::Control),
        }
    }

    /// Parses the request line `method SP request-target SP HTTP-version` (RFC 9112, section 3).
    /// Each SP must be exactly one space.
    fn request_line(&mut self, buffer: &[u8], line: Range<usize>) -> Result<(), HeadError> {
        let text = &buffer[line.clone()];
        let space = |from: usize| {
            text[from..]
                .iter()
                .position(|b| *b == b' ')
                .map(|at| from + at)
        };
        let method_end = space(0).ok_or(HeadError::RequestLine)?;
        let method = &text[..method_end];
        if !field::is_token(method) {
            return Err(HeadError::RequestLine);
        }
        if method.len() > MAX_METHOD_BYTES || method == b"CONNECT" {
            return Err(HeadError::Method);
        }
        let target_start = method_end + 1;
        let target_end = space(target_start).ok_or(HeadError::RequestLine)?;
        if target_end - target_start > self.limits.max_target_bytes {
            return Err(HeadError::TargetTooLong);
        }
        self.index.version = match &text[target_end + 1..] {
            b"HTTP/1.1" => Version::Http11,
            b"HTTP/1.0" => Version::Http10,
            [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
                if major.is_ascii_digit() && minor.is_ascii_digit() =>
            {
                return Err(HeadError::Version);
            }
            _ => return Err(HeadError::RequestLine),
        };
        self.index.method = line.start..line.start + method_end;
        self.index.method_kind = method_kind(method);
        self.index.target = line.start + target_start..line.start + target_end;
        self.target(buffer)
    }

    /// Validates the target and determines its form (RFC 9112, section 3.2).
    fn target(&mut self, buffer: &[u8]) -> Result<(), HeadError> {
        let range = self.index.target.clone();
        let target = &buffer[range.clone()];
        // A client never sends a fragment, and parsers interpret `#` in a target differently, so
        // `#` is an error. All other visible characters are accepted, because browsers send some
        // that RFC 3986 forbids, such as `|`.
        if !target.iter().all(|b| b.is_ascii_graphic() && *b != b'#') {
            return Err(HeadError::Target);
        }
        self.index.target_path = range.start;
        let method = self.index.method_kind;
        self.index.form = match target {
            [b'/', ..] => TargetForm::Origin,
            b"*" if method == Method::Options => TargetForm::Asterisk,
            _ => {
                let scheme = ["http://", "https://"].into_iter().find(|scheme| {
                    target
                        .get(..scheme.len())
                        .is_some_and(|t| t.eq_ignore_ascii_case(scheme.as_bytes()))
                });
                let start = scheme.ok_or(HeadError::Target)?.len();
                let len = target[start..]
                    .iter()
                    .position(|b| matches!(b, b'/' | b'?'));
                let end = len.map_or(target.len(), |len| start + len);
                if !field::is_authority(&target[start..end]) {
                    return Err(HeadError::Authority);
                }
                self.index.authority = Some(range.start + start..range.start + end);
                self.index.target_path = range.start + end;
                TargetForm::Absolute
            }
        };
        Ok(())
    }

    /// Parses the field line `field-name ":" OWS field-value OWS` (RFC 9112, section 5), in which
    /// OWS is optional white space.
    fn field_line(&mut self, buffer: &[u8], line: Range<usize>) -> Result<(), HeadError> {
        let text = &buffer[line.clone()];
        if matches!(text.first(), Some(b' ' | b'\t')) {
            return Err(HeadError::Folded);
        }
        let colon = text
            .iter()
            .position(|b| *b == b':')
            .ok_or(HeadError::FieldName)?;
        let (name, after) = (&text[..colon], &text[colon + 1..]);
        if !field::is_token(name) {
            return Err(HeadError::FieldName);
        }
        if !self.limits.underscores && name.contains(&b'_') {
            return Err(HeadError::Underscore);
        }
        if self.index.fields.len() >= self.limits.max_headers {
            return Err(HeadError::TooManyHeaders);
        }
        let value = field::trim(after);
        let blanks = after.iter().take_while(|b| matches!(b, b' ' | b'\t'));
        let value_start = line.start + colon + 1 + blanks.count().min(after.len() - value.len());
        let value_range = value_start..value_start + value.len();
        self.seen.note(name, value, &value_range)?;
        // RFC 9112, section 3.2.2: if the target is in absolute form, its authority replaces the
        // value of `Host`. Only such a target has an authority.
        let value_range = match &self.index.authority {
            Some(authority) if name.eq_ignore_ascii_case(b"host") => authority.clone(),
            _ => value_range,
        };
        let small = |at: usize| u32::try_from(at).map_err(|_| HeadError::HeadTooLarge);
        self.index.fields.push(Field {
            name: (small(line.start)?, small(line.start + colon)?),
            value: (small(value_range.start)?, small(value_range.end)?),
        });
        Ok(())
    }
}

impl Default for HeadParser {
    fn default() -> Self {
        HeadParser::new(HeadLimits::default())
    }
}

fn method_kind(name: &[u8]) -> Method {
    match name {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"POST" => Method::Post,
        b"PUT" => Method::Put,
        b"DELETE" => Method::Delete,
        b"OPTIONS" => Method::Options,
        b"PATCH" => Method::Patch,
        b"TRACE" => Method::Trace,
        _ => Method::Other,
    }
}
