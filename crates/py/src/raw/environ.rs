//! The environ of a WSGI request (PEP 3333), made in one pass over its head.
//!
//! Values are Latin-1 in the sense of the PEP: each character is a byte that was sent. Names, and values that come again and
//! again, are made once.

use std::net::SocketAddr;

use onecopy_text::{Policy, Tally, Units};
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

    /// Puts a header field into an environ. A second one of the same name is joined to the first.
    pub(crate) fn set_field(
        &mut self,
        environ: &Bound<'_, PyDict>,
        name: &[u8],
        value: &[u8],
    ) -> PyResult<()> {
        let py = environ.py();
        let slot = &mut self.fields[slot_of(name)];
        if !slot
            .as_ref()
            .is_some_and(|k| k.name.eq_ignore_ascii_case(name))
        {
            *slot = Some(Known {
                name: name.into(),
                key: key_of(py, name),
                value: None,
            });
        }
        let Some(known) = slot else {
            return Ok(());
        };
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
