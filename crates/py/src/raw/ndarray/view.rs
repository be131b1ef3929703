//! `View`: the memory of an array, with its shape and strides.

use std::ffi::c_int;
use std::marker::PhantomData;

use super::{DType, ItemType, Scalar};

/// The memory of an array. After Python code has run, check it with
/// [`is_current`](super::is_current) before a read.
pub(crate) struct View {
    first: *const u8,
    dtype: DType,
    n_dims: usize,
    /// The length and stride of each dimension, for up to [`INLINE_DIMS`] dimensions. Unused
    /// entries have no meaning.
    inline_dims: [Dim; INLINE_DIMS],
    /// The length and stride of each dimension, above [`INLINE_DIMS`] dimensions.
    heap_dims: Vec<Dim>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dim {
    len: usize,
    stride: isize,
}

/// The maximum number of dimensions without an allocation.
const INLINE_DIMS: usize = 3;

impl View {
    /// Creates the view of an array. Returns `None` if the length of a dimension is invalid.
    ///
    /// # Safety
    /// The arguments must describe an array as NumPy stores it, with `n_dims` lengths and strides.
    /// The address of an item is `first` plus the sum of each index multiplied by its stride.
    #[inline]
    pub(super) unsafe fn new(
        first: *const u8,
        n_dims: c_int,
        shape: *const isize,
        strides: *const isize,
        dtype: DType,
    ) -> Option<View> {
        let n_dims = usize::try_from(n_dims).ok()?;
        let dim = |i: usize| {
            // SAFETY: as many lengths and strides, as the caller guarantees.
            let (len, stride) = unsafe { (*shape.add(i), *strides.add(i)) };
            let len = usize::try_from(len).ok()?;
            Some(Dim { len, stride })
        };
        let mut inline_dims = [Dim::default(); INLINE_DIMS];
        let mut heap_dims = Vec::new();
        if n_dims <= INLINE_DIMS {
            for (i, place) in inline_dims.iter_mut().enumerate().take(n_dims) {
                *place = dim(i)?;
            }
        } else {
            heap_dims = (0..n_dims).map(dim).collect::<Option<_>>()?;
        }
        Some(View {
            first,
            dtype,
            n_dims,
            inline_dims,
            heap_dims,
        })
    }

    #[inline(always)]
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    #[inline(always)]
    pub(crate) fn n_dims(&self) -> usize {
        self.n_dims
    }

    #[inline(always)]
    fn dims(&self) -> &[Dim] {
        match self.inline_dims.get(..self.n_dims) {
            Some(dims) => dims,
            None => &self.heap_dims,
        }
    }

    /// Returns `true` if both views have the same memory, shape and item type.
    pub(super) fn is_same(&self, other: &View) -> bool {
        self.first == other.first && self.dtype == other.dtype && self.dims() == other.dims()
    }

    /// Returns `true` if the items are contiguous in C order (last dimension fastest). An array
    /// without items is contiguous.
    #[inline]
    pub(super) fn is_contiguous(&self) -> bool {
        let mut expected = self.dtype.of.n_bytes() as isize;
        let mut is_it = true;
        for dim in self.dims().iter().rev() {
            is_it &= dim.len == 1 || dim.stride == expected;
            expected = expected.wrapping_mul(dim.len as isize);
        }
        is_it || self.dims().iter().any(|dim| dim.len == 0)
    }

    /// Returns the number of items and subarrays, at most `usize::MAX`. It determines the size of
    /// the output.
    #[inline]
    pub(crate) fn n_written(&self) -> usize {
        let mut n_items = 1_usize;
        let mut n = 1_usize;
        for dim in self.dims() {
            n_items = n_items.saturating_mul(dim.len);
            n = n.saturating_add(n_items);
        }
        n
    }

    /// Returns the whole array as a [`Subarray`].
    ///
    /// # Panics
    /// If the array has no dimensions.
    #[inline(always)]
    pub(crate) fn whole(&self) -> Subarray<'_> {
        assert!(self.n_dims > 0, "an array without dimensions");
        Subarray {
            view: self,
            at: self.first,
            dim: 0,
        }
    }

    /// Returns the item of an array without dimensions.
    #[inline(always)]
    pub(crate) fn item(&self) -> Option<Item<'_>> {
        (self.n_dims == 0).then_some(Item {
            at: self.first,
            dtype: self.dtype,
            view: PhantomData,
        })
    }
}

/// An item of an array, of any item type.
#[derive(Clone, Copy)]
pub(crate) struct Item<'v> {
    at: *const u8,
    dtype: DType,
    view: PhantomData<&'v View>,
}

