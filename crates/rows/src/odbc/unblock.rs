//! Ends a driver call that does not return after it was cancelled. This module shuts down the
//! socket on which the call waits, so that the driver detects a lost connection.
//!
//! The thread that made the driver call waits in a system call. Linux shows this system call and
//! its arguments, which include the socket, in `/proc/self/task/TID/syscall`. See
//! `docs/decisions/0107-stalled-calls.md`.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onecopy_wire::lock::lock;

use crate::fork;

/// The time that a driver call may last after it was first cancelled. The server may have to roll
/// back before it responds.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// The thread that is currently executing a driver call of a connection. Only one thread at a time
/// executes such a call.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// The operating-system id of the thread that is in a driver call; 0 if there is none.
    thread: AtomicI32,
    /// The operating-system id of the thread that is in `SQLCancel`; 0 if there is none.
    cancelling: AtomicI32,
    n_calls: AtomicU64,
    /// The driver call that was cancelled last: its number, and the time at which it was cancelled
    /// for the first time. `None` if no call was cancelled.
    cancelled: Mutex<Option<(u64, Instant)>>,
    is_broken: AtomicBool,
}

impl Caller {
    /// Records that this thread is in a driver call until [`Caller::leave`].
    pub(crate) fn enter(&self) {
        self.n_calls.fetch_add(1, SeqCst);
        self.thread.store(thread_number(), SeqCst);
    }

    pub(crate) fn leave(&self) {
        self.thread.store(0, SeqCst);
    }

    /// Records that this thread is in a call to `SQLCancel` (`true`), or that it has left the call
    /// (`false`).
    pub(crate) fn set_cancelling(&self, is_cancelling: bool) {
        let thread = if is_cancelling { thread_number() } else { 0 };
        self.cancelling.store(thread, SeqCst);
    }

    /// Returns `true` if a socket of the connection was shut down during a call.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(SeqCst)
    }

    /// Shuts down the sockets on which the current driver call waits, if at least [`GRACE`] has
    /// passed since this function was first called for that driver call. Must be called when a
    /// driver call is cancelled, and repeatedly until the driver call returns.
    pub(crate) fn insist(&self) {
        let n_calls = self.n_calls.load(SeqCst);
        if self.thread.load(SeqCst) == 0 {
            return;
        }
        let mut cancelled = lock(&self.cancelled);
        match *cancelled {
            Some((n, since)) if n == n_calls => {
                if since.elapsed() >= GRACE {
                    self.break_off();
                }
            }
            _ => *cancelled = Some((n_calls, Instant::now())),
        }
    }

    /// Shuts down the sockets on which the current driver call and its `SQLCancel` wait.
    pub(crate) fn break_off(&self) {
        for thread in [&self.thread, &self.cancelling] {
            let thread = thread.load(SeqCst);
            if thread != 0 && unblock(thread) {
                self.is_broken.store(true, SeqCst);
            }
        }
    }
}

