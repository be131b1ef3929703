//! Creates the environ of a WSGI request, a dict that is defined by PEP 3333, from the request line
//! and header fields of an HTTP request.
//!
//! Values are decoded as Latin-1, as PEP 3333 requires: each received byte becomes one character.
//! The `str` objects of names, and of values that occur in many requests, are cached.

use std::net::SocketAddr;

use onecopy_text::{Policy, Tally, Units};
use onecopy_wire::http::RequestHead;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{Borrowed, ffi};

use super::text;

/// The number of slots for header names, a power of two. If two names have the same slot, only the
/// more recent one is cached.
const N_NAMES: usize = 256;
/// The maximum size in bytes of a header value for which the cached `str` of an earlier request is
/// reused. The received bytes are compared with this `str`.
const MOST_COMPARED_BYTES: usize = 512;

/// A header field of an earlier request: its name, its environ key and its most recent value.
struct RecentField {
    name: Box<[u8]>,
    key: Py<PyString>,
    value: Option<Py<PyAny>>,
}

/// The number of slots for client addresses, a power of two. The slot is determined by the client's
/// port.
const N_PEERS: usize = 512;

/// The address of a client, and `str` objects for its host and port.
struct Peer {
    socket: SocketAddr,
    address: Py<PyAny>,
    port: Py<PyAny>,
}

/// A cache of `str` objects that were created for earlier requests: header names and values, client
/// addresses, and paths.
pub(crate) struct Strings {
    fields: Vec<Option<RecentField>>,
    shapes: Vec<HeaderShape>,
    peers: Vec<Option<Peer>>,
    others: [Option<Py<PyAny>>; N_OTHERS],
}

/// The values of a request that are not header fields. Each one is often the same in the next
/// request, so its `str` is cached.
#[derive(Clone, Copy)]
pub(crate) enum Other {
    Path,
    Query,
    Address,
    Method,
}

const N_OTHERS: usize = 4;

impl Strings {
    pub(crate) fn new() -> Strings {
        Strings {
            fields: (0..N_NAMES).map(|_| None).collect(),
            shapes: (0..N_SHAPES).map(|_| HeaderShape::default()).collect(),
            peers: (0..N_PEERS).map(|_| None).collect(),
            others: [const { None }; N_OTHERS],
        }
    }