impl Item<'_> {
    pub(crate) fn dtype(self) -> DType {
        self.dtype
    }

    #[inline(always)]
    fn bits<T: Bits>(self) -> T {
        debug_assert_eq!(size_of::<T>(), self.dtype.of.n_bytes());
        // SAFETY: an item of this size.
        unsafe { T::read(self.at, ItemOrder::of::<T>(self.dtype, self.at.addr())) }
    }

    /// Returns the item's value; `None` for strings and binary values.
    #[inline]
    pub(crate) fn scalar(self) -> Option<Scalar> {
        Some(match self.dtype.of {
            ItemType::Bool => Scalar::Bool(self.bits::<u8>() != 0),
            ItemType::Int8 => Scalar::Int32((self.bits::<u8>() as i8).into()),
            ItemType::Int16 => Scalar::Int32((self.bits::<u16>() as i16).into()),
            ItemType::Int32 => Scalar::Int32(self.bits::<u32>() as i32),
            ItemType::Int64 => Scalar::Int64(self.bits::<u64>() as i64),
            ItemType::Uint8 => Scalar::Int32(self.bits::<u8>().into()),
            ItemType::Uint16 => Scalar::Int32(self.bits::<u16>().into()),
            ItemType::Uint32 => Scalar::Int64(self.bits::<u32>().into()),
            ItemType::Uint64 => Scalar::Uint64(self.bits()),
            ItemType::Float16 => Scalar::Half(self.bits()),
            ItemType::Float32 => Scalar::Float(f32::from_bits(self.bits())),
            ItemType::Float64 => Scalar::Double(f64::from_bits(self.bits())),
            ItemType::Moment(step) => Scalar::Moment(self.bits::<u64>() as i64, step),
            ItemType::Text(_) | ItemType::Binary(_) => return None,
        })
    }

    /// Replaces `text` with the characters of a string item, without the padding. Returns `None` if
    /// the allocation fails, or the item is not a string.
    pub(crate) fn text(self, text: &mut Vec<u32>) -> Option<()> {
        let ItemType::Text(n_chars) = self.dtype.of else {
            return None;
        };
        text.clear();
        text.try_reserve(n_chars).ok()?;
        for i in 0..n_chars {
            let at = self.at.wrapping_add(4 * i);
            // SAFETY: one of as many characters.
            text.push(unsafe { u32::read(at, ItemOrder::of::<u32>(self.dtype, at.addr())) });
        }
        while text.last() == Some(&0) {
            text.pop();
        }
        Some(())
    }

    /// Replaces `binary` with the bytes of a binary item, without the padding. Returns `None` if
    /// the allocation fails, or the item is not binary.
    pub(crate) fn binary(self, binary: &mut Vec<u8>) -> Option<()> {
        let ItemType::Binary(n_bytes) = self.dtype.of else {
            return None;
        };
        binary.clear();
        binary.try_reserve(n_bytes).ok()?;
        for i in 0..n_bytes {
            // SAFETY: one of as many bytes.
            binary.push(unsafe { u8::read(self.at.wrapping_add(i), ItemOrder::Native) });
        }
        while binary.last() == Some(&0) {
            binary.pop();
        }
        Some(())
    }
}

/// An array, or a part of it that indexes of the first dimensions select. It has at least one
/// dimension.
#[derive(Clone, Copy)]
pub(crate) struct Subarray<'v> {
    view: &'v View,
    at: *const u8,
    dim: usize,
}

