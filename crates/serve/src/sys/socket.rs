//! [`Stream`]: a connected TCP or unix socket, with its reads and writes.

use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use onecopy_text::{ByteSink, Chunk};

use super::check;

/// A non-blocking connected socket of any family.
#[derive(Debug)]
pub(crate) struct Stream(OwnedFd);

/// A socket address in the kernel's representation (`sockaddr`).
pub(super) struct RawAddress {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl From<OwnedFd> for Stream {
    fn from(fd: OwnedFd) -> Stream {
        Stream(fd)
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Stream {
    /// Returns the local IP address and port; `None` for a unix socket.
    pub(crate) fn local(&self) -> io::Result<Option<SocketAddr>> {
        RawAddress::local(self.as_raw_fd()).map(|address| address.ip())
    }

    /// Reads the available bytes into `buffer`, and returns their number. Returns 0 after the peer
    /// has closed its side. Copies: only the kernel copies the bytes.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (fd, start, n) = (self.as_raw_fd(), buffer.as_mut_ptr(), buffer.len());
        // The system call is made without the C library's recv function. That function is a
        // cancellation point of threads, and writes to memory shared by threads before and after
        // the call, which costs time.
        // SAFETY: the kernel writes at most `n` bytes there, and no address.
        let n = unsafe {
            let no_address = std::ptr::null_mut::<libc::c_void>();
            libc::syscall(libc::SYS_recvfrom, fd, start, n, 0, no_address, no_address)
        };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }

    /// Reads up to `n_bytes` bytes, appends them to `chunk`, and returns their number. Copies: only
    /// the kernel copies the bytes.
    pub(crate) fn receive(&self, chunk: &mut Chunk, n_bytes: usize) -> io::Result<usize> {
        let full = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let spare = &mut chunk.spare(n_bytes).map_err(full)?[..n_bytes];
        // SAFETY: the kernel writes at most `spare.len()` bytes there.
        let n = unsafe { libc::recv(self.as_raw_fd(), spare.as_mut_ptr().cast(), spare.len(), 0) };
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel has written that many bytes of the spare part.
        unsafe { chunk.commit(n) };
        Ok(n)
    }

    /// Sends `parts` in order and returns the number of bytes that the kernel accepted. If `more`
    /// is `true`, the caller will send further bytes immediately, so the kernel may delay the
    /// packet (MSG_MORE). The call never raises SIGPIPE. Copies: only the kernel copies the bytes.
    pub(crate) fn send(&self, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        // SAFETY: all zeroes is a valid msghdr: no name, no parts, no control data.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        // IoSlice is ABI-compatible with iovec by its documentation. sendmsg only reads through it.
        message.msg_iov = parts.as_ptr().cast_mut().cast();
        message.msg_iovlen = parts.len();
        let flags = libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
        // SAFETY: `message` points to `parts.len()` iovecs, borrowed for the calls.
        again(|| unsafe { libc::sendmsg(self.as_raw_fd(), &raw const message, flags) })
    }

    /// Sends contiguous bytes, and returns the number of bytes that the kernel accepted. The call
    /// never raises SIGPIPE. Copies: only the kernel copies the bytes.
    pub(crate) fn send_bytes(&self, bytes: &[u8]) -> io::Result<usize> {
        let (fd, start, n) = (self.as_raw_fd(), bytes.as_ptr(), bytes.len());
        let no_address = std::ptr::null::<libc::c_void>();
        // The system call is made directly, for the reason given in `read`.
        again(|| {
            // SAFETY: the kernel reads `n` bytes there, borrowed for the calls, and no address.
            let sent = unsafe {
                let flags = libc::MSG_NOSIGNAL;
                libc::syscall(libc::SYS_sendto, fd, start, n, flags, no_address, 0)
            };
            sent as libc::ssize_t
        })
    }

    /// Sends up to `n_bytes` bytes of `file`, beginning at `offset`. The current position of the
    /// file is neither used nor changed. Returns the number of bytes that the kernel accepted, or 0
    /// at the end of the file. Copies: only the kernel copies the bytes.
    pub(crate) fn send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        n_bytes: usize,
    ) -> io::Result<usize> {
        let mut at = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (to, from) = (self.as_raw_fd(), file.as_raw_fd());
        // SAFETY: two open descriptors, and an offset that the kernel may write to.
        again(|| unsafe { libc::sendfile(to, from, &raw mut at, n_bytes) })
    }

    /// Closes the sending side of the socket. The peer can read the bytes that were sent before,
    /// and then the end of the stream.
    pub(crate) fn shut_write(&self) -> io::Result<()> {
        // SAFETY: no pointer is passed.
        check(unsafe { libc::shutdown(self.as_raw_fd(), libc::SHUT_WR) })?;
        Ok(())
    }

