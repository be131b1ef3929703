//! [`FileReceiver`] moves bytes from a socket to a file.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, pwrite, read, write};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::{BUFFER_BYTES, Moved, is_unsupported};

/// The capacity in bytes that is requested for the pipe: the largest one that an unprivileged
/// process can set (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: usize = 1024 * 1024;

/// Moves bytes from sockets to files by `splice(2)` through a pipe, or through a buffer if
/// `splice(2)` is not supported.
#[derive(Debug)]
pub struct FileReceiver {
    way: ReceiveMethod,
}

#[derive(Debug)]
enum ReceiveMethod {
    Pipe {
        to: OwnedFd,
        from: OwnedFd,
        n_bytes: usize,
    },
    Buffer(Vec<u8>),
}

impl FileReceiver {
    /// Creates a receiver with a new pipe.
    ///
    /// # Errors
    /// The error of the operating system if the pipe cannot be created.
    pub fn new() -> io::Result<FileReceiver> {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        // If the capacity cannot be set, the default of 64 KiB is small, but sufficient.
        let n_bytes = fcntl_setpipe_size(&to, PIPE_BYTES).unwrap_or(64 * 1024);
        Ok(FileReceiver {
            way: ReceiveMethod::Pipe { to, from, n_bytes },
        })
    }

    /// Moves the bytes that `socket` has received, at most `most_bytes`, to `file`. The bytes are
    /// written at the position `offset`, which is then advanced. If `offset` is `None`, they are
    /// written at the current position of the file. Moves no bytes if the peer has closed its side
    /// and all its bytes were read.
    ///
    /// For a blocking socket, the call waits until at least one byte is available. This process
    /// does not copy the bytes, except if the kernel cannot move them: then it copies them twice,
    /// into a buffer and to the file.
    ///
    /// # Errors
    /// The error of the system: `WouldBlock`, `Interrupted`. If the file cannot be written, the
    /// bytes received by this call are lost.
    pub fn step(
        &mut self,
        socket: impl AsFd,
        file: impl AsFd,
        mut offset: Option<&mut u64>,
        most_bytes: u64,
    ) -> io::Result<Moved> {
        let (socket, file) = (socket.as_fd(), file.as_fd());
        let most = usize::try_from(most_bytes).unwrap_or(usize::MAX);
        if most == 0 {
            return Ok(Moved::default());
        }
        if let ReceiveMethod::Pipe { to, from, n_bytes } = &self.way {
            let flags = SpliceFlags::MOVE;
            match splice(socket, None, to, None, most.min(*n_bytes), flags) {
                Ok(0) => return Ok(Moved::default()),
                Ok(n) => {
                    let mut left = n;
                    while left > 0 {
                        match splice(from, None, file, offset.as_deref_mut(), left, flags) {
                            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                            Ok(moved) => left -= moved,
                            Err(Errno::INTR) => {}
                            Err(e) if is_unsupported(e) => break,
                            Err(e) => return Err(e.into()),
                        }
                    }
                    let mut moved = Moved::by_kernel(n);
                    if left > 0 {
                        moved.n_copied = left as u64;
                        self.empty(file, offset, left)?;
                    }
                    return Ok(moved);
                }
                Err(e) if is_unsupported(e) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let buffer = self.buffer();
        let most = most.min(buffer.len());
        let n = read(socket, &mut buffer[..most])?;
        write_all(file, offset, &buffer[..n])?;
        Ok(Moved::by_buffer(n))
    }

    /// Copies the bytes that are in the pipe to `file` through a buffer, because the file does not
    /// support `splice(2)`. Later calls to [`FileReceiver::step`] use the buffer too.
    fn empty(
        &mut self,
        file: BorrowedFd<'_>,
        mut offset: Option<&mut u64>,
        mut left: usize,
    ) -> io::Result<()> {
        let way = std::mem::replace(&mut self.way, ReceiveMethod::Buffer(vec![0; BUFFER_BYTES]));
        let (ReceiveMethod::Pipe { from, .. }, ReceiveMethod::Buffer(buffer)) =
            (&way, &mut self.way)
        else {
            return Ok(());
        };
        while left > 0 {
            let most = left.min(buffer.len());
            let n = retry(|| read(from, &mut buffer[..most]))?;
            write_all(file, offset.as_deref_mut(), &buffer[..n])?;
            left -= n;
        }
        Ok(())
    }

    fn buffer(&mut self) -> &mut [u8] {
        if let ReceiveMethod::Pipe { .. } = self.way {
            self.way = ReceiveMethod::Buffer(vec![0; BUFFER_BYTES]);
        }
        match &mut self.way {
            ReceiveMethod::Buffer(buffer) => buffer,
            ReceiveMethod::Pipe { .. } => &mut [],
        }
    }
}

fn write_all(
    file: BorrowedFd<'_>,
    mut offset: Option<&mut u64>,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = match offset.as_deref_mut() {
            None => retry(|| write(file, bytes))?,
            Some(at) => {
                let n = retry(|| pwrite(file, bytes, *at))?;
                *at += n as u64;
                n
            }
        };
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[n..];
    }
    Ok(())
}

fn retry(mut call: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}