    /// Returns the host and the port of a client, each as a `str` object.
    pub(crate) fn peer<'py>(
        &mut self,
        py: Python<'py>,
        socket: SocketAddr,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let slot = &mut self.peers[usize::from(socket.port()) % N_PEERS];
        let is_known = slot.as_ref().is_some_and(|peer| peer.socket == socket);
        let peer = match slot {
            Some(peer) if is_known => peer,
            slot => {
                let address = socket.ip().to_string();
                let known = &mut self.others[Other::Address as usize];
                let address = latin1_or_known(py, address.as_bytes(), known)?;
                let port = PyString::new(py, &socket.port().to_string());
                slot.insert(Peer {
                    socket,
                    address: address.unbind(),
                    port: port.into_any().unbind(),
                })
            }
        };
        Ok((peer.address.bind(py).clone(), peer.port.bind(py).clone()))
    }

    /// Returns a value of the request, such as its path, as a `str`. `which` identifies the value,
    /// and `bytes` are its characters in Latin-1. If the cached `str` for `which` has the same
    /// characters, it is returned; otherwise a new `str` is created and cached.
    pub(crate) fn other<'py>(
        &mut self,
        py: Python<'py>,
        which: Other,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        latin1_or_known(py, bytes, &mut self.others[which as usize])
    }

    /// Returns a dict with the items of `template` and the header fields of a request, without
    /// `Content-Length`.
    ///
    /// If an earlier request had the same field names in the same order, its dict is copied, and
    /// only the values that differ are set.
    pub(crate) fn environ<'py>(
        &mut self,
        template: &Bound<'py, PyDict>,
        head: RequestHead<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = template.py();
        let fields = || {
            let all = head.header_bytes();
            // The server sets the length of the body separately.
            all.filter(|(name, _)| !name.eq_ignore_ascii_case(b"content-length"))
        };
        let mut tag = 0_usize;
        for (name, _) in fields() {
            let known = self.field(py, name);
            tag = tag.rotate_left(9) ^ known.key.as_ptr().addr();
        }
        let tag = tag.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let shape = (tag >> 32) % N_SHAPES;
        if self.shapes[shape].tag == tag
            && let Some(environ) = self.shaped(template, shape, fields())?
        {
            return Ok(environ);
        }
        let environ = template.copy()?;
        for (name, value) in fields() {
            self.set_field(&environ, name, value)?;
        }
        self.shapes[shape].learn(template, &environ, tag)?;
        Ok(environ)
    }

    /// Returns a copy of the environ in the slot `shape`, updated with the values of this request's
    /// fields. Returns `None` if the slot is empty, or if its environ has other field names or the
    /// same names in a different order.
    fn shaped<'py, 'f>(
        &mut self,
        template: &Bound<'py, PyDict>,
        shape: usize,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let py = template.py();
        let mut n = 0;
        for (name, _) in fields.clone() {
            let key = self.field(py, name).key.as_ptr();
            if self.shapes[shape]
                .fields
                .get(n)
                .map(|(key, _)| key.as_ptr())
                != Some(key)
            {
                return Ok(None);
            }
            n += 1;
        }
        let Some(made) = &self.shapes[shape].made else {
            return Ok(None);
        };
        if n != self.shapes[shape].fields.len() {
            return Ok(None);
        }
        let environ = made.bind(py).copy()?;
        for (i, (name, value)) in fields.enumerate() {
            let (key, before) = &self.shapes[shape].fields[i];
            if latin1(before.bind_borrowed(py)) != Some(value) {
                let key = key.bind(py).clone();
                let known = &mut self.field(py, name).value;
                environ.set_item(key, latin1_or_known(py, value, known)?)?;
            }
        }
        Ok(Some(environ))
    }

    /// Returns the cached field with this name. If the name is not cached, stores it in its slot,
    /// without a value.
    fn field(&mut self, py: Python<'_>, name: &[u8]) -> &mut RecentField {
        let slot = &mut self.fields[slot_of(name)];
        let is_it = |k: &RecentField| &*k.name == name || k.name.eq_ignore_ascii_case(name);
        if !slot.as_ref().is_some_and(is_it) {
            *slot = None;
        }
        slot.get_or_insert_with(|| RecentField {
            name: name.into(),
            key: key_of(py, name),
            value: None,
        })
    }

    /// Adds a header field to an environ. If the environ already has a field with this name,
    /// appends the new value to the old one, separated by a comma, or by a semicolon and a space
    /// for `Cookie`.
    fn set_field(
        &mut self,
        environ: &Bound<'_, PyDict>,
        name: &[u8],
        value: &[u8],
    ) -> PyResult<()> {
        let py = environ.py();
        let known = self.field(py, name);
        let value = latin1_or_known(py, value, &mut known.value)?;
        let n_before = environ.len();
        // SAFETY: a dict, a `str` and an object. It returns the current value of the key, borrowed
        // from the dict.
        let there = unsafe {
            let there =
                ffi::PyDict_SetDefault(environ.as_ptr(), known.key.as_ptr(), value.as_ptr());
            Bound::from_borrowed_ptr_or_err(py, there)?
        };
        if environ.len() == n_before {
            let joint = match name.eq_ignore_ascii_case(b"cookie") {
                true => "; ",
                false => ",",
            };
            let joint = PyString::new(py, joint);
            let both = there.add(joint)?.add(value)?;
            environ.set_item(&known.key, both)?;
        }
        Ok(())
    }
}

/// The number of cached lists of field names, a power of two.
const N_SHAPES: usize = 16;
/// The maximum number of fields in a cached list of names.
const MOST_FIELDS: usize = 64;

/// A slot of the cache of environs. A request whose fields have the same names in the same order as
/// an earlier one uses a copy of the earlier request's environ.
#[derive(Default)]
struct HeaderShape {
    tag: usize,
    fields: Vec<(Py<PyString>, Py<PyAny>)>,
    /// The WSGI environ. It is cached when a second request has the same list of field names; until
    /// then, this is `None`.
    made: Option<Py<PyDict>>,
}

