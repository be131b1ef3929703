//! The request head, read line by line over a growing buffer.

use std::ops::Range;

use super::error::HeadError;
use super::field;
use super::framing::Seen;
use super::index::{Field, HeadIndex};
use super::request::{Method, RequestHead, TargetForm, Version};

/// The longest method that is read; IANA's longest is 17 bytes.
const MAX_METHOD_BYTES: usize = 24;

/// What a head may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Longest head in bytes, its empty line included: 64 KiB unless told.
    pub max_head_bytes: usize,
    /// Longest target in bytes: 16 KiB unless told.
    pub max_target_bytes: usize,
    /// Most header fields: 100 unless told.
    pub max_headers: usize,
    /// Whether names of fields may hold `_`. In CGI's form `X_A` and `X-A` are one name, so a client could speak for a proxy in
    /// front (WSGI says no). Yes unless told.
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

/// Which line comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The request line, or one empty line before it (RFC 9112, section 2.2).
    First,
    /// The request line: an empty line was there.
    Request,
    /// A field line or the empty line.
    Field,
    /// Nothing: the head is complete or refused.
    Nothing,
}

/// Reads one request head over a growing buffer. Each byte is looked at once for its line's end and once for its meaning,
/// however few come at a time; what is wrong is told as soon as its line is complete, controls at once.
///
/// It is kept for a connection and reused, so that a request allocates nothing.
#[derive(Clone, Debug)]
pub struct HeadParser {
    limits: HeadLimits,
    next: Next,
    /// Bytes that were looked at for line ends.
    scanned: usize,
    line_start: usize,
    index: HeadIndex,
    seen: Seen,
    refused: Option<HeadError>,
}

impl HeadParser {
    /// A parser for the first request of a connection.
    #[must_use]
    pub fn new(limits: HeadLimits) -> HeadParser {
        HeadParser {
            limits,
            next: Next::First,
            scanned: 0,
            line_start: 0,
            index: HeadIndex::default(),
            seen: Seen::default(),
            refused: None,
        }
    }

    /// Makes it ready for the next request: its first byte is the first of the buffer then given.
    pub fn reset(&mut self) {
        let mut fields = std::mem::take(&mut self.index.fields);
        fields.clear();
        *self = HeadParser::new(self.limits);
        self.index.fields = fields;
    }

    /// Reads on in `buffer`, which holds all bytes since the head began: those of the last call and what came since.
    /// Returns the length of the head in bytes once its empty line is there; bytes behind are not looked at.
    ///
    /// # Errors
    /// [`HeadError`], the same on each later call.
    pub fn advance(&mut self, buffer: &[u8]) -> Result<Option<usize>, HeadError> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        self.read_lines(buffer).inspect_err(|error| {
            self.refused = Some(*error);
            self.next = Next::Nothing;
        })
    }

    /// The head as a view of `buffer`; `None` before [`HeadParser::advance`] has told its length.
    #[must_use]
    pub fn head<'a>(&'a self, buffer: &'a [u8]) -> Option<RequestHead<'a>> {
        self.is_complete().then(|| self.index.view(buffer))
    }

    /// Takes the index of a complete head, to keep it beside the buffer, and makes the parser ready for the next one.
    /// `None` before [`HeadParser::advance`] has told its length.
    pub fn take(&mut self) -> Option<HeadIndex> {
        if !self.is_complete() {
            return None;
        }
        let index = std::mem::take(&mut self.index);
        self.reset();
        Some(index)
    }

    /// Whether any byte of the head has come: decides between an idle and a slow peer.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.scanned > 0
    }

    fn is_complete(&self) -> bool {
        self.next == Next::Nothing && self.refused.is_none()
    }

    fn read_lines(&mut self, buffer: &[u8]) -> Result<Option<usize>, HeadError> {
        if self.next == Next::Nothing {
            return Ok(Some(self.index.len_bytes));
        }
        loop {
            // Nothing behind the limit is looked at, so the answer does not depend on how the bytes came.
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
                Next::First if line.is_empty() => self.next = Next::Request,
                Next::First | Next::Request => {
                    self.request_line(within, line)?;
                    self.next = Next::Field;
                }
                Next::Field if line.is_empty() => {
                    self.index.len_bytes = self.line_start;
                    std::mem::take(&mut self.seen).settle(&mut self.index)?;
                    self.next = Next::Nothing;
                    return Ok(Some(self.index.len_bytes));
                }
                Next::Field => self.field_line(within, line)?,
                Next::Nothing => unreachable!("a complete head has returned"),
            }
        }
    }

    /// Where the line that comes next must have ended, its CR LF included, and the refusal where it has not.
    fn line_limit(&self) -> (usize, HeadError) {
        let whole = self.limits.max_head_bytes;
        if self.next == Next::Field {
            return (whole, HeadError::HeadTooLarge);
        }
        let line = MAX_METHOD_BYTES + self.limits.max_target_bytes + "  HTTP/1.1\r\n".len();
        let limit = whole.min(self.line_start.saturating_add(line));
        (limit, HeadError::TargetTooLong)
    }

    /// The place of the next CR LF; `None` where it has not come yet.
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

    /// `method SP request-target SP HTTP-version` (RFC 9112, section 3), each SP one space.
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

    /// The forms of a target (RFC 9112, section 3.2).
    fn target(&mut self, buffer: &[u8]) -> Result<(), HeadError> {
        let range = self.index.target.clone();
        let target = &buffer[range.clone()];
        // A fragment is never sent; `#` in a target splits readers. All else that is visible passes: browsers send `|`.
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

    /// `field-name ":" OWS field-value OWS` (RFC 9112, section 5).
    fn field_line(&mut self, buffer: &[u8], line: Range<usize>) -> Result<(), HeadError> {
        let text = &buffer[line.clone()];
        if matches!(text.first(), Some(b' ' | b'\t')) {
            return Err(HeadError::Folded);
        }
        let colon = text
            .iter()
            .position(|b| *b == b':')
            .ok_or(HeadError::FieldName)?;
        let (name, behind) = (&text[..colon], &text[colon + 1..]);
        if !field::is_token(name) {
            return Err(HeadError::FieldName);
        }
        if !self.limits.underscores && name.contains(&b'_') {
            return Err(HeadError::Underscore);
        }
        if self.index.fields.len() >= self.limits.max_headers {
            return Err(HeadError::TooManyHeaders);
        }
        let value = field::trim(behind);
        let blanks = behind.iter().take_while(|b| matches!(b, b' ' | b'\t'));
        let value_start = line.start + colon + 1 + blanks.count().min(behind.len() - value.len());
        let value_range = value_start..value_start + value.len();
        self.seen.note(name, value, &value_range)?;
        // RFC 9112, section 3.2.2: only a target in absolute form has an authority here, and it is
        // the host.
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
