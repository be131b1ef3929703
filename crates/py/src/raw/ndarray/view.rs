//! The memory of an array, by its shape and strides.

use std::ffi::c_int;
use std::marker::PhantomData;

use super::{DType, ItemType, Scalar};

/// The memory of an array. It may be read as long as no Python code has run since it was made, or
/// [`is_current`](super::is_current) confirms it.
pub(crate) struct View {
    first: *const u8,
    dtype: DType,
    n_dims: usize,
    /// The length and stride of each dimension, if they are few. Those past the last are of no
    /// meaning.
    inline_dims: [Dim; INLINE_DIMS],
    /// As [`View::inline_dims`], if there are more.
    heap_dims: Vec<Dim>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dim {
    len: usize,
    stride: isize,
}

/// Dimensions that most arrays have at most.
const INLINE_DIMS: usize = 3;

impl View {
    /// The view of an array; `None` if its lengths are none.
    ///
    /// # Safety
    /// All are those of one array as NumPy has them: there are `n_dims` lengths and strides, and an
    /// item of this type is at `first` and the sum of its indexes times the strides.
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
            // SAFETY: as many lengths and strides, by the caller's word.
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

    /// True if both are the same memory, of the same shape and type.
    pub(super) fn is_same(&self, other: &View) -> bool {
        self.first == other.first && self.dtype == other.dtype && self.dims() == other.dims()
    }

    /// True if the items follow each other, those of the last dimension first; so for any array
    /// without items.
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

    /// Items, and arrays of them; `usize::MAX` if that is more.
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

    /// All of an array of one dimension or more.
    ///
    /// # Panics
    /// If it has none.
    #[inline(always)]
    pub(crate) fn whole(&self) -> Part<'_> {
        assert!(self.n_dims > 0, "an array without dimensions");
        Part {
            view: self,
            at: self.first,
            dim: 0,
        }
    }

    /// The item of an array without dimensions; `None` of any other.
    #[inline(always)]
    pub(crate) fn item(&self) -> Option<Item<'_>> {
        (self.n_dims == 0).then_some(Item {
            at: self.first,
            dtype: self.dtype,
            view: PhantomData,
        })
    }
}

/// An item of any type.
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
        unsafe { T::read(self.at, Order::of::<T>(self.dtype, self.at.addr())) }
    }

    /// Its value; `None` of text and binary.
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

    /// Copies the characters of a text, without the NULs after it; `None` without memory.
    pub(crate) fn text(self, text: &mut Vec<u32>) -> Option<()> {
        let ItemType::Text(n_chars) = self.dtype.of else {
            return None;
        };
        text.clear();
        text.try_reserve(n_chars).ok()?;
        for i in 0..n_chars {
            let at = self.at.wrapping_add(4 * i);
            // SAFETY: one of as many characters.
            text.push(unsafe { u32::read(at, Order::of::<u32>(self.dtype, at.addr())) });
        }
        while text.last() == Some(&0) {
            text.pop();
        }
        Some(())
    }

    /// Copies binary, without the NULs after it; `None` without memory.
    pub(crate) fn binary(self, binary: &mut Vec<u8>) -> Option<()> {
        let ItemType::Binary(n_bytes) = self.dtype.of else {
            return None;
        };
        binary.clear();
        binary.try_reserve(n_bytes).ok()?;
        for i in 0..n_bytes {
            // SAFETY: one of as many bytes.
            binary.push(unsafe { u8::read(self.at.wrapping_add(i), Order::Native) });
        }
        while binary.last() == Some(&0) {
            binary.pop();
        }
        Some(())
    }
}

/// The selection of one index, or of none, of an array of one dimension or more.
#[derive(Clone, Copy)]
pub(crate) struct Part<'v> {
    view: &'v View,
    at: *const u8,
    dim: usize,
}

impl<'v> Part<'v> {
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.view.dims()[self.dim].len
    }

    /// Dimensions that are left, 1 or more.
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

    /// One of the arrays that it has.
    ///
    /// # Panics
    /// If it has not as many, or has items.
    #[inline(always)]
    pub(crate) fn part(self, index: usize) -> Part<'v> {
        assert!(self.n_dims() > 1, "an array of items");
        Part {
            at: self.address(index),
            dim: self.dim + 1,
            ..self
        }
    }

    /// One of its items.
    ///
    /// # Panics
    /// If it has not as many, or has arrays.
    #[inline(always)]
    pub(crate) fn item(self, index: usize) -> Item<'v> {
        assert!(self.n_dims() == 1, "an array of arrays");
        Item {
            at: self.address(index),
            dtype: self.view.dtype,
            view: PhantomData,
        }
    }

    /// Its items, by their bits.
    ///
    /// # Panics
    /// If they are not of this size, or it has arrays.
    #[inline(always)]
    pub(crate) fn items<T: Bits>(self) -> Items<'v, T> {
        let stride = self.view.dims()[self.dim].stride;
        assert!(self.n_dims() == 1 && size_of::<T>() == self.view.dtype.of.n_bytes());
        Items {
            at: self.at,
            stride,
            len: self.len(),
            order: Order::of::<T>(self.view.dtype, self.at.addr() | stride.unsigned_abs()),
            view: PhantomData,
        }
    }
}

/// Items of one size.
#[derive(Clone, Copy)]
pub(crate) struct Items<'v, T> {
    at: *const u8,
    stride: isize,
    len: usize,
    order: Order,
    view: PhantomData<(&'v View, T)>,
}

impl<T: Bits> Items<'_, T> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bits of one of them, read once.
    ///
    /// # Panics
    /// If there are not as many.
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

impl Items<'_, u8> {
    /// Up to four of them that follow each other, each read once, the first in the lowest byte; zeros
    /// for those that are missing.
    ///
    /// # Panics
    /// If there are not as many.
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

/// How the bytes of an item are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In one piece: at an address of its size.
    Native,
    /// Byte by byte.
    Bytewise,
    /// Byte by byte, from the last to the first.
    Swapped,
}

impl Order {
    /// Of items at addresses that have no lower bits than these.
    #[inline(always)]
    fn of<T>(dtype: DType, address: usize) -> Order {
        match dtype.is_swapped {
            true => Order::Swapped,
            false if address.is_multiple_of(align_of::<T>()) => Order::Native,
            false => Order::Bytewise,
        }
    }
}

/// The bits of an item.
pub(crate) trait Bits: Copy {
    /// Reads an item: each of its bytes once, whatever writes to it meanwhile.
    ///
    /// # Safety
    /// `at` is readable for an item, and its address fits the order.
    unsafe fn read(at: *const u8, order: Order) -> Self;
}

macro_rules! bits {
    ($($bits:ty),*) => {$(
        impl Bits for $bits {
            #[inline(always)]
            unsafe fn read(at: *const u8, order: Order) -> $bits {
                if order == Order::Native {
                    // SAFETY: readable, and aligned, by the caller's word.
                    return unsafe { at.cast::<$bits>().read_volatile() };
                }
                let mut bytes = [0; size_of::<$bits>()];
                for (i, byte) in bytes.iter_mut().enumerate() {
                    // SAFETY: readable, by the caller's word.
                    *byte = unsafe { at.add(i).read_volatile() };
                }
                match order {
                    Order::Swapped => <$bits>::from_ne_bytes(bytes).swap_bytes(),
                    _ => <$bits>::from_ne_bytes(bytes),
                }
            }
        }
    )*};
}
bits!(u8, u16, u32, u64);
