//! Arrays and scalars of NumPy as BSON, from their memory into the chunk.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::bson::{SUBTYPE_GENERIC, Tag};
use onecopy_wire::datetime64::Step;
use onecopy_wire::half::Half;
use pyo3::ffi;

use super::index::Index;
use super::step::LENGTH_BYTES;
use super::value::{EMPTY, FIRST_MS, LAST_MS};
use super::{ROOM, Stop, Walk};
use crate::raw::ndarray::{Bits, Item, ItemType, NOT_A_TIME, Part, Scalar, View};

/// Items that space is made for at once.
const BLOCK: usize = 32;
/// Bytes of a number at most, with its tag and its key: an index of 20 digits and a NUL; and of
/// what follows it.
const ITEM_BYTES: usize = 1 + 21 + 8 + 8;

/// A value of eight bytes at most, the first of which are written.
struct Value {
    tag: Tag,
    bytes: [u8; 8],
    n_bytes: usize,
}

impl Value {
    #[inline(always)]
    fn new<const N: usize>(tag: Tag, bytes: [u8; N]) -> Value {
        let mut all = [0; 8];
        all[..N].copy_from_slice(&bytes);
        Value {
            tag,
            bytes: all,
            n_bytes: N,
        }
    }

    #[inline(always)]
    fn int32(value: i32) -> Value {
        Value::new(Tag::Int32, value.to_le_bytes())
    }

    #[inline(always)]
    fn int64(value: i64) -> Value {
        Value::new(Tag::Int64, value.to_le_bytes())
    }

    #[inline(always)]
    fn double(value: f64) -> Value {
        Value::new(Tag::Double, value.to_le_bytes())
    }
}

