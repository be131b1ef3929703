//! The environ of a WSGI request (PEP 3333), made in one pass over its head.
//!
//! Values are Latin-1 in the sense of the PEP: each character is a byte that was sent. Names, and values that come again and
//! again, are made once.

use std::net::SocketAddr;

use onecopy_text::{Policy, Tally, Units};
use onecopy_wire::http::RequestHead;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{Borrowed, ffi};

use super::text;

/// Names that are remembered with their last value, a power of two. Two that fall together take turns.
const N_NAMES: usize = 256;
/// A value is compared with the one before it up to this length.
const MOST_COMPARED_BYTES: usize = 512;

/// What a header field was when it came last.
struct Known {
    name: Box<[u8]>,
    key: Py<PyString>,
    value: Option<Py<PyAny>>,
}

/// Clients whose address is kept as text, a power of two; the port says which place is whose.
const N_PEERS: usize = 512;

/// The address and the port of a client.
struct Peer {
    socket: SocketAddr,
    address: Py<PyAny>,
    port: Py<PyAny>,
}

/// `str` objects of names and values of the requests before.
pub(crate) struct Strings {
    fields: Vec<Option<Known>>,
    shapes: Vec<Shape>,
    peers: Vec<Option<Peer>>,
    others: [Option<Py<PyAny>>; N_OTHERS],
}

/// What else comes again from request to request.
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
            shapes: (0..N_SHAPES).map(|_| Shape::default()).collect(),
            peers: (0..N_PEERS).map(|_| None).collect(),
            others: [const { None }; N_OTHERS],
        }
    }

    /// A client's address and its port, each a `str`.
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

    /// A `str` of these bytes: the one before it, where it is the same.
    pub(crate) fn other<'py>(
        &mut self,
        py: Python<'py>,
        which: Other,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        latin1_or_known(py, bytes, &mut self.others[which as usize])
    }

    /// What `template` holds, and the header fields of a request but for its length.
    ///
    /// Fields of the same names in the same order as those of requests before come with a copy of what these made, and only
    /// values that differ are put there.
    pub(crate) fn environ<'py>(
        &mut self,
        template: &Bound<'py, PyDict>,
        head: RequestHead<'_>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = template.py();
        let fields = || {
            let all = head.header_bytes();
            // A body is measured by now.
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

    /// A copy of what a shape has, with these fields; `None` where they are others.
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

    /// What is remembered of a name.
    fn field(&mut self, py: Python<'_>, name: &[u8]) -> &mut Known {
        let slot = &mut self.fields[slot_of(name)];
        let is_it = |k: &Known| &*k.name == name || k.name.eq_ignore_ascii_case(name);
        if !slot.as_ref().is_some_and(is_it) {
            *slot = None;
        }
        slot.get_or_insert_with(|| Known {
            name: name.into(),
            key: key_of(py, name),
            value: None,
        })
    }

    /// Puts a header field into an environ. A second one of the same name is joined to the first.
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
        // SAFETY: a dict, a `str` and an object. It returns what stands there now, borrowed from the dict.
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

/// Lists of names that are remembered, a power of two.
const N_SHAPES: usize = 16;
/// Fields of a list that is remembered, at most.
const MOST_FIELDS: usize = 64;

/// The header fields of requests with the same names in the same order, which came a second time.
#[derive(Default)]
struct Shape {
    tag: usize,
    fields: Vec<(Py<PyString>, Py<PyAny>)>,
    /// An environ with these fields.
    made: Option<Py<PyDict>>,
}

impl Shape {
    /// Notes a list of names, or keeps what was made for it where it was noted before. Fields stand behind those of the template in
    /// the order in which they came; where some were joined, nothing is kept.
    fn learn(
        &mut self,
        template: &Bound<'_, PyDict>,
        environ: &Bound<'_, PyDict>,
        tag: usize,
    ) -> PyResult<()> {
        if self.tag != tag {
            *self = Shape::default();
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

/// `HTTP_` and the name in capitals, or without `HTTP_` where CGI has it so.
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

/// Where a name is remembered, by its length, its ends and its middle, whatever its case.
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

/// A `str` of these bytes; the one in `known`, where it is the same, and there from now on.
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

/// A new `str` with a character for each byte. Copies: one, into the `str`.
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

/// The characters of a `str`, a byte for each; `None` of what is no `str`, and of one with characters beyond Latin-1. Copies: none.
#[inline]
pub(crate) fn latin1<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a [u8]> {
    let string = text::any_str(object)?;
    match text::own_units(string) {
        Ok(Units::Latin1(units)) => Some(units),
        _ => None,
    }
}
