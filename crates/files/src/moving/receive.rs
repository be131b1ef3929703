//! A socket to a file.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, pwrite, read, write};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::{BUFFER_BYTES, Moved, is_unsupported};

/// What a pipe is asked to hold: the most that a process without rights gets (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: usize = 1024 * 1024;

/// Moves bytes of sockets to files by `splice(2)` through a pipe; where that cannot be, through a buffer.
#[derive(Debug)]
pub struct FileReceiver {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Pipe {
        to: OwnedFd,
        from: OwnedFd,
        n_bytes: usize,
    },
    Buffer(Vec<u8>),
}

impl FileReceiver {
    /// # Errors
    /// The system's, where a pipe cannot be made.
    pub fn new() -> io::Result<FileReceiver> {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        // What it holds by itself is little (64 KiB), but does.
        let n_bytes = fcntl_setpipe_size(&to, PIPE_BYTES).unwrap_or(64 * 1024);
        Ok(FileReceiver {
            way: Way::Pipe { to, from, n_bytes },
        })
    }

    /// Moves what has come, up to `most_bytes`, into `file`: at `offset`, which goes on by as much, or at its own position. Nothing
    /// where the peer has ended.
    ///
    /// A socket that blocks is waited for until a byte is there. Copies: none in this process; two where the kernel cannot move
    /// them.
    ///
    /// # Errors
    /// The system's: `WouldBlock`, `Interrupted`; where the file cannot be written, what had come by then is lost.
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
        if let Way::Pipe { to, from, n_bytes } = &self.way {
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

    /// Writes what stands in the pipe, which the file does not take from there, and does without it from now on.
    fn empty(
        &mut self,
        file: BorrowedFd<'_>,
        mut offset: Option<&mut u64>,
        mut left: usize,
    ) -> io::Result<()> {
        let way = std::mem::replace(&mut self.way, Way::Buffer(vec![0; BUFFER_BYTES]));
        let (Way::Pipe { from, .. }, Way::Buffer(buffer)) = (&way, &mut self.way) else {
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
        if let Way::Pipe { .. } = self.way {
            self.way = Way::Buffer(vec![0; BUFFER_BYTES]);
        }
        match &mut self.way {
            Way::Buffer(buffer) => buffer,
            Way::Pipe { .. } => &mut [],
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
