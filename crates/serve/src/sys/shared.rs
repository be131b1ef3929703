//! [`SharedWords`]: counters in memory that several processes share through a file descriptor.
//! [`try_lock`] and [`is_locked`] are functions for locks with which a process detects that another
//! process has ended.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use super::check;

/// The seals of the memory file. They prevent any process from changing its size. If the file were
/// truncated, the processes that have mapped it would crash.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Counters of 64 bits in a memory file (memfd_create(2)) that is mapped into this process.
#[derive(Debug)]
pub(crate) struct SharedWords {
    start: NonNull<AtomicU64>,
    n_words: usize,
    fd: OwnedFd,
}

// SAFETY: the memory stays mapped as long as the value exists, is not bound to a thread, and
// contains only atomics.
unsafe impl Send for SharedWords {}
// SAFETY: a shared reference gives access only to atomics, which stay mapped as long as it exists.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Creates a memory file with `n_words` counters, all 0.
    pub(crate) fn create(n_words: usize) -> io::Result<SharedWords> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string with its end; the result is checked.
        let fd = check(unsafe { libc::memfd_create(c"onecopy-counters".as_ptr(), flags) })?;
        // SAFETY: `fd` was just created, and nothing else uses it.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len((n_words * size_of::<AtomicU64>()) as u64)?;
        // SAFETY: no pointer is passed.
        check(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) })?;
        SharedWords::map(file.into(), n_words)
    }

    /// Maps the counters that another process created, given the file descriptor of their memory
    /// file.
    ///
    /// # Errors
    /// `InvalidData` if the descriptor does not refer to a file that [`SharedWords::create`] made.
    /// Otherwise the error of mmap(2).
    pub(crate) fn of_descriptor(fd: OwnedFd) -> io::Result<SharedWords> {
        // SAFETY: no pointer is passed. Files that are no memory have no seals: an error.
        let seals = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) });
        if !seals.is_ok_and(|seals| seals & SEALS == SEALS) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let file = File::from(fd);
        let n_bytes = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        SharedWords::map(file.into(), n_bytes / size_of::<AtomicU64>())
    }

    fn map(fd: OwnedFd, n_words: usize) -> io::Result<SharedWords> {
        // SAFETY: the call creates a new mapping at an address that the kernel chooses. The file is
        // sealed, so its length does not change. With a length of 0, the call fails.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                n_words * size_of::<AtomicU64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedWords { start, n_words, fd })
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the memory has this length, is aligned to a page and was zeroed by the kernel. It
        // stays mapped as long as `self` exists, and its file is sealed, so it cannot be truncated.
        // This crate accesses it only through atomics. Other processes could write wrong numbers,
        // but every bit pattern is a valid number.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.n_words) }
    }

    /// Opens the memory file again, through /proc/self/fd. A lock taken with the new descriptor is
    /// independent of the locks taken with other descriptors of the file.
    pub(crate) fn open_again(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(file.into())
    }
}

impl AsFd for SharedWords {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        let n_bytes = self.n_words * size_of::<AtomicU64>();
        // SAFETY: the memory was mapped with this length. No reference into it exists, because each
        // borrows `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), n_bytes) };
    }
}

fn lock_of(at: usize) -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at as libc::off_t,
        l_len: 1,
        l_pid: 0,
    }
}

/// Takes the lock with the number `at` on the file `fd`. Returns `false` if the lock is already
/// taken through another open file description. The lock is an open file description lock
/// (fcntl(2)). The kernel releases it when the last copy of `fd` is closed, which happens at the
/// end of the process at the latest.
pub(crate) fn try_lock(fd: &OwnedFd, at: usize) -> io::Result<bool> {
    let lock = lock_of(at);
    // SAFETY: `lock` is a complete struct, and only read.
    match check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) }) {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Returns `true` if the lock with the number `at` is taken through another open file description
/// than that of `fd`, in this or another process.
pub(crate) fn is_locked(fd: BorrowedFd<'_>, at: usize) -> io::Result<bool> {
    let mut lock = lock_of(at);
    // SAFETY: `lock` is a complete struct; the kernel writes into it.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) })?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}