impl<'v> Subarray<'v> {
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.view.dims()[self.dim].len
    }

    /// Returns the number of dimensions, at least 1.
    #[inline(always)]
    pub(crate) fn n_dims(self) -> usize {
        self.view.n_dims - self.dim
    }

    #[inline(always)]
    pub(crate) fn dtype(self) -> DType {
        self.view.dtype
    }

    #[inline(always)]
    fn address(self, index: usize) -> *const u8 {
        assert!(index < self.len(), "an index past the end");
        let stride = self.view.dims()[self.dim].stride;
        self.at.wrapping_offset(stride.wrapping_mul(index as isize))
    }

    /// Returns the subarray at an index of the first dimension.
    ///
    /// # Panics
    /// If the index is out of range, or there is only one dimension.
    #[inline(always)]
    pub(crate) fn part(self, index: usize) -> Subarray<'v> {
        assert!(self.n_dims() > 1, "an array of items");
        Subarray {
            at: self.address(index),
            dim: self.dim + 1,
            ..self
        }
    }

    /// Returns the item at an index of a one-dimensional array.
    ///
    /// # Panics
    /// If the index is out of range, or there are several dimensions.
    #[inline(always)]
    pub(crate) fn item(self, index: usize) -> Item<'v> {
        assert!(self.n_dims() == 1, "an array of arrays");
        Item {
            at: self.address(index),
            dtype: self.view.dtype,
            view: PhantomData,
        }
    }

    /// Returns the items of a one-dimensional array, as integers of type `T`.
    ///
    /// # Panics
    /// If the items do not have the size of `T`, or there are several dimensions.
    #[inline(always)]
    pub(crate) fn items<T: Bits>(self) -> ArrayItems<'v, T> {
        let stride = self.view.dims()[self.dim].stride;
        assert!(self.n_dims() == 1 && size_of::<T>() == self.view.dtype.of.n_bytes());
        ArrayItems {
            at: self.at,
            stride,
            len: self.len(),
            order: ItemOrder::of::<T>(self.view.dtype, self.at.addr() | stride.unsigned_abs()),
            view: PhantomData,
        }
    }
}

/// The items of a one-dimensional array, as integers of type `T`.
#[derive(Clone, Copy)]
pub(crate) struct ArrayItems<'v, T> {
    at: *const u8,
    stride: isize,
    len: usize,
    order: ItemOrder,
    view: PhantomData<(&'v View, T)>,
}

impl<T: Bits> ArrayItems<'_, T> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bits of the item at an index. The memory of the item is read only once.
    ///
    /// # Panics
    /// If the index is out of range.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> T {
        assert!(index < self.len, "an index past the end");
        // SAFETY: one of the items.
        unsafe {
            let at = self.at.offset(self.stride.wrapping_mul(index as isize));
            T::read(at, self.order)
        }
    }
}

impl ArrayItems<'_, u8> {
    /// Returns up to four one-byte items from `index` on, as an integer. The first item is the
    /// lowest byte. Each item is read only once.
    ///
    /// # Panics
    /// If an index is out of range.
    #[inline(always)]
    pub(crate) fn four(&self, index: usize, n: usize) -> u32 {
        assert!(n <= 4 && index <= self.len && n <= self.len - index);
        let at = self.at.wrapping_add(index).cast::<u32>();
        if n == 4 && self.stride == 1 && at.is_aligned() {
            // SAFETY: four items, next to each other, and the address is one of an u32.
            return unsafe { at.read_volatile() }.to_le();
        }
        (0..n).fold(0, |all, i| all | u32::from(self.get(index + i)) << (8 * i))
    }
}

/// How an array item is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemOrder {
    /// By one load, from an aligned address.
    Native,
    /// Byte by byte, from any address.
    Bytewise,
    /// Byte by byte in reverse order.
    Swapped,
}

impl ItemOrder {
    /// Selects how array items are read. All items must have the alignment of the item at
    /// `address`.
    #[inline(always)]
    fn of<T>(dtype: DType, address: usize) -> ItemOrder {
        match dtype.is_swapped {
            true => ItemOrder::Swapped,
            false if address.is_multiple_of(align_of::<T>()) => ItemOrder::Native,
            false => ItemOrder::Bytewise,
        }
    }
}

/// An unsigned integer type for the bits of an array item.
pub(crate) trait Bits: Copy {
    /// Reads the item at `at`. Each byte is read only once, because other code may write to the
    /// memory.
    ///
    /// # Safety
    /// The item at `at` must be readable. Its address must be aligned if `order` is
    /// [`ItemOrder::Native`].
    unsafe fn read(at: *const u8, order: ItemOrder) -> Self;
}

macro_rules! bits {
    ($($bits:ty),*) => {$(
        impl Bits for $bits {
            #[inline(always)]
            unsafe fn read(at: *const u8, order: ItemOrder) -> $bits {
                if order == ItemOrder::Native {
                    // SAFETY: readable, and aligned, as the caller guarantees.
                    return unsafe { at.cast::<$bits>().read_volatile() };
                }
                let mut bytes = [0; size_of::<$bits>()];
                for (i, byte) in bytes.iter_mut().enumerate() {
                    // SAFETY: readable, as the caller guarantees.
                    *byte = unsafe { at.add(i).read_volatile() };
                }
                match order {
                    ItemOrder::Swapped => <$bits>::from_ne_bytes(bytes).swap_bytes(),
                    _ => <$bits>::from_ne_bytes(bytes),
                }
            }
        }
    )*};
}
bits!(u8, u16, u32, u64);
