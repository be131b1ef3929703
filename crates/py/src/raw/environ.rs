//! Creates the environ of a WSGI request, a dict of PEP 3333.
//!
//! Values are decoded as Latin-1. The `str` objects of names and of frequent values are cached.

use std::net::SocketAddr;

use onecopy_text::{Policy, Tally, Units};
use onecopy_wire::http::RequestHead;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{Borrowed, ffi};

use super::text;

/// The number of slots for header names, a power of two.
const N_NAMES: usize = 256;
/// The maximum size of a header value in bytes for a comparison with the cached `str`.
const MOST_COMPARED_BYTES: usize = 512;

/// The name of a header field, its environ key and its most recent value.
struct RecentField {
    name: Box<[u8]>,
    key: Py<PyString>,
    value: Option<Py<PyAny>>,
}

/// The number of slots for clients, a power of two. The client's port determines the slot.
const N_PEERS: usize = 512;

/// The address of a client, with its host and port as `str` objects.
struct Peer {
    socket: SocketAddr,
    address: Py<PyAny>,
    port: Py<PyAny>,
}

/// A cache of `str` objects from earlier requests.
pub(crate) struct Strings {
    fields: Vec<Option<RecentField>>,
    shapes: Vec<HeaderShape>,
    peers: Vec<Option<Peer>>,
    others: [Option<Py<PyAny>>; N_OTHERS],
}

/// The cached values of a request that are not header fields.
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

    /// Returns the host and the port of a client as `str` objects.
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

    /// Returns a value of the request as a `str`. `which` identifies its cached `str`, which is
    /// reused if it equals `bytes`.
    pub(crate) fn other<'py>(
        &mut self,
        py: Python<'py>,
        which: Other,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        latin1_or_known(py, bytes, &mut self.others[which as usize])
    }

    /// Returns a dict of `template` and the header fields, without `Content-Length`.
    ///
    /// If an earlier request had the same field names in the same order, copies its dict.
    pub(crate) fn environ<'py>(
        &mut self,
        template: &Bound<'py, PyDict>,
        head: RequestHead<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = template.py();
        let fields = || {
            let all = head.header_bytes();
            // The server sets this length separately.
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

    /// Returns a copy of the environ in the slot `shape`, with the values of this request. `None`
    /// if the slot is empty, or if its field names differ.
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

    /// Returns the cached field with this name, or stores the name without a value.
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

    /// Adds a header field to an environ. A repeated field is appended to the first one, after a
    /// comma, or after `; ` for `Cookie`.
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
        // SAFETY: a dict, a `str` and an object. Returns the current value, borrowed from the dict.
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

/// The number of cached environs, a power of two.
const N_SHAPES: usize = 16;
/// The maximum number of fields in a cached environ.
const MOST_FIELDS: usize = 64;

/// A slot of the cache of environs. A request with the same field names in the same order copies
/// this environ.
#[derive(Default)]
struct HeaderShape {
    tag: usize,
    fields: Vec<(Py<PyString>, Py<PyAny>)>,
    /// `None` until a second request has the same field names.
    made: Option<Py<PyDict>>,
}

impl HeaderShape {
    /// Caches the environ if the previous request of this slot had the same field names. Otherwise
    /// only stores their hash `tag`. In the environ, `template` precedes the fields. An environ
    /// with joined fields is never used, because its number of keys differs.
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

/// Returns the environ key of a field: `HTTP_` and the name in upper case. CGI defines some fields
/// without the prefix.
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

/// Returns the slot of a header name. The case is ignored.
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

/// Returns `bytes` as a `str`, from `known` if it has the same characters. Otherwise stores the new
/// `str` in `known`, up to [`MOST_COMPARED_BYTES`].
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

/// Converts Latin-1 to a `str`. Copies: each byte is copied once.
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

/// Returns the characters of a `str` as Latin-1. `None` for other objects and characters. Copies:
/// none.
#[inline]
pub(crate) fn latin1<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a [u8]> {
    let string = text::any_str(object)?;
    match text::own_units(string) {
        Ok(Units::Latin1(units)) => Some(units),
        _ => None,
    }
}
