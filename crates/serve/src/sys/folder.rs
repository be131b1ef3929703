//! [`Folder`] opens files below a folder and no files outside it. It uses openat2(2). On kernels
//! without openat2(2), it calls openat(2) for each component of the path.

use std::ffi::{CStr, CString, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::check;

/// The largest number of attempts to open a path. The kernel requires a new attempt if a component
/// of the path was renamed during the previous attempt.
const MOST_TRIES: usize = 16;

/// A served folder, which stays open. The value refers to the same folder even if the folder or one
/// of its parents is renamed.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    /// `true` if the kernel can confine the lookup of paths to the folder (openat2(2), Linux 5.6 or
    /// later). If `false`, symbolic links are not followed.
    has_openat2: bool,
}

/// The purpose for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenPurpose {
    /// The file is opened in order to read its contents. Opening never blocks, not even for a FIFO.
    Read,
    /// The file is opened in order to read only its metadata.
    Look,
}

impl OpenPurpose {
    fn flags(self) -> libc::c_int {
        libc::O_CLOEXEC
            | match self {
                // With O_NONBLOCK, opening a FIFO without a writer does not block. With O_NOCTTY,
                // an opened terminal does not become the controlling terminal of this process.
                OpenPurpose::Read => libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY,
                OpenPurpose::Look => libc::O_PATH,
            }
    }
}

