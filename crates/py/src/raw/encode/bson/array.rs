//! Writes NumPy arrays and scalars as BSON, directly from their memory.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::bson::{SUBTYPE_GENERIC, Tag};
use onecopy_wire::datetime64::Step;
use onecopy_wire::float16::Half;
use pyo3::ffi;

use super::index::Index;
use super::step::LENGTH_BYTES;
use super::value::{EMPTY, FIRST_MS, LAST_MS};
use super::{BsonEncoder, BsonStop, ROOM};
use crate::raw::ndarray::{self, Bits, Item, ItemType, NOT_A_TIME, Scalar, Subarray, View};

/// The number of items for which one step reserves space.
const BLOCK: usize = 32;
/// The space for one item: a tag, a key of up to 20 digits with a NUL, and a value. The last 8
/// bytes are spare, because a short key is written with one store.
const ITEM_BYTES: usize = 1 + 21 + 8 + 8;

/// A BSON value of at most eight bytes, with its tag.
pub(super) struct FixedValue {
    pub(super) tag: Tag,
    pub(super) bytes: [u8; 8],
    pub(super) n_bytes: usize,
}

impl FixedValue {
    #[inline(always)]
    fn new<const N: usize>(tag: Tag, bytes: [u8; N]) -> FixedValue {
        let mut all = [0; 8];
        all[..N].copy_from_slice(&bytes);
        FixedValue {
            tag,
            bytes: all,
            n_bytes: N,
        }
    }

    #[inline(always)]
    fn int32(value: i32) -> FixedValue {
        FixedValue::new(Tag::Int32, value.to_le_bytes())
    }

    #[inline(always)]
    fn int64(value: i64) -> FixedValue {
        FixedValue::new(Tag::Int64, value.to_le_bytes())
    }

    #[inline(always)]
    fn double(value: f64) -> FixedValue {
        FixedValue::new(Tag::Double, value.to_le_bytes())
    }
}