/// A time limit for a driver call. If the limit expires before this value is dropped, the sockets
/// on which the call waits are shut down.
pub(crate) struct Limit {
    /// The sender end of a channel. Dropping it signals to the timer thread that the call has
    /// ended. `None` if there is no timer thread.
    ended: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Caller {
    /// Sets a time limit for the current driver call. After the limit, the sockets on which the
    /// call waits are shut down, repeatedly until the call returns. If no thread can be started,
    /// there is no limit.
    pub(crate) fn limit(self: &Arc<Self>, limit: Duration) -> Limit {
        let (ended, is_ended) = channel();
        let caller = Arc::clone(self);
        let thread = std::thread::Builder::new().name("onecopy-limit".to_owned());
        let started = thread.spawn(move || {
            block_signals();
            while is_ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                caller.break_off();
            }
        });
        Limit {
            ended: Some(ended),
            thread: started.ok(),
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        drop(self.ended.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Blocks all signals in this thread, so that the threads that expect signals receive them.
pub(super) fn block_signals() {
    // SAFETY: the set is filled before use, and the mask concerns only this thread.
    unsafe {
        let mut all = std::mem::MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}

thread_local! {
    /// A cache of the id that the operating system gave to this thread: the second number. The
    /// first number is the value of [`fork::generation`](crate::fork::generation) when the id was
    /// read. It shows whether a fork has changed the id.
    static NUMBER: std::cell::Cell<(u32, i32)> = const { std::cell::Cell::new((0, 0)) };
}

/// Returns the id that the operating system gave to this thread.
fn thread_number() -> i32 {
    let generation = fork::generation();
    let known = NUMBER.try_with(std::cell::Cell::get).unwrap_or_default();
    if known.0 == generation && known.1 != 0 {
        return known.1;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the call has no parameters and cannot fail.
    let number = unsafe { libc::gettid() };
    #[cfg(not(target_os = "linux"))]
    let number = 0;
    let _ = NUMBER.try_with(|n| n.set((generation, number)));
    number
}

#[cfg(not(target_os = "linux"))]
fn unblock(_thread: i32) -> bool {
    false
}

/// Shuts down the sockets on which `thread` waits in a system call; returns `true` if a connected
/// socket was shut down.
#[cfg(target_os = "linux")]
fn unblock(thread: i32) -> bool {
    let Some(call) = linux::system_call(thread) else {
        return false;
    };
    let sockets = linux::descriptors(&call);
    // If the thread has left the system call in the meantime, its descriptors may belong to
    // something else.
    if linux::system_call(thread).as_ref() != Some(&call) {
        return false;
    }
    let n_shut_down = sockets
        .into_iter()
        .filter(|socket| linux::shut_down(*socket))
        .count();
    n_shut_down > 0
}

#[cfg(target_os = "linux")]
mod linux {
    use libc::{c_int, c_long};

    /// The system call in which a thread waits: its number and its arguments.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct SystemCall {
        number: c_long,
        arguments: [usize; 6],
    }

    /// Returns the system call in which a thread of this process waits; `None` if the thread is
    /// running, or the system does not show the call.
    pub(super) fn system_call(thread: i32) -> Option<SystemCall> {
        let shown = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
        parse(&shown)
    }

    /// Parses the text `NUMBER 0xARGUMENT…`, with which the kernel describes a system call. Returns
    /// `None` for `running`, and for `-1`, which means that the thread waits outside of a system
    /// call.
    fn parse(shown: &str) -> Option<SystemCall> {
        let mut words = shown.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = usize::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(SystemCall { number, arguments })
    }

    /// Returns the file descriptors on which a system call waits.
    pub(super) fn descriptors(call: &SystemCall) -> Vec<c_int> {
        let [first, second, ..] = call.arguments;
        match call.number {
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_connect => vec![first as c_int],
            libc::SYS_ppoll => polled(first, second),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => polled(first, second),
            libc::SYS_pselect6 => selected(first, &call.arguments[1..4]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => selected(first, &call.arguments[1..4]),
            _ => Vec::new(),
        }
    }

    /// Reads the descriptors from an array of `n` elements of the C type `pollfd`. An element is a
    /// 32-bit descriptor and two 16-bit sets of events.
    fn polled(at: usize, n: usize) -> Vec<c_int> {
        let mut bytes = vec![0; 8 * n.min(64)];
        match copied(at, &mut bytes) {
            true => bytes
                .chunks_exact(8)
                .map(|fd| c_int::from_ne_bytes([fd[0], fd[1], fd[2], fd[3]]))
                .collect(),
            false => Vec::new(),
        }
    }

    /// Returns the descriptors below `n` that are in the bit sets `sets`, which are arguments of
    /// `select`.
    fn selected(n: usize, sets: &[usize]) -> Vec<c_int> {
        let mut found = Vec::new();
        for &set in sets.iter().filter(|set| **set != 0) {
            // Each bit set is an array of 64-bit words.
            let mut bytes = vec![0; n.min(1024).div_ceil(64) * 8];
            if copied(set, &mut bytes) {
                let is_set = |fd: &usize| bytes[fd / 8] >> (fd % 8) & 1 != 0;
                found.extend((0..n.min(1024)).filter(is_set).map(|fd| fd as c_int));
            }
        }
        found
    }

    /// Copies memory of this process from an address that may have become invalid; returns `true`
    /// if all bytes were copied.
    fn copied(at: usize, into: &mut [u8]) -> bool {
        let local = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let remote = libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: into.len(),
        };
        // SAFETY: `local` is a live buffer of the length given. The kernel reads at `remote`, and
        // fails if nothing is mapped there; another thread may write there, and any bytes are
        // valid.
        let n = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        usize::try_from(n).is_ok_and(|n| n == into.len())
    }

    /// Shuts down both directions of a socket; returns `true` if the socket is connected.
    pub(super) fn shut_down(socket: c_int) -> bool {
        // SAFETY: a system call on a number, which is refused if it is not a connected socket.
        unsafe { libc::shutdown(socket, libc::SHUT_RDWR) == 0 }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_system_call_is_read_as_the_kernel_shows_it() {
            let call =
                parse("45 0x3 0x7fa993712960 0xa 0x0 0x0 0x0 0x7fa99321ba10 0x7fa993928974\n");
            let call = call.unwrap();
            assert_eq!((call.number, call.arguments[0]), (45, 3));
            for shown in ["running\n", "-1 0x7ffd 0x7f02\n", "", "x 0x1"] {
                assert_eq!(parse(shown), None, "{shown}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::sync::Arc;

    use super::*;

    /// Waits until the socket has data, as a driver waits for its server. `how` is the name of the
    /// system call that waits. Returns the number of bytes received.
    fn waits(how: &str, mut socket: TcpStream) -> usize {
        let fd = socket.as_raw_fd();
        // SAFETY: the pointers are to live locals, with one descriptor each.
        unsafe {
            let mut polled = libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            };
            let mut set = std::mem::zeroed();
            libc::FD_SET(fd, &mut set);
            match how {
                "poll" => libc::poll(&raw mut polled, 1, -1),
                "select" => {
                    let null = std::ptr::null_mut();
                    libc::select(fd + 1, &raw mut set, null, null, null.cast())
                }
                _ => 0,
            };
        }
        socket.read(&mut [0; 8]).unwrap_or_default()
    }

    #[test]
    fn a_thread_that_waits_for_a_silent_server_is_unblocked() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        for how in ["read", "poll", "select"] {
            let socket = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            let _silent = server.accept().unwrap();
            let caller = Arc::new(Caller::default());
            let entered = Arc::clone(&caller);
            let thread = std::thread::spawn(move || {
                entered.enter();
                let n_bytes = waits(how, socket);
                entered.leave();
                n_bytes
            });
            while !caller.is_broken() {
                caller.break_off();
                std::thread::yield_now();
            }
            assert_eq!(thread.join().unwrap(), 0, "{how}");
            caller.insist();
            assert!(
                caller.cancelled.lock().unwrap().is_none(),
                "no call is under way"
            );
        }
    }
}