impl Folder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// The error of open(2) if the path does not exist or is not a folder.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(path)?;
        let mut folder = Folder {
            fd: opened.into(),
            has_openat2: true,
        };
        // openat2(2) fails if the kernel does not have it, or if a filter of system calls refuses
        // it.
        folder.has_openat2 = folder.beneath(c".", OpenPurpose::Look).is_ok();
        Ok(folder)
    }

    /// Opens the file at `path`, relative to the folder; an empty path denotes the folder itself.
    /// The file may be of any type. A path that leads out of the folder, by `..` or a symbolic
    /// link, is an error, even if files are renamed during the call.
    ///
    /// # Errors
    /// The error of openat2(2), which is EXDEV for a path that leads out of the folder. On older
    /// kernels, the error of openat(2). `InvalidInput` if the path contains a NUL.
    pub(crate) fn file(&self, path: &[u8], opening: OpenPurpose) -> io::Result<File> {
        let path = CString::new(if path.is_empty() { b"." } else { path })?;
        match self.has_openat2 {
            true => self.beneath(&path, opening),
            false => self.step_by_step(&path, opening),
        }
    }

    fn beneath(&self, path: &CStr, opening: OpenPurpose) -> io::Result<File> {
        // SAFETY: all zeroes is a valid open_how: three numbers.
        let mut how: libc::open_how = unsafe { MaybeUninit::zeroed().assume_init() };
        how.flags = u64::from(opening.flags().unsigned_abs());
        how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS;
        let mut n_tries = 0;
        loop {
            // SAFETY: the descriptor is open, the text ends with 0, and `open_how` is passed with
            // its size. All are borrowed during the call.
            let fd = unsafe {
                libc::syscall(
                    libc::SYS_openat2,
                    self.fd.as_raw_fd(),
                    path.as_ptr(),
                    &raw const how,
                    size_of::<libc::open_how>(),
                )
            };
            if let Ok(fd @ 0..) = RawFd::try_from(fd) {
                // SAFETY: the descriptor was just opened, and nothing else uses it.
                return Ok(unsafe { File::from_raw_fd(fd) });
            }
            let error = io::Error::last_os_error();
            let is_renamed = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR));
            n_tries += 1;
            if !is_renamed || n_tries == MOST_TRIES {
                return Err(error);
            }
        }
    }

    fn step_by_step(&self, path: &CStr, opening: OpenPurpose) -> io::Result<File> {
        let path = path.to_bytes();
        if path.starts_with(b"/") {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        let names: Vec<&[u8]> = path
            .split(|b| *b == b'/')
            .filter(|name| !name.is_empty() && *name != b".")
            .collect();
        let Some((last, above)) = names.split_last() else {
            return open_at(self.fd.as_raw_fd(), c".", opening.flags());
        };
        let mut at: Option<File> = None;
        for name in above {
            let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
            at = Some(self.step(at.as_ref(), name, flags)?);
        }
        let is_folder = path.ends_with(b"/");
        let flags = opening.flags() | if is_folder { libc::O_DIRECTORY } else { 0 };
        self.step(at.as_ref(), last, flags)
    }

    fn step(&self, at: Option<&File>, name: &[u8], flags: libc::c_int) -> io::Result<File> {
        if name == b".." {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        let at = at.map_or(self.fd.as_raw_fd(), AsRawFd::as_raw_fd);
        open_at(at, &CString::new(name)?, flags | libc::O_NOFOLLOW)
    }
}

fn open_at(at: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<File> {
    // SAFETY: an open descriptor, and a text that ends with 0, borrowed for the call.
    let fd = check(unsafe { libc::openat(at, name.as_ptr(), flags) })?;
    // SAFETY: the descriptor was just opened, and nothing else uses it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// An open directory stream (`DIR`).
struct FolderEntries(*mut libc::DIR);

impl Drop for FolderEntries {
    fn drop(&mut self) {
        // SAFETY: opened by fdopendir, and closed only here.
        unsafe { libc::closedir(self.0) };
    }
}

/// Returns at most `most` of the names in the folder `folder`, without `.` and `..`. The names are
/// in the order in which the directory stores them.
///
/// # Errors
/// The error of fdopendir(3) or readdir(3).
pub(crate) fn names_in(folder: File, most: usize) -> io::Result<Vec<OsString>> {
    let fd = folder.into_raw_fd();
    // SAFETY: an open descriptor that nobody else has; the stream owns it from now on.
    let stream = unsafe { libc::fdopendir(fd) };
    if stream.is_null() {
        let error = io::Error::last_os_error();
        // SAFETY: fdopendir failed, so this code still owns the descriptor exclusively.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        return Err(error);
    }
    let entries = FolderEntries(stream);
    let mut names = Vec::new();
    while names.len() < most {
        // SAFETY: the pointer to the errno of this thread is always valid.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: an open stream that no other thread has.
        let entry = unsafe { libc::readdir(entries.0) };
        if entry.is_null() {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(0) | None => break,
                _ => return Err(error),
            }
        }
        // SAFETY: readdir returned a complete entry, which is valid until the next call of readdir.
        // The name in it is NUL-terminated.
        let name = unsafe { CStr::from_ptr((&raw const (*entry).d_name).cast()) };
        if name != c"." && name != c".." {
            names.push(OsString::from_vec(name.to_bytes().to_vec()));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// Creates a folder with links of every kind, and next to it a folder with a file that must not
    /// be reachable.
    fn tree() -> (tempfile::TempDir, Folder) {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        std::fs::write(at("secret"), "secret").unwrap();
        std::fs::create_dir_all(at("open/below")).unwrap();
        std::fs::write(at("open/a"), "a").unwrap();
        std::fs::write(at("open/below/b"), "b").unwrap();
        symlink("a", at("open/inside")).unwrap();
        symlink("../a", at("open/below/up")).unwrap();
        symlink("below", at("open/folder")).unwrap();
        symlink("../secret", at("open/out")).unwrap();
        symlink("../..", at("open/below/far")).unwrap();
        symlink(at("secret"), at("open/whole")).unwrap();
        symlink(at("open/a"), at("open/whole-inside")).unwrap();
        symlink("/proc/self/root", at("open/magic")).unwrap();
        symlink("loop", at("open/loop")).unwrap();
        let folder = Folder::open(&at("open")).unwrap();
        (top, folder)
    }

    fn text(folder: &Folder, path: &str) -> io::Result<String> {
        let mut text = String::new();
        let mut file = folder.file(path.as_bytes(), OpenPurpose::Read)?;
        file.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn what_is_below_is_opened_and_nothing_else() {
        let (_top, mut folder) = tree();
        for has_openat2 in [true, false] {
            folder.has_openat2 &= has_openat2;
            assert_eq!(text(&folder, "a").unwrap(), "a");
            assert_eq!(text(&folder, "below/b").unwrap(), "b");
            for path in [
                "out",
                "below/far/secret",
                "whole",
                "whole-inside",
                "magic/etc/passwd",
                "loop",
                "../secret",
                "below/../../secret",
                "/etc/passwd",
                "a/",
                "a/..",
                "nothing",
                "below/../../open/../secret",
                "a\0",
            ] {
                assert!(
                    text(&folder, path).is_err(),
                    "{path} by openat2: {has_openat2}"
                );
            }
            assert!(
                folder
                    .file(b"", OpenPurpose::Read)
                    .unwrap()
                    .metadata()
                    .unwrap()
                    .is_dir()
            );
        }
    }

    #[test]
    fn links_that_stay_are_followed_by_the_kernel_alone() {
        let (_top, mut folder) = tree();
        for has_openat2 in [folder.has_openat2, false] {
            folder.has_openat2 = has_openat2;
            for (path, expected) in [("inside", "a"), ("below/up", "a"), ("folder/b", "b")] {
                let got = text(&folder, path).ok();
                assert_eq!(got.as_deref(), has_openat2.then_some(expected), "{path}");
            }
        }
    }

    #[test]
    fn the_names_of_a_folder_are_told_up_to_a_number() {
        let (_top, folder) = tree();
        let open = |path: &str| folder.file(path.as_bytes(), OpenPurpose::Read).unwrap();
        let mut names = names_in(open("below"), 100).unwrap();
        names.sort();
        assert_eq!(names, ["b", "far", "up"]);
        assert_eq!(names_in(open(""), 4).unwrap().len(), 4);
        assert!(names_in(open("a"), 4).is_err());
    }
}
