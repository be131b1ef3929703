//! Responses to range requests for a file (RFC 9110, sections 14 and 15.3.7).

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use onecopy_wire::http::{
    ByteRange, Conditions, EntityTag, Ranges, Validators, parse_date, ranges,
};

use crate::body::{BodyPart, FileBody};
use crate::response::{Body, Response};
use crate::sys;

impl Response {
    /// Applies the `Range` field of the request to this response if it is a 200 whose body is a
    /// file. The response becomes a 206 with the requested parts of the file, which the kernel
    /// sends, or a 416 if no part can be sent. `Accept-Ranges: bytes` is added even if the request
    /// has no `Range`. If the response already has `Accept-Ranges: none`, or its body is shorter
    /// than announced, it stays unchanged. `Range` has no effect if the method is not GET
    /// (`is_get`), or if the `If-Range` of the request does not match the `ETag` and
    /// `Last-Modified` of the response.
    #[must_use]
    pub fn in_ranges(mut self, conditions: &Conditions<'_>, is_get: bool) -> Response {
        let Body::File(file) = &self.body else {
            return self;
        };
        let n_bytes = file.len_bytes() as u64;
        let len_bytes = self.announced.unwrap_or(n_bytes);
        let takes = self.headers.get("Accept-Ranges");
        let takes_none = takes.is_some_and(|value| !value.eq_ignore_ascii_case(b"bytes"));
        // If the body is shorter than its announced length, the response will be aborted, so ranges
        // are not applied.
        if self.status != 200 || len_bytes > n_bytes || takes_none {
            return self;
        }
        if takes.is_none() {
            self.add("Accept-Ranges", b"bytes");
        }
        if !is_get {
            return self;
        }
        let now = Validators {
            tag: self.headers.get("ETag").and_then(EntityTag::parse),
            modified: self.headers.get("Last-Modified").and_then(parse_date),
        };
        let Some(requested) = conditions.range(&now, sys::unix_seconds()) else {
            return self;
        };
        match ranges(requested, len_bytes) {
            Ranges::Whole => self,
            Ranges::Refused => self.out_of_range(len_bytes),
            Ranges::Parts(parts) => self.parts(&parts, len_bytes),
        }
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        let added = self.headers.push(name, value);
        added.expect("fields of ranges are made of ASCII");
    }

    fn out_of_range(mut self, len_bytes: u64) -> Response {
        // These fields describe the file, but the response has a problem document as its body.
        self.headers.remove(&[
            "Content-Type",
            "Content-Disposition",
            "ETag",
            "Last-Modified",
        ]);
        let mut headers = self.headers;
        let problem = Response::problem(
            416,
            "Range Not Satisfiable",
            "no range is satisfiable, or there are too many ranges",
        );
        for (name, value) in problem.headers.iter() {
            let name = String::from_utf8_lossy(name);
            let added = headers.push(&name, value);
            added.expect("a field of a problem was checked when it was made");
        }
        let mut refused = Response {
            headers,
            closes: self.closes,
            ..problem
        };
        refused.add("Content-Range", format!("bytes */{len_bytes}").as_bytes());
        refused
    }

    fn parts(mut self, parts: &[ByteRange], len_bytes: u64) -> Response {
        let Body::File(file) = &self.body else {
            return self;
        };
        let cut = |range: &ByteRange| -> FileBody {
            // The length of the file fits into `usize`, because the file is the body of a response.
            let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            file.part(at(range.first), at(range.len_bytes()))
        };
        let place = |range: &ByteRange| format!("bytes {}-{}/{len_bytes}", range.first, range.last);
        if let [one] = parts {
            self.body = Body::File(cut(one));
            self.add("Content-Range", place(one).as_bytes());
        } else {
            let boundary = boundary();
            let content_type = self.headers.get("Content-Type").map(<[u8]>::to_vec);
            let mut pieces = Vec::with_capacity(2 * parts.len() + 1);
            for range in parts {
                let mut head = format!("\r\n--{boundary}\r\n").into_bytes();
                if let Some(content_type) = &content_type {
                    for part in [b"Content-Type: ", &content_type[..], b"\r\n"] {
                        head.extend_from_slice(part);
                    }
                }
                let place = format!("Content-Range: {}\r\n\r\n", place(range));
                head.extend_from_slice(place.as_bytes());
                pieces.push(BodyPart::Bytes(head));
                pieces.push(BodyPart::File(cut(range)));
            }
            pieces.push(BodyPart::Bytes(
                format!("\r\n--{boundary}--\r\n").into_bytes(),
            ));
            self.body = Body::Pieces(pieces);
            self.headers.remove(&["Content-Type"]);
            let value = format!("multipart/byteranges; boundary={boundary}");
            self.add("Content-Type", value.as_bytes());
        }
        self.status = 206;
        self.reason = None;
        self.announced = None;
        self
    }
}

/// Returns the separator between the parts of a multipart body. It is derived from random keys that
/// only this process has, so nobody can put the separator into a file in advance.
fn boundary() -> String {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    static N_MADE: AtomicU64 = AtomicU64::new(0);
    let n = N_MADE.fetch_add(1, Ordering::Relaxed);
    let [a, b] = [KEYS[0].hash_one(n), KEYS[1].hash_one(n)];
    format!("onecopy-{a:016x}{b:016x}")
}
