//! `Uuid`: the column kind (the bound buffer, and its conversion to a [`Cell`]) for UUIDs.

use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::Cell;
use crate::odbc::ffi::{GuidStruct, c};
use crate::schema::ColumnType;

/// A UUID, bound as `SQLGUID`: three fields in native byte order, then eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uuid;

impl Uuid {
    pub(crate) fn plan() -> ColumnBinding<Self> {
        (Uuid, Spec::fixed(c::GUID, 16), ColumnType::Uuid)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Uuid(from_guid(raw.array(0)))
    }
}

/// Converts a UUID from the byte order of `SQLGUID` to that of RFC 9562.
pub(crate) fn from_guid(guid: [u8; 16]) -> [u8; 16] {
    let mut uuid = guid;
    if cfg!(target_endian = "little") {
        uuid[..4].reverse();
        uuid[4..6].reverse();
        uuid[6..8].reverse();
    }
    uuid
}

/// Converts a UUID in the byte order of RFC 9562 to the struct `SQLGUID`.
pub(crate) fn guid(uuid: [u8; 16]) -> GuidStruct {
    let [a, b, c, d, e, f, g, h, data4 @ ..] = uuid;
    GuidStruct {
        data1: u32::from_be_bytes([a, b, c, d]),
        data2: u16::from_be_bytes([e, f]),
        data3: u16::from_be_bytes([g, h]),
        data4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_fields_become_network_order() {
        let guid: Vec<u8> = [
            0x7C4A_2EE7u32.to_ne_bytes().to_vec(),
            0xAF3Du16.to_ne_bytes().to_vec(),
            0x436Du16.to_ne_bytes().to_vec(),
            vec![0xAC, 0xCA, 0x4E, 0x05, 0x91, 0x9B, 0xDC, 0xEA],
        ]
        .concat();
        let uuid = from_guid(guid.try_into().unwrap());
        assert_eq!(uuid[..8], [0x7C, 0x4A, 0x2E, 0xE7, 0xAF, 0x3D, 0x43, 0x6D]);
    }
}
