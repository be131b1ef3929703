//! TCP sockets, as far as `std::net` does not reach.

use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};

use onecopy_text::{ByteSink, Chunk};

use super::check;

/// Listens at `address` with a long queue; connections inherit TCP_NODELAY from the listener.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    prepare(&listener)?;
    Ok(listener)
}

/// The same for one that is bound already.
pub(crate) fn prepare(listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let fd = listener.as_raw_fd();
    // SAFETY: no pointer is passed. A second listen(2) sets the queue's length anew; the kernel caps it.
    check(unsafe { libc::listen(fd, 4096) })?;
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32)
}

/// Takes a connection that waits, non-blocking and closed on exec.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: `address` has room for `len` bytes, the largest address there is.
    let fd = check(unsafe {
        libc::accept4(
            listener.as_raw_fd(),
            address.as_mut_ptr().cast(),
            &raw mut len,
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    })?;
    // SAFETY: `fd` was just made and nobody else knows it.
    let stream = unsafe { TcpStream::from_raw_fd(fd) };
    // SAFETY: it was zeroed before the call, and all zeroes is a valid address of no family.
    let address = unsafe { address.assume_init() };
    let peer = match i32::from(address.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the kernel wrote a sockaddr_in; the storage is aligned for it.
            let a = unsafe { &*(&raw const address).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
            SocketAddr::from((ip, u16::from_be(a.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that the kernel wrote a sockaddr_in6; the storage is aligned for it.
            let a = unsafe { &*(&raw const address).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(a.sin6_addr.s6_addr);
            SocketAddrV6::new(ip, u16::from_be(a.sin6_port), 0, a.sin6_scope_id).into()
        }
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok((stream, peer))
}

/// Sends from `parts`, in order, and returns how many bytes the kernel took; `more` comes at once, so no packet need leave for
/// these alone. Never raises SIGPIPE. Copies: none in user space.
pub(crate) fn send(stream: &TcpStream, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
    // SAFETY: all zeroes is a valid msghdr: no name, no parts, no control data.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    // IoSlice is ABI-compatible with iovec by its documentation. sendmsg only reads through it.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len();
    let flags = libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
    loop {
        let n =
            // SAFETY: `message` points to `parts.len()` iovecs, borrowed for the call.
            unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, flags) };
        if n >= 0 {
            return Ok(n as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// As [`send`], of bytes in one piece.
pub(crate) fn send_bytes(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the kernel reads `bytes.len()` bytes there, borrowed for the call.
        let n = unsafe {
            libc::send(
                stream.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_NOSIGNAL,
            )
        };
        if n >= 0 {
            return Ok(n as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Sends up to `n_bytes` of `file` from `offset` on, whatever its own position, and returns how many the kernel took; 0 at the
/// end of the file. Copies: none in user space.
pub(crate) fn send_file(
    stream: &TcpStream,
    file: BorrowedFd<'_>,
    offset: u64,
    n_bytes: usize,
) -> io::Result<usize> {
    let mut at = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    loop {
        let n =
            // SAFETY: two open descriptors, and an offset that the kernel may write to.
            unsafe { libc::sendfile(stream.as_raw_fd(), file.as_raw_fd(), &raw mut at, n_bytes) };
        if n >= 0 {
            return Ok(n as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Reads what has come, up to `n_bytes`, behind what `chunk` holds; returns how many bytes. Copies: none in user space.
pub(crate) fn receive(stream: &TcpStream, chunk: &mut Chunk, n_bytes: usize) -> io::Result<usize> {
    let full = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    let room = &mut chunk.spare(n_bytes).map_err(full)?[..n_bytes];
    // SAFETY: the kernel writes at most `room.len()` bytes there.
    let n = unsafe { libc::recv(stream.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), 0) };
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has written that many bytes of the spare part.
    unsafe { chunk.commit(n) };
    Ok(n)
}

/// Makes the next close of `stream` a reset: what the kernel still holds is dropped, and a peer that reads up to the
/// end of the connection gets an error, not an end.
pub(crate) fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    set_option(
        stream.as_raw_fd(),
        libc::SOL_SOCKET,
        libc::SO_LINGER,
        &linger,
    )
}

/// How many files this process may have open.
pub(crate) fn max_open_files() -> io::Result<usize> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` has room for what the kernel writes.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

fn set_option<T>(
    fd: libc::c_int,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes from `value`; callers pass the C type of the option.
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
