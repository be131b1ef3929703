//! Writes the items of a one-dimensional NumPy array as JSON.

use onecopy_text::convert::{FLOAT_BYTES, Kernels, Work};
use onecopy_text::{Pen, Put};
use onecopy_wire::float16::Half;
use onecopy_wire::{NonFinite, json};

use super::array::{ArrayInput, ITEM_BYTES, put_line};
use super::{JsonEncoder, JsonStop, numpy_scalar};
use crate::raw::ndarray::{Bits, Choice, Item, ItemType, Subarray};

/// The number of array items per reservation of space.
const BLOCK: usize = 32;

impl JsonEncoder<'_, '_> {
    /// Writes array items, each with a comma and the bytes `line` (a line break and an indent).
    pub(super) fn row<'s, K: Kernels>(
        &mut self,
        kernels: K,
        array: &ArrayInput<'_>,
        part: Subarray<'_>,
        line: &[u8],
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        match part.dtype().of {
            ItemType::Float64 | ItemType::Float32 | ItemType::Float16 => kernels.call(Floats {
                encoder: self,
                array,
                part,
                line,
                pen,
            }),
            ItemType::Text(_) => self.texts(kernels, array, part, line, pen),
            _ => self.numbers(array, part, line, pen),
        }
    }

    /// Writes array items of a fixed size. `put` writes one item and a comma.
    #[inline(always)]
    fn each<'s, T: Bits>(
        &mut self,
        array: &ArrayInput<'_>,
        part: Subarray<'_>,
        line: &[u8],
        mut pen: Pen<'s>,
        put: impl Fn(T, &mut Pen<'s>) -> Result<(), JsonStop>,
    ) -> Result<Pen<'s>, JsonStop> {
        let items = part.items::<T>();
        let mut at = 0;
        while at < items.len() {
            let n = BLOCK.min(items.len() - at);
            pen = self.reserve(array, n, line.len(), pen)?;
            for i in at..at + n {
                if let Err(stop) = put(items.get(i), &mut pen) {
                    return Err(self.at_index(i, stop));
                }
                put_line(line, &mut pen);
            }
            at += n;
        }
        Ok(pen)
    }

    #[inline(never)]
    fn numbers<'s>(
        &mut self,
        array: &ArrayInput<'_>,
        part: Subarray<'_>,
        line: &[u8],
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        let style = self.style;
        let is_exact = numpy_scalar::is_exact(style);
        let put_comma = |pen: &mut Pen<'s>| {
            pen.put_byte(b',');
            Ok(())
        };
        macro_rules! integers {
            ($bits:ty, $put:path, $value:expr) => {
                self.each(array, part, line, pen, move |bits: $bits, pen| {
                    let value = $value(bits);
                    if is_exact {
                        $put(value, pen);
                        return Ok(());
                    }
                    numpy_scalar::put_limited(value.into(), style, pen)?;
                    put_comma(pen)
                })
            };
        }
        match part.dtype().of {
            ItemType::Bool => self.booleans(array, part, line, pen),
            ItemType::Int8 => integers!(u8, json::put_i64_comma, |bits| i64::from(bits as i8)),
            ItemType::Int16 => integers!(u16, json::put_i64_comma, |bits| i64::from(bits as i16)),
            ItemType::Int32 => integers!(u32, json::put_i64_comma, |bits| i64::from(bits as i32)),
            ItemType::Int64 => integers!(u64, json::put_i64_comma, |bits| bits as i64),
            ItemType::Uint8 => integers!(u8, json::put_u64_comma, u64::from),
            ItemType::Uint16 => integers!(u16, json::put_u64_comma, u64::from),
            ItemType::Uint32 => integers!(u32, json::put_u64_comma, u64::from),
            ItemType::Uint64 => integers!(u64, json::put_u64_comma, u64::from),
            ItemType::Moment(step) => self.each(array, part, line, pen, |bits: u64, pen| {
                numpy_scalar::put_moment(bits as i64, step, style, pen)?;
                put_comma(pen)
            }),
            // The caller handles arrays of other types.
            _ => Err(JsonStop::ArrayChanged),
        }
    }

    /// Writes booleans, four at a time without line breaks. No branch depends on an item.
    #[inline(always)]
    fn booleans<'s>(
        &mut self,
        array: &ArrayInput<'_>,
        part: Subarray<'_>,
        line: &[u8],
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        let items = part.items::<u8>();
        let most = if line.is_empty() { 4 } else { 1 };
        let mut at = 0;
        while at < items.len() {
            let n = BLOCK.min(items.len() - at);
            pen = self.reserve(array, n, line.len(), pen)?;
            let end = at + n;
            while at < end {
                let n = most.min(end - at);
                let four = index_of_four(items.four(at, n));
                pen.put_short(
                    &FOUR_BOOLEANS[four],
                    n * "false,".len() - four.count_ones() as usize,
                );
                put_line(line, &mut pen);
                at += n;
            }
        }
        Ok(pen)
    }

    /// Writes strings, each with a comma and a line break.
    fn texts<'s, K: Kernels>(
        &mut self,
        kernels: K,
        array: &ArrayInput<'_>,
        part: Subarray<'_>,
        line: &[u8],
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        for i in 0..part.len() {
            pen = match self.item(kernels, part.item(i), pen) {
                Ok(pen) => pen,
                Err(stop) => return Err(self.at_index(i, stop)),
            };
            // Reserving space for the text may have run Python code.
            self.check_array(array)?;
            pen = self.reserve(array, 1, line.len(), pen)?;
            pen.put_byte(b',');
            put_line(line, &mut pen);
        }
        Ok(pen)
    }

    /// Writes an item of any type into reserved space.
    pub(super) fn item<'s, K: Kernels>(
        &mut self,
        kernels: K,
        item: Item<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        if let Some(value) = item.scalar() {
            numpy_scalar::put(value, self.style, &mut pen)?;
            return Ok(pen);
        }
        let text = item.to_str(self.py())?;
        // SAFETY: a `str`, which is held here.
        unsafe { self.any_text(kernels, text.as_ptr(), pen) }
    }
}

