//! The floats of an array of NumPy.

use onecopy_text::convert::{Kernels, Work};
use onecopy_text::{Pen, Put};
use onecopy_wire::json;

use super::array::Array;
use super::{Stop, Walk};
use crate::raw::ndarray::{ItemType, Part};

/// The floats of an array of one dimension. As work they are written, a comma and the line after
/// each.
pub(super) struct Floats<'w, 'a, 'py, 'v, 's> {
    pub(super) walk: &'w mut Walk<'a, 'py>,
    pub(super) array: &'v Array<'v>,
    pub(super) part: Part<'v>,
    pub(super) line: &'v [u8],
    pub(super) pen: Pen<'s>,
}

impl<'s> Work for Floats<'_, '_, '_, '_, 's> {
    type Output = Result<Pen<'s>, Stop>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Result<Pen<'s>, Stop> {
        let Floats {
            walk,
            array,
            part,
            line,
            pen,
        } = self;
        let nan = walk.style.nan;
        match part.dtype().of {
            ItemType::Float32 => walk.each(array, part, line, pen, |bits, pen| {
                let value = f32::from_bits(bits);
                // SAFETY: there is space for an item and its comma; the item ends at the address
                // that comes back.
                unsafe {
                    if let Some(end) = kernels.json_float32(value, pen.at()) {
                        end.write(b',');
                        pen.set_at(end.add(1));
                        return Ok(());
                    }
                }
                json::put_f32(value, nan, pen)?;
                pen.put_byte(b',');
                Ok(())
            }),
            _ => walk.each(array, part, line, pen, |bits, pen| {
                let value = f64::from_bits(bits);
                // SAFETY: there is space for an item and its comma; the item ends at the address
                // that comes back.
                unsafe {
                    if let Some(end) = kernels.json_float(value, pen.at()) {
                        end.write(b',');
                        pen.set_at(end.add(1));
                        return Ok(());
                    }
                }
                json::put_f64(value, nan, pen)?;
                pen.put_byte(b',');
                Ok(())
            }),
        }
    }
}
