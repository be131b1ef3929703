//! [`Listener`]: a listening TCP or unix socket, and the file of a unix socket.

use std::fs::{self, File};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::check;
use super::socket::{RawAddress, Stream, set_option};

/// A non-blocking listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    /// The file of a unix socket; `None` for TCP. It is deleted before the socket is closed, so
    /// that a process that finds the file always finds a listening socket.
    _file: Option<SocketFile>,
    fd: OwnedFd,
}

/// The file of a unix socket. Dropping this value deletes the file, but only in the process that
/// created it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// The device number and the inode number of the file. If they differ from those of the file
    /// that is now at `path`, another process has replaced the file, and the new file is not
    /// deleted.
    is: (u64, u64),
    pid: u32,
}

/// The address of a listener: an IP address and port, or the path of a unix socket.
pub(crate) enum ListenerName {
    Ip(SocketAddr),
    Unix(PathBuf),
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Listener {
    /// Listens at an IP address, with a long queue of pending connections. Accepted connections
    /// inherit TCP_NODELAY from the listener.
    pub(crate) fn at_ip(address: SocketAddr) -> io::Result<Listener> {
        Listener::prepared(TcpListener::bind(address)?.into(), None)
    }

    /// Listens at `path`. The socket file gets the permissions `mode`. If `mode` is `None`, the
    /// umask determines the permissions. A socket file at `path` on which no process listens is
    /// replaced.
    ///
    /// # Errors
    /// `AddrInUse` if another process listens at the path. `AlreadyExists` if a file that is not a
    /// socket exists at the path. Otherwise the error of the system call that failed.
    pub(crate) fn at_path(path: &Path, mode: Option<u32>) -> io::Result<Listener> {
        let (address, len) = unix_address(path)?;
        // Between bind(2) and listen(2), a socket looks like a stale one, on which no process
        // listens. The lock on the folder prevents that another process deletes a socket in this
        // state. If the folder cannot be opened, there is no lock, and the deletion is possible.
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let lock = File::open(folder).ok();
        if let Some(lock) = &lock {
            lock.lock()?;
        }
        // SAFETY: no pointer is passed; the result is checked.
        let fd = check(unsafe {
            libc::socket(
                libc::AF_UNIX,
                libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                0,
            )
        })?;
        // SAFETY: `fd` was just created, and nothing else uses it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        if let Some(mode) = mode {
            // The mode is set before the file exists, so that another user can connect at no time.
            // SAFETY: no pointer is passed.
            check(unsafe { libc::fchmod(fd.as_raw_fd(), mode) })?;
        }
        let bind = || {
            // SAFETY: `address` is a sockaddr_un of `len` bytes.
            check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })
        };
        match bind() {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                if !fs::symlink_metadata(path)?.file_type().is_socket() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                match UnixStream::connect(path) {
                    Err(gone) if gone.kind() == io::ErrorKind::ConnectionRefused => {}
                    _ => return Err(e),
                }
                fs::remove_file(path)?;
                bind()?;
            }
            bound => {
                bound?;
            }
        }
        let listener = Listener::prepared(fd, SocketFile::at(path))?;
        if let Some(mode) = mode {
            // Adds the permissions that the umask removed.
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
        Ok(listener)
    }

    /// Uses the descriptor of a socket that already listens.
    ///
    /// Returns the error `InvalidInput` if the socket does not listen, or if it is neither a TCP
    /// nor a unix socket. Otherwise returns the error of the system call that failed, for example
    /// if the descriptor is not a socket.
    pub(crate) fn of(fd: OwnedFd) -> io::Result<Listener> {
        if get_option(&fd, libc::SO_ACCEPTCONN)? == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Listener::prepared(fd, None)
    }

    fn prepared(fd: OwnedFd, file: Option<SocketFile>) -> io::Result<Listener> {
        let listener = Listener { _file: file, fd };
        let fd = listener.as_raw_fd();
        // SAFETY: no pointer is passed.
        let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
        // SAFETY: no pointer is passed.
        check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
        // SAFETY: no pointer is passed. A second listen(2) sets the queue's length anew; the kernel
        // caps it.
        check(unsafe { libc::listen(fd, 4096) })?;
        match listener.name()? {
            ListenerName::Ip(_) => set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32)?,
            ListenerName::Unix(_) => {}
        }
        Ok(listener)
    }

    /// Returns the address of the listener.
    pub(crate) fn name(&self) -> io::Result<ListenerName> {
        let address = RawAddress::local(self.as_raw_fd())?;
        if let Some(ip) = address.ip() {
            return Ok(ListenerName::Ip(ip));
        }
        let name = address.unix_name().ok_or(io::ErrorKind::InvalidInput)?;
        let name = match name {
            [0, rest @ ..] if !rest.is_empty() => [b"@", rest].concat(),
            name => name.split(|b| *b == 0).next().unwrap_or(name).to_vec(),
        };
        Ok(ListenerName::Unix(PathBuf::from(
            std::ffi::OsStr::from_bytes(&name),
        )))
    }

    /// Accepts a connection, and returns it with the peer's address, which is `None` for a unix
    /// socket. The connection is non-blocking and has the close-on-exec flag.
    pub(crate) fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: `filled` passes a buffer large enough for every address, and its size.
        let (fd, peer) = RawAddress::filled(|to, len| unsafe {
            libc::accept4(self.as_raw_fd(), to, len, flags)
        })?;
        // SAFETY: `fd` was just created, and nothing else uses it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok((Stream::from(fd), peer.ip()))
    }
}

impl SocketFile {
    fn at(path: &Path) -> Option<SocketFile> {
        let found = fs::symlink_metadata(path).ok()?;
        Some(SocketFile {
            // The path is made absolute, because the working directory may have changed when the
            // file is deleted.
            path: std::path::absolute(path).ok()?,
            is: (found.dev(), found.ino()),
            pid: std::process::id(),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return; // A child of fork(2) must not delete the file.
        }
        let is = |found: fs::Metadata| (found.dev(), found.ino()) == self.is;
        if fs::symlink_metadata(&self.path).is_ok_and(is) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns `path` as a unix socket address (`sockaddr_un`), and the length of this address in
/// bytes.
fn unix_address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all zeroes is a valid address of no family.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.as_os_str().as_bytes();
    // One byte is reserved for the NUL that terminates the path.
    if name.is_empty() || name.contains(&0) || name.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    for (to, byte) in address.sun_path.iter_mut().zip(name) {
        *to = *byte as libc::c_char;
    }
    Ok((address, size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

/// Returns the value of an integer option of a socket.
fn get_option(fd: &OwnedFd, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of `value`.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    })?;
    Ok(value)
}
