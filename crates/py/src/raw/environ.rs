//! Creates the environ of a WSGI request, which is the dict that PEP 3333 defines, from the head of
//! an HTTP request.
//!
//! Values are decoded as Latin-1, as PEP 3333 defines: each character is a received byte. The `str`
//! objects of names, and of values that occur in many requests, are created once.

use std::net::SocketAddr;

use onecopy_text::{Policy, Tally, Units};
use onecopy_wire::http::RequestHead;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{Borrowed, ffi};

use super::text;

/// The number of slots for header names, a power of two. If two names have the same slot, only the
/// name that occurred last is cached.
const N_NAMES: usize = 256;
/// The largest size in bytes of a value that is compared with the previous value of its field.
const MOST_COMPARED_BYTES: usize = 512;

/// A header field of an earlier request: its name, its environ key and its last value.
struct RecentField {
    name: Box<[u8]>,
    key: Py<PyString>,
    value: Option<Py<PyAny>>,
}

/// The number of slots for addresses of clients, a power of two. The port of a client determines
/// its slot.
const N_PEERS: usize = 512;

/// The address of a client, and its address and port as `str` objects.
struct Peer {
    socket: SocketAddr,
    address: Py<PyAny>,
    port: Py<PyAny>,
}

/// A cache of the `str` objects that earlier requests have created: header names and values,
/// addresses of clients, and paths.
pub(crate) struct Strings {
    fields: Vec<Option<RecentField>>,
    shapes: Vec<HeaderShape>,
    peers: Vec<Option<Peer>>,
    others: [Option<Py<PyAny>>; N_OTHERS],
}

/// The values of a request other than header fields. Each of them is often the same in the next
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

    /// Returns the address and the port of a client, each as a `str` object.
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

    /// Returns a `str` with the characters of `bytes` (Latin-1). If the previous `str` for the
    /// value `which` has the same characters, this object is returned; otherwise a new one is
    /// created.
    pub(crate) fn other<'py>(
        &mut self,
        py: Python<'py>,
        which: Other,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        latin1_or_known(py, bytes, &mut self.others[which as usize])
    }

    /// Returns a dict with the items of `template` and the header fields of a request, except for
    /// the field `Content-Length`.
    ///
    /// If the request has the same field names in the same order as an earlier request, the earlier
    /// request's dict is copied, and only values that differ are set.
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

    /// Returns a copy of the environ in the slot `shape`, with the values of this request's fields.
    /// Returns `None` if the slot contains no environ, or if its field names are not those of this
    /// request in the same order.
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

    /// Returns the cached field with this name. If the name is not cached, a field without a value
    /// replaces the contents of its slot.
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

    /// Adds a header field to an environ. If the environ already has a field with this name, the
    /// new value is appended to the old one, after a comma. The separator of `Cookie` fields is a
    /// semicolon and a space.
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

/// The number of slots for lists of field names, a power of two.
const N_SHAPES: usize = 16;
/// The largest number of fields in a cached list of names.
const MOST_FIELDS: usize = 64;

/// A slot of the cache of environs, which is keyed by the list of field names. It contains the
/// environ of an earlier request whose fields had these names in this order.
#[derive(Default)]
struct HeaderShape {
    tag: usize,
    fields: Vec<(Py<PyString>, Py<PyAny>)>,
    /// The environ of the second request with this list of names; `None` if the list of names has
    /// occurred only once.
    made: Option<Py<PyDict>>,
}

impl HeaderShape {
    /// Caches the list of field names of a request, identified by the hash `tag`. If this list was
    /// cached before, also caches the environ. In the environ, the items of `template` are followed
    /// by the fields, in the order of their arrival. If two fields with the same name were joined,
    /// the cached environ is never used, because it has fewer keys than a request has fields.
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

/// Returns the environ key of a field: `HTTP_` and the name in capitals, or only the name in
/// capitals for fields that CGI defines without the prefix `HTTP_`.
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

/// Returns the slot of a header name. It is computed from the length and from the first, middle and
/// last byte, without distinguishing upper and lower case.
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

/// Returns a `str` with the characters of `bytes` (Latin-1). If the object in `known` has these
/// characters, it is returned. Otherwise a new object is returned, and stored in `known` if it has
/// at most [`MOST_COMPARED_BYTES`].
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

/// Creates a `str` with one character for each byte (Latin-1). Copies: each byte once, into the
/// `str`.
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

/// Returns the characters of a `str` as one byte each. `None` for other objects, and for a `str`
/// with characters outside of Latin-1. Copies: none.
#[inline]
pub(crate) fn latin1<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a [u8]> {
    let string = text::any_str(object)?;
    match text::own_units(string) {
        Ok(Units::Latin1(units)) => Some(units),
        _ => None,
    }
}