impl<'py> Walk<'_, 'py> {
    /// Writes a scalar of NumPy's, whose tag is `n_behind` bytes before the pen.
    pub(super) fn scalar(
        &mut self,
        scalar: Scalar,
        object: *mut ffi::PyObject,
        n_behind: usize,
        pen: &mut Pen<'_>,
    ) -> Result<(), Stop> {
        let value = self.value_of(scalar)?;
        self.tag_of(value.tag, object, n_behind, pen)?;
        pen.put_short(&value.bytes, value.n_bytes);
        Ok(())
    }

    /// The form of a value.
    #[inline(always)]
    fn value_of(&self, scalar: Scalar) -> Result<Value, Stop> {
        Ok(match scalar {
            Scalar::Bool(value) => Value::new(Tag::Bool, [value.into()]),
            Scalar::Int32(value) => Value::int32(value),
            Scalar::Int64(value) => Value::int64(value),
            Scalar::Uint64(value) => Value::int64(i64::try_from(value).map_err(|_| Stop::Int)?),
            Scalar::Half(bits) => Value::double(Half(bits).to_f64()),
            Scalar::Float(value) => Value::double(value.into()),
            Scalar::Double(value) => Value::double(value),
            Scalar::Moment(count, step) => self.moment(count, step)?,
        })
    }

    /// A moment, floored to milliseconds; null if it is not a time.
    #[inline]
    fn moment(&self, count: i64, step: Option<Step>) -> Result<Value, Stop> {
        if count == NOT_A_TIME {
            return Ok(Value::new(Tag::Null, []));
        }
        let wrong = |reason: &str| Stop::Value {
            kind: "datetime",
            reason: reason.to_owned(),
        };
        let step = step.ok_or_else(|| wrong("the datetime64 has no unit"))?;
        let mut ms = step
            .unix_ms(count)
            .ok_or_else(|| wrong("the datetime64 is past 64 bits of milliseconds"))?;
        if !(FIRST_MS..=LAST_MS).contains(&ms) {
            ms = self.others.ranged(ms)?;
        }
        Ok(Value::new(Tag::DateTime, ms.to_le_bytes()))
    }

    /// Writes the array of NumPy's of which this is the view; its tag is `n_behind` bytes
    /// before the pen.
    ///
    /// # Safety
    /// `object` is alive, and the view is that of it.
    pub(super) unsafe fn array<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        view: &View,
        n_behind: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        let Some(item) = view.item() else {
            self.tag_of(Tag::Array, object, n_behind, &pen)?;
            if self.frames.depth() + view.n_dims() > self.style.max_depth {
                return Err(Stop::TooDeep { is_circular: false });
            }
            return self.part(kernels, view.whole(), pen);
        };
        match (item.scalar(), item.dtype().of) {
            (Some(scalar), _) => self.scalar(scalar, object, n_behind, &mut pen)?,
            (None, of) => {
                self.tag_of(tag_of_text(of), object, n_behind, &pen)?;
                pen = self.text_item(kernels, item, pen)?;
            }
        }
        Ok(pen)
    }

    /// Writes an array of one dimension or more.
    fn part<'s, K: Kernels>(
        &mut self,
        kernels: K,
        part: Part<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        pen = self.room(pen, ROOM)?;
        if part.len() == 0 {
            pen.put_short(&EMPTY, EMPTY.len());
            return Ok(pen);
        }
        let start = self.offset(&pen);
        pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
        if part.n_dims() == 1 {
            pen = self.row(kernels, part, pen)?;
        } else {
            pen = self.keyed(part.len(), Tag::Array, pen, |walk, i, pen| {
                walk.part(kernels, part.part(i), pen)
            })?;
        }
        pen = self.room(pen, ROOM)?;
        pen.put_byte(0);
        let n_bytes = self.offset(&pen) - start;
        self.patch(start, n_bytes, &pen)?;
        Ok(pen)
    }

    /// Writes values of one tag and of any length, each after its key.
    #[inline(always)]
    fn keyed<'s>(
        &mut self,
        n: usize,
        tag: Tag,
        mut pen: Pen<'s>,
        mut put: impl FnMut(&mut Self, usize, Pen<'s>) -> Result<Pen<'s>, Stop>,
    ) -> Result<Pen<'s>, Stop> {
        let mut index = Index::of(Index::FIRST);
        for i in 0..n {
            pen = self.room(pen, ROOM)?;
            let at = pen.at();
            index.put(i, &mut pen);
            // SAFETY: the byte that was left for the tag.
            unsafe { at.write(tag.byte()) };
            pen = match put(self, i, pen) {
                Ok(pen) => pen,
                Err(stop) => return Err(self.at_index(i, stop)),
            };
        }
        Ok(pen)
    }

    /// Notes where in an array an error is: from the innermost index to the outermost.
    #[cold]
    fn at_index(&mut self, index: usize, stop: Stop) -> Stop {
        self.within.insert_str(0, &format!("[{index}]"));
        stop
    }

    /// Writes items of one size, each after its key.
    #[inline(always)]
    fn each<'s, T: Bits>(
        &mut self,
        part: Part<'_>,
        mut pen: Pen<'s>,
        value: impl Fn(&Self, T) -> Result<Value, Stop>,
    ) -> Result<Pen<'s>, Stop> {
        let items = part.items::<T>();
        let mut index = Index::of(Index::FIRST);
        let mut at = 0;
        while at < items.len() {
            let n = BLOCK.min(items.len() - at);
            pen = self.room(pen, n * ITEM_BYTES)?;
            for i in at..at + n {
                let value = match value(self, items.get(i)) {
                    Ok(value) => value,
                    Err(stop) => return Err(self.at_index(i, stop)),
                };
                let tag = pen.at();
                index.put(i, &mut pen);
                // SAFETY: the byte that was left for the tag.
                unsafe { tag.write(value.tag.byte()) };
                pen.put_short(&value.bytes, value.n_bytes);
            }
            at += n;
        }
        Ok(pen)
    }

    /// Writes the items of an array of one dimension.
    fn row<'s, K: Kernels>(
        &mut self,
        kernels: K,
        part: Part<'_>,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        match part.dtype().of {
            ItemType::Bool => self.each(part, pen, |_, bits: u8| {
                Ok(Value::new(Tag::Bool, [u8::from(bits != 0)]))
            }),
            ItemType::Int8 => self.each(part, pen, |_, bits: u8| {
                Ok(Value::int32((bits as i8).into()))
            }),
            ItemType::Int16 => self.each(part, pen, |_, bits: u16| {
                Ok(Value::int32((bits as i16).into()))
            }),
            ItemType::Int32 => self.each(part, pen, |_, bits: u32| Ok(Value::int32(bits as i32))),
            ItemType::Int64 => self.each(part, pen, |_, bits: u64| Ok(Value::int64(bits as i64))),
            ItemType::Uint8 => self.each(part, pen, |_, bits: u8| Ok(Value::int32(bits.into()))),
            ItemType::Uint16 => self.each(part, pen, |_, bits: u16| Ok(Value::int32(bits.into()))),
            ItemType::Uint32 => self.each(part, pen, |_, bits: u32| Ok(Value::int64(bits.into()))),
            ItemType::Uint64 => self.each(part, pen, |walk, bits: u64| {
                walk.value_of(Scalar::Uint64(bits))
            }),
            ItemType::Float16 => self.each(part, pen, |_, bits: u16| {
                Ok(Value::double(Half(bits).to_f64()))
            }),
            ItemType::Float32 => self.each(part, pen, |_, bits: u32| {
                Ok(Value::double(f32::from_bits(bits).into()))
            }),
            ItemType::Float64 => self.each(part, pen, |_, bits: u64| {
                Ok(Value::double(f64::from_bits(bits)))
            }),
            ItemType::Moment(step) => {
                self.each(part, pen, |walk, bits: u64| walk.moment(bits as i64, step))
            }
            of @ (ItemType::Text(_) | ItemType::Binary(_)) => {
                self.keyed(part.len(), tag_of_text(of), pen, |walk, i, pen| {
                    walk.text_item(kernels, part.item(i), pen)
                })
            }
        }
    }

    /// Writes text or binary.
    fn text_item<'s, K: Kernels>(
        &mut self,
        kernels: K,
        item: Item<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        if let ItemType::Text(_) = item.dtype().of {
            let text = item.to_str(self.py())?;
            // SAFETY: a `str`, which is held here.
            return unsafe { self.any_text(kernels, text.as_ptr(), pen) };
        }
        let mut binary = Vec::new();
        item.binary(&mut binary).ok_or(Stop::Full)?;
        if binary.len() > self.style.max_size {
            return Err(Stop::TooLong);
        }
        pen = self.room(pen, binary.len() + ROOM)?;
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