    /// Makes the kernel reset the connection when it is closed. The kernel then discards the bytes
    /// that it has not sent, and a peer that reads to the end of the connection gets an error. A
    /// unix socket has no reset. Its peer gets an error only if this process has not read all bytes
    /// that the peer sent.
    pub(crate) fn reset_on_close(&self) -> io::Result<()> {
        let linger = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        set_option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger)
    }
}

/// Reads from `file` at `offset` into `buffer`, and returns the number of bytes read, or 0 at the
/// end of the file. The current position of the file is neither used nor changed.
pub(crate) fn read_file(file: BorrowedFd<'_>, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let at = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let (to, n) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: an open descriptor; the kernel writes at most `n` bytes into `buffer`, which is
    // borrowed for the calls.
    again(|| unsafe { libc::pread(file.as_raw_fd(), to.cast(), n, at) })
}

/// Repeats the system call `call` as long as signals interrupt it. Returns the number of bytes that
/// the call reports, or its error.
fn again(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        if let Ok(n) = usize::try_from(call()) {
            return Ok(n);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

impl RawAddress {
    /// Calls `fill`, a system call such as accept(2) that writes a socket address to a given
    /// buffer. Returns the result of `fill`, and the address.
    pub(super) fn filled(
        fill: impl FnOnce(*mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int,
    ) -> io::Result<(libc::c_int, RawAddress)> {
        let mut address = RawAddress {
            // SAFETY: all zeroes is a valid address of no family.
            storage: unsafe { MaybeUninit::zeroed().assume_init() },
            len: size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        };
        let storage = (&raw mut address.storage).cast();
        let value = check(fill(storage, &raw mut address.len))?;
        Ok((value, address))
    }

    /// Returns the local address to which the socket `fd` is bound.
    pub(super) fn local(fd: RawFd) -> io::Result<RawAddress> {
        // SAFETY: `filled` passes a buffer large enough for every address, and its size.
        let (_, address) = RawAddress::filled(|to, len| unsafe { libc::getsockname(fd, to, len) })?;
        Ok(address)
    }

    /// Returns the IP address and the port; `None` if this socket address is not an IP address.
    pub(super) fn ip(&self) -> Option<SocketAddr> {
        let storage = &raw const self.storage;
        match i32::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that the kernel wrote a sockaddr_in; the storage is
                // aligned for it.
                let a = unsafe { &*storage.cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
                Some(SocketAddr::from((ip, u16::from_be(a.sin_port))))
            }
            libc::AF_INET6 => {
                // SAFETY: the family says that the kernel wrote a sockaddr_in6; the storage is
                // aligned for it.
                let a = unsafe { &*storage.cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(a.sin6_addr.s6_addr);
                let port = u16::from_be(a.sin6_port);
                Some(SocketAddrV6::new(ip, port, 0, a.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    /// Returns the bytes of `sun_path`, the name in the address of a unix socket. These bytes are a
    /// path with a NUL at its end, a NUL followed by an abstract name, or empty. Returns `None` if
    /// this is not the address of a unix socket.
    pub(super) fn unix_name(&self) -> Option<&[u8]> {
        if i32::from(self.storage.ss_family) != libc::AF_UNIX {
            return None;
        }
        // SAFETY: the family says that the kernel wrote a sockaddr_un; the storage is aligned and
        // large enough for it, and was zeroed before.
        let a = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_un>() };
        let len =
            (self.len as usize).saturating_sub(std::mem::offset_of!(libc::sockaddr_un, sun_path));
        let path = &a.sun_path[..len.min(a.sun_path.len())];
        // SAFETY: `c_char` and `u8` have the same size and alignment, and every value of one is one
        // of the other.
        Some(unsafe { std::slice::from_raw_parts(path.as_ptr().cast::<u8>(), path.len()) })
    }
}

fn open_files_limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a complete struct; the kernel writes into it.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    Ok(limit)
}

/// Returns the number of files that this process may have open at the same time (the soft limit
/// `RLIMIT_NOFILE`).
pub(crate) fn max_open_files() -> io::Result<usize> {
    Ok(usize::try_from(open_files_limit()?.rlim_cur).unwrap_or(usize::MAX))
}

/// Raises the soft limit of open files (`RLIMIT_NOFILE`) to `n`, or to the hard limit if the hard
/// limit is lower than `n`. Never lowers the soft limit.
pub(crate) fn raise_max_open_files(n: usize) -> io::Result<()> {
    let mut limit = open_files_limit()?;
    let n = libc::rlim_t::try_from(n).unwrap_or(libc::RLIM_INFINITY);
    if limit.rlim_cur < n.min(limit.rlim_max) {
        limit.rlim_cur = n.min(limit.rlim_max);
        // SAFETY: `limit` is a complete struct, and only read.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    }
    Ok(())
}

pub(super) fn set_option<T>(
    fd: libc::c_int,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes from `value`; callers pass the C type of the
    // option.
    check(unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })?;
    Ok(())
}
