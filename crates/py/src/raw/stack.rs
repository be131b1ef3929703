//! The C stack of the calling thread: a call that callbacks may nest is refused before the stack ends.
//!
//! CPython's own recursion limit counts calls, not bytes: it can be raised, a thread may have a small stack (128 KiB on musl),
//! and from CPython 3.12 on calls of C functions are counted apart from Python's.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;

use super::process;

/// The part of a large stack that is left to one call and to the code that it calls; of a small one it is three eighths.
const RESERVE_BYTES: usize = 256 << 10;

/// Pages of stacks that are known to lie above the reserve, each at the slot of its address: the number of the first page, and
/// how many there are in the lower 24 bits. (To look up thread-local storage in a shared library costs five times as much.)
static KNOWN: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

const PAGE_BITS: u32 = 12;
const COUNT_BITS: u32 = 24;

fn slot(at: usize) -> &'static AtomicU64 {
    &KNOWN[(at >> 20) % KNOWN.len()]
}

/// Fails where the stack of this thread is nearly full. To be called at the start of each function that Python code may enter
/// again from a callback. It costs 1 ns.
///
/// # Errors
/// `RecursionError`.
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

/// The stack of a thread.
struct Stack {
    lowest: usize,
    /// Where the reserve ends.
    limit: usize,
    end: usize,
}

impl Stack {
    /// The pages above the reserve, as they are kept in [`KNOWN`].
    fn pages(&self) -> u64 {
        let first = self.limit.div_ceil(1 << PAGE_BITS) as u64;
        let n = ((self.end >> PAGE_BITS) as u64).saturating_sub(first);
        first << COUNT_BITS | n.min((1 << COUNT_BITS) - 1)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // The thread ends: another one with a smaller stack may get the same addresses.
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
        // Another stack than the thread's own, which a host may switch to, has bounds that are not known here.
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

/// The lowest address of the stack of this thread and its length; zeros where the system does not give them.
fn bounds() -> (usize, usize) {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut lowest, mut len) = (std::ptr::null_mut(), 0);
    // SAFETY: `pthread_getattr_np` initialises the attributes where it returns 0; they are read once and destroyed.
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
        // musl reports the part of the first thread's stack that is mapped so far; it grows up to the limit.
        let most = stack_limit().max(len).min(end);
        return (end - most, most);
    }
    (lowest, len)
}

/// The limit of the first thread's stack, at most 8 MiB.
fn stack_limit() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call fills the struct, or leaves it as it is.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    usize::try_from(limit.rlim_cur).map_or(8 << 20, |bytes| bytes.min(8 << 20))
}