/// The arguments for writing floats. [`Work::run`] writes them.
struct Floats<'w, 'a, 'py, 'v, 's> {
    encoder: &'w mut JsonEncoder<'a, 'py>,
    array: &'v ArrayInput<'v>,
    part: Subarray<'v>,
    line: &'v [u8],
    pen: Pen<'s>,
}

impl<'s> Work for Floats<'_, '_, '_, '_, 's> {
    type Output = Result<Pen<'s>, JsonStop>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Result<Pen<'s>, JsonStop> {
        let Floats {
            encoder,
            array,
            part,
            line,
            pen,
        } = self;
        let (nan, choice) = (encoder.style.nan, encoder.style.natives.numpy);
        match part.dtype().of {
            ItemType::Float64 => encoder.each(array, part, line, pen, |bits, pen| {
                put_double(kernels, f64::from_bits(bits), nan, pen)
            }),
            ItemType::Float32 => encoder.each(array, part, line, pen, |bits, pen| {
                put_float(kernels, f32::from_bits(bits), nan, pen)
            }),
            _ => encoder.each(array, part, line, pen, |bits, pen| match choice {
                Choice::Orjson => put_float(kernels, Half(bits).to_f64() as f32, nan, pen),
                _ => put_double(kernels, Half(bits).widen(), nan, pen),
            }),
        }
    }
}

/// Writes an `f64` and a comma. The option `nan` applies to NaN and the infinities.
///
/// # Panics
/// If the pen has less space than [`ITEM_BYTES`] bytes.
#[inline(always)]
fn put_double<K: Kernels>(
    kernels: K,
    value: f64,
    nan: NonFinite,
    pen: &mut Pen<'_>,
) -> Result<(), JsonStop> {
    assert!(pen.remaining() >= ITEM_BYTES);
    // SAFETY: that number of bytes is writable; the result is the end of the float.
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
}

/// Writes an `f32` and a comma. The option `nan` applies to NaN and the infinities.
///
/// # Panics
/// As [`put_double`].
#[inline(always)]
fn put_float<K: Kernels>(
    kernels: K,
    value: f32,
    nan: NonFinite,
    pen: &mut Pen<'_>,
) -> Result<(), JsonStop> {
    assert!(pen.remaining() >= ITEM_BYTES);
    // SAFETY: as in `put_double`.
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
}

const _: () = assert!(ITEM_BYTES > FLOAT_BYTES && ITEM_BYTES > FOUR_BYTES);

/// The maximum size of four booleans with commas, in bytes.
const FOUR_BYTES: usize = 4 * "false,".len();

/// The JSON of four booleans with commas. Bit `i` of the index is boolean `i`.
static FOUR_BOOLEANS: [[u8; FOUR_BYTES]; 16] = {
    let mut all = [[0; FOUR_BYTES]; 16];
    let mut i = 0;
    while i < all.len() {
        let (mut at, mut bit) = (0, 0);
        while bit < 4 {
            let word: &[u8] = if i >> bit & 1 == 1 {
                b"true,"
            } else {
                b"false,"
            };
            let mut k = 0;
            while k < word.len() {
                all[i][at] = word[k];
                at += 1;
                k += 1;
            }
            bit += 1;
        }
        i += 1;
    }
    all
};

/// Returns four bits for four bytes: bit `i` is 1 if byte `i` is not zero.
#[inline(always)]
fn index_of_four(bytes: u32) -> usize {
    const LOW: u32 = 0x7F7F_7F7F;
    let ones = (((bytes & LOW) + LOW) | bytes) >> 7 & 0x0101_0101;
    (ones.wrapping_mul(0x0102_0408) >> 24 & 15) as usize
}
