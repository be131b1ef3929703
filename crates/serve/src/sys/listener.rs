//! A socket that listens, TCP or unix, and the file that stands for the latter.

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

/// A socket that listens, non-blocking.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Dropped before the descriptor is closed: who finds the file meanwhile still finds somebody who listens.
    _file: Option<SocketFile>,
    fd: OwnedFd,
}

/// The file of a unix socket, which goes with the listener of the process that made it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode: another one may stand there by now.
    is: (u64, u64),
    pid: u32,
}

/// What a listener's name in the kernel is.
pub(crate) enum Name {
    Ip(SocketAddr),
    Unix(PathBuf),
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Listener {
    /// Listens at an IP address with a long queue; connections inherit TCP_NODELAY from the listener.
    pub(crate) fn at_ip(address: SocketAddr) -> io::Result<Listener> {
        Listener::prepared(TcpListener::bind(address)?.into(), None)
    }

    /// Listens at `path`, with `mode` as the file's permissions (by default what the umask leaves). Where a socket stands there that
    /// nobody listens at any more, it is replaced.
    ///
    /// # Errors
    /// `AddrInUse`: somebody listens there. `AlreadyExists`: a file that is no socket. What the system says otherwise.
    pub(crate) fn at_path(path: &Path, mode: Option<u32>) -> io::Result<Listener> {
        let (address, len) = unix_address(path)?;
        // Who replaces a socket must not find one that another process has bound and not begun to listen at. Where the folder
        // cannot be read, both take the chance.
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
        // SAFETY: `fd` was just made and nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        if let Some(mode) = mode {
            // Before the file is there, so that at no time it lets in whom it is not to.
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
            // What the umask took.
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
        Ok(listener)
    }

    /// One that listens already.
    ///
    /// # Errors
    /// `InvalidInput`: it does not listen, or is of another family. What the system says otherwise, as for what is no socket.
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
        // SAFETY: no pointer is passed. A second listen(2) sets the queue's length anew; the kernel caps it.
        check(unsafe { libc::listen(fd, 4096) })?;
        match listener.name()? {
            Name::Ip(_) => set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32)?,
            Name::Unix(_) => {}
        }
        Ok(listener)
    }

    /// Where it listens.
    pub(crate) fn name(&self) -> io::Result<Name> {
        let address = RawAddress::local(self.as_raw_fd())?;
        if let Some(ip) = address.ip() {
            return Ok(Name::Ip(ip));
        }
        let name = address.unix_name().ok_or(io::ErrorKind::InvalidInput)?;
        let name = match name {
            [0, rest @ ..] if !rest.is_empty() => [b"@", rest].concat(),
            name => name.split(|b| *b == 0).next().unwrap_or(name).to_vec(),
        };
        Ok(Name::Unix(PathBuf::from(std::ffi::OsStr::from_bytes(
            &name,
        ))))
    }

    /// Takes a connection that waits, non-blocking and closed on exec, and the peer's address, which unix sockets have none of.
    pub(crate) fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: `filled` gives room for the largest address there is, and its size.
        let (fd, peer) = RawAddress::filled(|to, len| unsafe {
            libc::accept4(self.as_raw_fd(), to, len, flags)
        })?;
        // SAFETY: `fd` was just made and nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok((Stream::from(fd), peer.ip()))
    }
}

impl SocketFile {
    fn at(path: &Path) -> Option<SocketFile> {
        let found = fs::symlink_metadata(path).ok()?;
        Some(SocketFile {
            // Another folder may be the working one by the end.
            path: std::path::absolute(path).ok()?,
            is: (found.dev(), found.ino()),
            pid: std::process::id(),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return; // A child of fork(2) has it too.
        }
        let is = |found: fs::Metadata| (found.dev(), found.ino()) == self.is;
        if fs::symlink_metadata(&self.path).is_ok_and(is) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// `path` as the kernel wants it, and how many bytes that are.
fn unix_address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all zeroes is a valid address of no family.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.as_os_str().as_bytes();
    // One byte is left for the 0 behind it.
    if name.is_empty() || name.contains(&0) || name.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    for (to, byte) in address.sun_path.iter_mut().zip(name) {
        *to = *byte as libc::c_char;
    }
    Ok((address, size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

/// A number among the options of a socket.
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