impl HeaderShape {
    /// Caches the environ of a request if the previous request with this cache entry had the same
    /// list of field names. `tag` is the hash of the list. Otherwise only stores `tag`. In a cached
    /// environ, the items of `template` are followed by the fields in the order of their arrival.
    /// If two fields with the same name were joined, the cached environ is never used, because it
    /// has fewer keys than the request has fields.
    fn learn(
        &mut self,
        template: &Bound<'_, PyDict>,
        environ: &Bound<'_, PyDict>,
        tag: usize,
    ) -> PyResult<()> {
        if self.tag != tag {
            *self = HeaderShape::default();
            self.tag = tag;
            return Ok(());
        }
        let n = environ.len().saturating_sub(template.len());
        if n > MOST_FIELDS || self.made.is_some() {
            return Ok(());
        }
        for (key, value) in environ.iter().skip(template.len()) {
            self.fields
                .push((key.cast_into()?.unbind(), value.unbind()));
        }
        self.made = Some(environ.copy()?.unbind());
        Ok(())
    }
}

/// Returns the environ key of a field: `HTTP_` and the name in upper case. The prefix is omitted
/// for the fields that CGI defines without it.
fn key_of(py: Python<'_>, name: &[u8]) -> Py<PyString> {
    let mut key = String::with_capacity("HTTP_".len() + name.len());
    let is_cgi = [&b"content-type"[..], b"content-length"]
        .iter()
        .any(|n| n.eq_ignore_ascii_case(name));
    if !is_cgi {
        key.push_str("HTTP_");
    }
    key.extend(name.iter().map(|&b| match b {
        b'-' => '_',
        b => char::from(b.to_ascii_uppercase()),
    }));
    PyString::intern(py, &key).unbind()
}

/// Returns the slot of a header name, computed from its length and its first, middle and last byte.
/// Upper and lower case are not distinguished.
fn slot_of(name: &[u8]) -> usize {
    let at = |i: usize| usize::from(name.get(i).copied().unwrap_or(0) | 0x20);
    let n = name.len();
    let last = at(n.wrapping_sub(1));
    (n.wrapping_mul(131)
        ^ at(0).wrapping_mul(7)
        ^ at(n / 2).wrapping_mul(31)
        ^ last.wrapping_mul(61))
        & (N_NAMES - 1)
}

/// Returns a `str` with the Latin-1 characters of `bytes`. If `known` already contains a `str` with
/// these characters, returns it. Otherwise creates a new one, and stores it in `known` if it has at
/// most [`MOST_COMPARED_BYTES`].
fn latin1_or_known<'py>(
    py: Python<'py>,
    bytes: &[u8],
    known: &mut Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(value) = known
        && let Some(text) = latin1(value.bind_borrowed(py))
        && text == bytes
    {
        return Ok(value.bind(py).clone());
    }
    let made = make_latin1(py, bytes)?;
    if bytes.len() <= MOST_COMPARED_BYTES {
        *known = Some(made.clone().unbind());
    }
    Ok(made)
}

/// Creates a `str` with one character for each byte (Latin-1). Copies: each byte is copied once,
/// into the `str`.
fn make_latin1<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if let Some(made) = text::make_bytes_uncounted(py, bytes, true) {
        return Ok(made);
    }
    text::make(
        py,
        Units::Latin1(bytes),
        Policy::Strict,
        &mut Tally::default(),
    )
    .map_err(|e| match e {
        text::MakeError::Python(error) => error,
        text::MakeError::Malformed(_) => {
            PyErr::new::<pyo3::exceptions::PyUnicodeError, _>("Latin-1 has no malformed text")
        }
    })
}

/// Returns the characters of a `str` as Latin-1, one byte per character. Returns `None` for other
/// objects, and for a `str` with characters outside of Latin-1. Copies: none.
#[inline]
pub(crate) fn latin1<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a [u8]> {
    let string = text::any_str(object)?;
    match text::own_units(string) {
        Ok(Units::Latin1(units)) => Some(units),
        _ => None,
    }
}
