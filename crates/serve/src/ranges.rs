//! The parts of a file that a request asks for (RFC 9110, sections 14 and 15.3.7).

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use onecopy_wire::http::{
    ByteRange, Conditions, EntityTag, Ranges, Validators, parse_date, ranges,
};

use crate::body::{FileBody, Piece};
use crate::response::{Body, Response};
use crate::sys;

impl Response {
    /// The same answer in the ranges that the request asks for: of a 200 with a file as its body, 206 with those parts, each sent by
    /// the kernel, or 416. It says that ranges are taken, and is as it was where none are asked for, where `If-Range` does not
    /// hold by its own `ETag` and `Last-Modified`, or it says `Accept-Ranges: none`. Ranges are defined for GET alone (`is_get`).
    #[must_use]
    pub fn in_ranges(mut self, conditions: &Conditions<'_>, is_get: bool) -> Response {
        let Body::File(file) = &self.body else {
            return self;
        };
        let n_bytes = file.len_bytes() as u64;
        let len_bytes = self.announced.unwrap_or(n_bytes);
        let takes = self.headers.get("Accept-Ranges");
        let takes_none = takes.is_some_and(|value| !value.eq_ignore_ascii_case(b"bytes"));
        // What falls short of its announced length is broken off whatever is asked for.
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
        let Some(asked) = conditions.range(&now, sys::unix_seconds()) else {
            return self;
        };
        match ranges(asked, len_bytes) {
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
        // They describe what is not sent.
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
            "none of the ranges is there, or they are too many",
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
            // A file's length fits, or there would be no body of it.
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
                pieces.push(Piece::Bytes(head));
                pieces.push(Piece::File(cut(range)));
            }
            pieces.push(Piece::Bytes(format!("\r\n--{boundary}--\r\n").into_bytes()));
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

/// What stands between parts. Nobody who writes a file can foresee it: it is made of random keys of this process.
fn boundary() -> String {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    static N_MADE: AtomicU64 = AtomicU64::new(0);
    let n = N_MADE.fetch_add(1, Ordering::Relaxed);
    let [a, b] = [KEYS[0].hash_one(n), KEYS[1].hash_one(n)];
    format!("onecopy-{a:016x}{b:016x}")
}