impl<'py> BsonEncoder<'_, 'py> {
    /// Writes a NumPy scalar with its tag. The reserved byte for the tag is `n_from_tag` bytes
    /// before the position.
    fn scalar(
        &mut self,
        scalar: Scalar,
        object: *mut ffi::PyObject,
        n_from_tag: usize,
        pen: &mut Pen<'_>,
    ) -> Result<(), BsonStop> {
        let value = self.value_of(scalar)?;
        self.tag_of(value.tag, object, n_from_tag, pen)?;
        pen.put_short(&value.bytes, value.n_bytes);
        Ok(())
    }

    /// Converts a NumPy scalar to a BSON value.
    #[inline(always)]
    pub(super) fn value_of(&self, scalar: Scalar) -> Result<FixedValue, BsonStop> {
        Ok(match scalar {
            Scalar::Bool(value) => FixedValue::new(Tag::Bool, [value.into()]),
            Scalar::Int32(value) => FixedValue::int32(value),
            Scalar::Int64(value) => FixedValue::int64(value),
            Scalar::Uint64(value) => {
                FixedValue::int64(i64::try_from(value).map_err(|_| BsonStop::Int)?)
            }
            Scalar::Half(bits) => FixedValue::double(Half(bits).to_f64()),
            Scalar::Float(value) => FixedValue::double(value.into()),
            Scalar::Double(value) => FixedValue::double(value),
            Scalar::Moment(count, step) => self.moment(count, step)?,
        })
    }

    /// Converts a `datetime64` to a BSON datetime, rounded down to milliseconds. `NaT` becomes
    /// null.
    #[inline]
    fn moment(&self, count: i64, step: Option<Step>) -> Result<FixedValue, BsonStop> {
        if count == NOT_A_TIME {
            return Ok(FixedValue::new(Tag::Null, []));
        }
        let wrong = |reason: &str| BsonStop::Value {
            kind: "datetime",
            reason: reason.to_owned(),
        };
        let step = step.ok_or_else(|| wrong("the datetime64 has no unit"))?;
        let mut ms = step
            .unix_ms(count)
            .ok_or_else(|| wrong("the datetime64 is past 64 bits of milliseconds"))?;
        if !(FIRST_MS..=LAST_MS).contains(&ms) {
            ms = self.forms.ranged(ms)?;
        }
        Ok(FixedValue::new(Tag::DateTime, ms.to_le_bytes()))
    }

    /// Writes a NumPy array with its tag. The reserved byte for the tag is `n_from_tag` bytes
    /// before the position.
    ///
    /// # Safety
    /// `object` must be alive, and `view` must be its view.
    pub(super) unsafe fn array<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        view: &View,
        n_from_tag: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        let Some(item) = view.item() else {
            self.tag_of(Tag::Array, object, n_from_tag, &pen)?;
            if self.frames.depth() + view.n_dims() > self.style.max_depth {
                return Err(BsonStop::TooDeep { is_circular: false });
            }
            return self.part(kernels, view.whole(), pen);
        };
        match (item.scalar(), item.dtype().of) {
            (Some(scalar), _) => self.scalar(scalar, object, n_from_tag, &mut pen)?,
            (None, of) => {
                self.tag_of(tag_of_text(of), object, n_from_tag, &pen)?;
                pen = self.text_item(kernels, item, pen)?;
            }
        }
        Ok(pen)
    }

    /// Writes a one-dimensional array with its tag. Returns `false`, without output, if the space
    /// is too small or BSON cannot represent an item.
    ///
    /// # Safety
    /// `object` must be a live NumPy array. `tag` must be the reserved byte for its tag.
    pub(super) unsafe fn short_array<K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> bool {
        // SAFETY: the caller guarantees what `view_of` requires.
        let view = unsafe { ndarray::view_of(object, self.style.natives.numpy) };
        let fits = |view: &View| {
            let n_bytes = view.n_written().saturating_mul(ITEM_BYTES);
            view.n_dims() == 1
                && !view.dtype().is_text()
                && pen.remaining() >= n_bytes.saturating_add(2 * ROOM)
        };
        let Some(view) = view.filter(fits) else {
            return false;
        };
        // SAFETY: the remaining space of the pen. The pen does not use it until `part` has
        // returned.
        let rest = unsafe { std::slice::from_raw_parts_mut(pen.at().cast(), pen.remaining()) };
        let Ok(end) = self.part(kernels, view.whole(), Pen::new(rest)) else {
            self.within.clear();
            return false;
        };
        // SAFETY: the reserved byte for the tag. All bytes up to the end were written.
        unsafe {
            tag.write(Tag::Array.byte());
            pen.set_at(end.at());
        }
        true
    }

    /// Writes a NumPy array as a BSON array. Further dimensions become nested arrays.
    fn part<'s, K: Kernels>(
        &mut self,
        kernels: K,
        part: Subarray<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        pen = self.ensure_space(pen, ROOM)?;
        if part.len() == 0 {
            pen.put_short(&EMPTY, EMPTY.len());
            return Ok(pen);
        }
        let start = self.offset(&pen);
        pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
        if part.n_dims() == 1 {
            pen = self.row(kernels, part, pen)?;
        } else {
            pen = self.keyed(part.len(), Tag::Array, pen, |encoder, i, pen| {
                encoder.part(kernels, part.part(i), pen)
            })?;
        }
        pen = self.ensure_space(pen, ROOM)?;
        pen.put_byte(0);
        let n_bytes = self.offset(&pen) - start;
        self.patch(start, n_bytes, &pen)?;
        Ok(pen)
    }

    /// Writes `n` items with the tag `tag`. `put` writes the value of an item.
    #[inline(always)]
    fn keyed<'s>(
        &mut self,
        n: usize,
        tag: Tag,
        mut pen: Pen<'s>,
        mut put: impl FnMut(&mut Self, usize, Pen<'s>) -> Result<Pen<'s>, BsonStop>,
    ) -> Result<Pen<'s>, BsonStop> {
        let mut index = Index::at(0);
        for i in 0..n {
            pen = self.ensure_space(pen, ROOM)?;
            let at = pen.at();
            index.put(i, &mut pen);
            // SAFETY: the reserved byte for the tag.
            unsafe { at.write(tag.byte()) };
            pen = match put(self, i, pen) {
                Ok(pen) => pen,
                Err(stop) => return Err(self.at_index(i, stop)),
            };
        }
        Ok(pen)
    }

    /// Adds `[index]` at the start of the path of the failed item. Each dimension calls this
    /// function, the innermost first.
    #[cold]
    fn at_index(&mut self, index: usize, stop: BsonStop) -> BsonStop {
        self.within.insert_str(0, &format!("[{index}]"));
        stop
    }

    /// Writes the items of a one-dimensional array. `value` converts an item to a BSON value.
    #[inline(always)]
    fn each<'s, T: Bits>(
        &mut self,
        part: Subarray<'_>,
        mut pen: Pen<'s>,
        value: impl Fn(&Self, T) -> Result<FixedValue, BsonStop>,
    ) -> Result<Pen<'s>, BsonStop> {
        let items = part.items::<T>();
        let mut index = Index::at(0);
        let mut at = 0;
        while at < items.len() {
            let n = BLOCK.min(items.len() - at);
            pen = self.ensure_space(pen, n * ITEM_BYTES)?;
            for i in at..at + n {
                let value = match value(self, items.get(i)) {
                    Ok(value) => value,
                    Err(stop) => return Err(self.at_index(i, stop)),
                };
                let tag = pen.at();
                index.put(i, &mut pen);
                // SAFETY: the reserved byte for the tag.
                unsafe { tag.write(value.tag.byte()) };
                pen.put_short(&value.bytes, value.n_bytes);
            }
            at += n;
        }
        Ok(pen)
    }

    /// Writes the items of a one-dimensional array.
    fn row<'s, K: Kernels>(
        &mut self,
        kernels: K,
        part: Subarray<'_>,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        match part.dtype().of {
            ItemType::Bool => self.each(part, pen, |_, bits: u8| {
                Ok(FixedValue::new(Tag::Bool, [u8::from(bits != 0)]))
            }),
            ItemType::Int8 => self.each(part, pen, |_, bits: u8| {
                Ok(FixedValue::int32((bits as i8).into()))
            }),
            ItemType::Int16 => self.each(part, pen, |_, bits: u16| {
                Ok(FixedValue::int32((bits as i16).into()))
            }),
            ItemType::Int32 => {
                self.each(part, pen, |_, bits: u32| Ok(FixedValue::int32(bits as i32)))
            }
            ItemType::Int64 => {
                self.each(part, pen, |_, bits: u64| Ok(FixedValue::int64(bits as i64)))
            }
            ItemType::Uint8 => {
                self.each(part, pen, |_, bits: u8| Ok(FixedValue::int32(bits.into())))
            }
            ItemType::Uint16 => {
                self.each(part, pen, |_, bits: u16| Ok(FixedValue::int32(bits.into())))
            }
            ItemType::Uint32 => {
                self.each(part, pen, |_, bits: u32| Ok(FixedValue::int64(bits.into())))
            }
            ItemType::Uint64 => self.each(part, pen, |encoder, bits: u64| {
                encoder.value_of(Scalar::Uint64(bits))
            }),
            ItemType::Float16 => self.each(part, pen, |_, bits: u16| {
                Ok(FixedValue::double(Half(bits).to_f64()))
            }),
            ItemType::Float32 => self.each(part, pen, |_, bits: u32| {
                Ok(FixedValue::double(f32::from_bits(bits).into()))
            }),
            ItemType::Float64 => self.each(part, pen, |_, bits: u64| {
                Ok(FixedValue::double(f64::from_bits(bits)))
            }),
            ItemType::Moment(step) => self.each(part, pen, |encoder, bits: u64| {
                encoder.moment(bits as i64, step)
            }),
            of @ (ItemType::Text(_) | ItemType::Binary(_)) => {
                self.keyed(part.len(), tag_of_text(of), pen, |encoder, i, pen| {
                    encoder.text_item(kernels, part.item(i), pen)
                })
            }
        }
    }

    /// Writes a string or a binary value.
    fn text_item<'s, K: Kernels>(
        &mut self,
        kernels: K,
        item: Item<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        if let ItemType::Text(_) = item.dtype().of {
            let text = item.to_str(self.py())?;
            // SAFETY: `text` is a `str`, and alive.
            return unsafe { self.any_text(kernels, text.as_ptr(), pen) };
        }
        let mut binary = Vec::new();
        item.binary(&mut binary).ok_or(BsonStop::Full)?;
        if binary.len() > self.style.max_bytes {
            return Err(BsonStop::TooLong);
        }
        pen = self.ensure_space(pen, binary.len() + ROOM)?;
        pen.put(&(binary.len() as u32).to_le_bytes());
        pen.put_byte(SUBTYPE_GENERIC);
        pen.put(&binary);
        Ok(pen)
    }
}

fn tag_of_text(of: ItemType) -> Tag {
    match of {
        ItemType::Text(_) => Tag::String,
        _ => Tag::Binary,
    }
}
