//! [`copy_file`] and [`copy_contents`] copy one file to another.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{SeekFrom, copy_file_range, ioctl_ficlone, seek, sendfile};
use rustix::io::Errno;

use super::{BUFFER_BYTES, Moved, is_unsupported};
use crate::{AtomicFile, OnFailure};

/// The largest number of bytes that one system call copies.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The method of copying bytes from one file to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyMethod {
    /// `copy_file_range(2)`: the file system copies or shares the blocks.
    Range,
    /// `sendfile(2)`: the kernel copies the bytes from page to page. This works even if the files
    /// are on different file systems.
    Sendfile,
    /// The bytes are read and written through a buffer of this process.
    Buffer,
}

/// Copies the contents of `from` to the empty file `to`. Of the following methods, the first one
/// that the kernel and the file system support is used: shared blocks (FICLONE),
/// `copy_file_range(2)`, `sendfile(2)`, a buffer of this process. Holes are preserved.
///
/// `go_on` is called after each copied part, with the number of bytes of the file that were
/// processed. It may return an error, which aborts the copy.
///
/// This process does not copy the bytes, except if the buffer is used: then it copies them twice.
///
/// # Errors
/// The error of the operating system, or of `go_on`. If another process truncates `from` during the
/// copy, the copy ends at the new end, without an error.
pub fn copy_contents(
    from: &File,
    to: &File,
    mut go_on: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<Moved> {
    let len_bytes = from.metadata()?.len();
    if len_bytes > 0 && ioctl_ficlone(to, from).is_ok() {
        // The destination shares the blocks that the source had when it was cloned.
        return Ok(Moved {
            n_bytes: to.metadata()?.len(),
            n_copied: 0,
        });
    }
    let mut moved = Moved::default();
    // Files in /proc report the length 0, although they have contents.
    let mut way = match len_bytes {
        0 => CopyMethod::Buffer,
        _ => CopyMethod::Range,
    };
    let mut buffer = Vec::new();
    let mut at = 0;
    while at < len_bytes || len_bytes == 0 {
        let (start, end) = match len_bytes {
            0 => (at, u64::MAX),
            _ => match next_data(from, at, len_bytes)? {
                Some(range) => range,
                None => {
                    // Only a hole follows, or `from` was truncated to the bytes copied so far.
                    moved.n_bytes = from.metadata()?.len().clamp(at, len_bytes);
                    to.set_len(moved.n_bytes)?;
                    return Ok(moved);
                }
            },
        };
        at = start;
        while at < end {
            let step = piece(from, to, at, (end - at).min(MOST_BYTES), way, &mut buffer);
            match step {
                Ok(0) => {
                    moved.n_bytes = at;
                    to.set_len(at)?;
                    return Ok(moved);
                }
                Ok(n) => {
                    at += n;
                    moved.n_copied += if way == CopyMethod::Buffer { n } else { 0 };
                }
                Err(Errno::INTR) => {}
                Err(e) if is_unsupported(e) && way != CopyMethod::Buffer => {
                    way = match way {
                        CopyMethod::Range => CopyMethod::Sendfile,
                        _ => CopyMethod::Buffer,
                    };
                }
                Err(e) => return Err(e.into()),
            }
            go_on(at)?;
        }
    }
    moved.n_bytes = at;
    Ok(moved)
}

fn piece(
    from: &File,
    to: &File,
    at: u64,
    most_bytes: u64,
    way: CopyMethod,
    buffer: &mut Vec<u8>,
) -> Result<u64, Errno> {
    let most = usize::try_from(most_bytes).unwrap_or(usize::MAX);
    let (mut read_at, mut write_at) = (at, at);
    let n = match way {
        CopyMethod::Range => {
            copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), most)?
        }
        CopyMethod::Sendfile => {
            seek(to.as_fd(), SeekFrom::Start(at))?;
            sendfile(to, from, Some(&mut read_at), most)?
        }
        CopyMethod::Buffer => {
            buffer.resize(BUFFER_BYTES, 0);
            let errno = |e: io::Error| Errno::from_io_error(&e).unwrap_or(Errno::IO);
            let most = most.min(buffer.len());
            let n = from.read_at(&mut buffer[..most], at).map_err(errno)?;
            to.write_all_at(&buffer[..n], at).map_err(errno)?;
            n
        }
    };
    Ok(n as u64)
}

/// Returns the start and the end, in bytes, of the first range of data in `file` from the position
/// `at` on. Returns `None` if only a hole follows `at`.
fn next_data(file: &File, at: u64, len_bytes: u64) -> io::Result<Option<(u64, u64)>> {
    let start = match seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        // Only a hole follows.
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not report holes, so all bytes that follow are treated as data.
        Err(e) if is_unsupported(e) => return Ok(Some((at, len_bytes))),
        Err(e) => return Err(e.into()),
    };
    let end = seek(file, SeekFrom::Hole(start)).unwrap_or(len_bytes);
    match start < len_bytes {
        true => Ok(Some((start, end.clamp(start, len_bytes)))),
        false => Ok(None),
    }
}

/// Copies the file `from` to `to`. The copy appears under the name `to` only when it is complete. A
/// new file gets the permissions of `from`; a replaced file keeps its own permissions.
/// [`copy_contents`] describes when `go_on` is called.
///
/// # Errors
/// The error of the operating system, of [`AtomicFile`], or of `go_on`. `IsADirectory` if `from` is
/// a directory. `InvalidInput` if `from` is a pipe, a socket or a device, or if `from` and `to` are
/// the same file.
pub fn copy_file(
    from: &Path,
    to: &Path,
    go_on: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<Moved> {
    // Opening a pipe would wait for a process that writes to it.
    let found = std::fs::metadata(from)?;
    let refused = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        let what = format!(
            "`{}` is not a regular file\nonly files can be copied",
            from.display()
        );
        return Err(refused(what));
    }
    let source = File::open(from)?;
    let found = source.metadata()?;
    let target = std::fs::metadata(to).ok();
    if let Some(target) = &target
        && (target.dev(), target.ino()) == (found.dev(), found.ino())
    {
        let what = format!(
            "`{}` and `{}` are the same file\nname another one to copy to",
            from.display(),
            to.display()
        );
        return Err(refused(what));
    }
    let made = AtomicFile::create(to, OnFailure::Remove)?;
    let moved = copy_contents(&source, made.as_file(), go_on)?;
    if target.is_none() {
        let mode = std::fs::Permissions::from_mode(found.mode() & 0o777);
        made.as_file().set_permissions(mode)?;
    }
    made.commit()?;
    Ok(moved)
}
