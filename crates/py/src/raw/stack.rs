//! Checks the free space on the C stack. Nested callbacks get an exception before the stack is
//! full.
//!
//! CPython's recursion limit counts calls, not bytes, and programs can raise it. A thread may have
//! a small stack (128 KiB on musl).

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;

use super::process;

/// The part of a stack that is reserved for one call, in bytes. At most three eighths of a stack
/// are reserved.
const RESERVE_BYTES: usize = 256 << 10;

/// A cache of the stacks of recent threads, as ranges of 4 KiB pages. The lower 24 bits are the
/// number of pages, the higher bits the first page.
static KNOWN: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

const PAGE_BITS: u32 = 12;
const COUNT_BITS: u32 = 24;

fn slot(at: usize) -> &'static AtomicU64 {
    &KNOWN[(at >> 20) % KNOWN.len()]
}

/// Returns an error if the stack of this thread is nearly full. Every function that a callback may
/// call again starts with this check.
///
/// # Errors
/// `RecursionError` if only the reserved part is left.
#[inline(always)]
pub(crate) fn check(_: Python<'_>) -> PyResult<()> {
    let marker = 0_u8;
    let at = (&raw const marker).addr();
    let known = slot(at).load(Relaxed);
    let page = (at >> PAGE_BITS) as u64;
    if page.wrapping_sub(known >> COUNT_BITS) < known & ((1 << COUNT_BITS) - 1) {
        return Ok(());
    }
    check_exactly(at)
}

/// The bounds of a thread's stack, as addresses.
struct Stack {
    lowest: usize,
    /// The upper end of the stack's reserved part, which begins at `lowest`.
    limit: usize,
    end: usize,
}

impl Stack {
    /// Returns the pages above the reserved part, in the format of [`KNOWN`].
    fn pages(&self) -> u64 {
        let first = self.limit.div_ceil(1 << PAGE_BITS) as u64;
        let n = ((self.end >> PAGE_BITS) as u64).saturating_sub(first);
        first << COUNT_BITS | n.min((1 << COUNT_BITS) - 1)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // Another thread may later get the same addresses, with a smaller stack.
        for known in &KNOWN {
            let _ = known.compare_exchange(self.pages(), 0, Relaxed, Relaxed);
        }
    }
}

#[cold]
#[inline(never)]
fn check_exactly(at: usize) -> PyResult<()> {
    thread_local! {
        static STACK: Stack = {
            let (lowest, len) = bounds();
            let limit = lowest + (len / 8 * 3).min(RESERVE_BYTES);
            Stack { lowest, limit, end: lowest + len }
        };
    }
    let is_full = STACK.try_with(|stack| {
        if (stack.limit..stack.end).contains(&at) {
            slot(at).store(stack.pages(), Relaxed);
        }
        // The host program may have switched to a stack with unknown bounds.
        (stack.lowest..stack.limit).contains(&at)
    });
    if !is_full.unwrap_or(false) {
        return Ok(());
    }
    Err(PyRecursionError::new_err(
        "maximum recursion depth exceeded: the C stack of this thread is nearly full\n\
         nest fewer calls, or start the thread with a larger stack (`threading.stack_size`)",
    ))
}

/// Returns the lowest address and the size of this thread's stack in bytes. Returns zeros if they
/// are unknown.
fn bounds() -> (usize, usize) {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut lowest, mut len) = (std::ptr::null_mut(), 0);
    // SAFETY: `pthread_getattr_np` initialises the attributes if it returns 0; they are read once
    // and destroyed.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return (0, 0);
        }
        if libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut len) != 0 {
            len = 0;
        }
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    let (lowest, end) = (lowest.addr(), lowest.addr() + len);
    if len != 0 && cfg!(target_env = "musl") && process::is_main_thread() {
        // For the first thread, musl reports the mapped size. The stack can grow to the limit.
        let most = stack_limit().max(len).min(end);
        return (end - most, most);
    }
    (lowest, len)
}

/// Returns the limit of the first thread's stack in bytes, at most 8 MiB.
fn stack_limit() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call fills the struct, or leaves it as it is.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    usize::try_from(limit.rlim_cur).map_or(8 << 20, |bytes| bytes.min(8 << 20))
}
