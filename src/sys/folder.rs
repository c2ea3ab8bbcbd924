//! Directories held open, and what is done by names in them: for trees of any depth that others may change meanwhile.
//!
//! Invariants: no symbolic link is followed, but by [`Folder::follow`]. Listings are read as they are, so names are bytes.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{
    AT_FDCWD, AtFlags, OFlag, OpenHow, RenameFlags, ResolveFlag, openat, openat2, readlinkat, renameat, renameat2,
};
use nix::libc;
use nix::sys::stat::{
    FchmodatFlags, FileStat, Mode, SFlag, UtimensatFlags, fchmod, fchmodat, fstat, fstatat, mkdirat, mknodat, utimensat,
};
use nix::sys::time::TimeSpec;
use nix::unistd::{AccessFlags, UnlinkatFlags, fchownat, linkat, symlinkat, unlinkat};

use super::io;
use crate::limits;

/// The longest path that one call gets, bytes. Longer ones are entered in parts.
const PART_BYTES: usize = 2 << 10;

/// An open directory.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// The bytes of a file system, and those that this user can still write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub size: u64,
    pub free: u64,
}

/// The sorts of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Directory,
    File,
    Symlink,
    Fifo,
    Socket,
    Device,
}

/// What stat(2) tells of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub sort: Sort,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    /// Seconds and nanoseconds since 1970.
    pub mtime: (i64, u32),
    pub dev: u64,
    pub ino: u64,
    pub links: u64,
}

/// A name in a directory. The sort is `None` where the file system does not tell it in listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: Vec<u8>,
    pub is_directory: Option<bool>,
}

impl Facts {
    fn of(stat: &FileStat) -> Self {
        Self {
            sort: match stat.st_mode & libc::S_IFMT {
                libc::S_IFDIR => Sort::Directory,
                libc::S_IFREG => Sort::File,
                libc::S_IFLNK => Sort::Symlink,
                libc::S_IFIFO => Sort::Fifo,
                libc::S_IFSOCK => Sort::Socket,
                _ => Sort::Device,
            },
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            mtime: (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or_default()),
            dev: stat.st_dev,
            ino: stat.st_ino,
            links: count(stat.st_nlink),
        }
    }

    #[must_use]
    pub fn identity(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

/// The count, whose type differs from one processor to another.
fn count(count: impl Into<u64>) -> u64 {
    count.into()
}

impl Folder {
    /// Enters a directory by an absolute path without symbolic links, of any length.
    ///
    /// # Errors
    /// As openat2(2); ELOOP or ENOTDIR where a link is on the way.
    pub fn enter(path: &[u8]) -> io::Result<Self> {
        let root = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut at = Self(openat(AT_FDCWD, c"/", root, Mode::empty()).map_err(io)?);
        let mut left = path;
        while !left.is_empty() {
            let cut = if left.len() <= PART_BYTES {
                left.len()
            } else {
                memchr::memrchr(b'/', &left[..PART_BYTES]).filter(|cut| *cut > 0).unwrap_or(left.len())
            };
            let slashes = left[..cut].iter().take_while(|byte| **byte == b'/').count();
            if slashes < cut {
                at = at.inner(&left[slashes..cut])?;
            }
            left = &left[cut..];
        }
        Ok(at)
    }

    /// Enters a directory below, without links on the way.
    ///
    /// # Errors
    /// As openat2(2).
    pub fn inner(&self, path: &[u8]) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let resolve = ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        match openat2(&self.0, path, OpenHow::new().flags(flags).resolve(resolve)) {
            Err(Errno::ENOSYS | Errno::EPERM) => self.inner_step_by_step(path, flags),
            entered => Ok(Self(entered.map_err(io)?)),
        }
    }

    fn inner_step_by_step(&self, path: &[u8], flags: OFlag) -> io::Result<Self> {
        let mut at = openat(&self.0, c".", flags, Mode::empty()).map_err(io)?;
        for step in path.split(|byte| *byte == b'/').filter(|step| !step.is_empty()) {
            at = openat(&at, step, flags, Mode::empty()).map_err(io)?;
        }
        Ok(Self(at))
    }

    /// Enters a directory by one name, also through a symbolic link, as a program would.
    ///
    /// # Errors
    /// As open(2).
    pub fn follow(&self, name: &[u8]) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Self(openat(&self.0, name, flags, Mode::empty()).map_err(io)?))
    }

    /// The path of the directory without links, as the kernel tells it. `None` if it cannot be told.
    #[must_use]
    pub fn path(&self) -> Option<Vec<u8>> {
        use std::os::unix::ffi::OsStringExt;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.0.as_raw_fd())).ok()?;
        let path = path.into_os_string().into_vec();
        // A directory that was removed has another name there.
        let there = Self::enter(&path).ok()?;
        (there.facts().ok()?.identity() == self.facts().ok()?.identity()).then_some(path)
    }

    /// The facts of the directory itself.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn facts(&self) -> io::Result<Facts> {
        fstat(&self.0).map(|stat| Facts::of(&stat)).map_err(io)
    }

    /// The room on the file system.
    ///
    /// # Errors
    /// As fstatvfs(3).
    pub fn space(&self) -> io::Result<Space> {
        let told = nix::sys::statvfs::fstatvfs(&self.0).map_err(io)?;
        let bytes = |blocks: u64| blocks.saturating_mul(told.fragment_size());
        Ok(Space { size: bytes(told.blocks()), free: bytes(told.blocks_available()) })
    }

    /// True if it lies on an overlay of file systems, of which only the upper one is written.
    #[must_use]
    pub fn is_on_overlay(&self) -> bool {
        nix::sys::statfs::fstatfs(&self.0)
            .is_ok_and(|told| told.filesystem_type() == nix::sys::statfs::OVERLAYFS_SUPER_MAGIC)
    }

    /// True if a name on an overlay is that of a file which was made there. Another one is copied as a whole when it gets a link.
    #[must_use]
    pub fn is_in_upper_layer(&self, name: &[u8]) -> bool {
        /// As `struct file_handle`, with the most bytes that a file system tells.
        #[repr(C)]
        struct Handle {
            length: u32,
            sort: i32,
            bytes: [u8; 128],
        }
        /// For a handle that nothing can be opened by.
        const AT_HANDLE_FID: i32 = 0x200;
        /// The byte of flags in a handle of an overlay, and the flag.
        const UPPER: (usize, u8) = (6, 1 << 2);
        let Ok(name) = CString::new(name) else { return false };
        let mut handle = Handle { length: 128, sort: 0, bytes: [0; 128] };
        let mut mount = 0_i32;
        // SAFETY: the name ends with a NUL, and the kernel writes at most as many bytes as the handle says that it has.
        let told = unsafe {
            let (handle, mount) = (&raw mut handle, &raw mut mount);
            libc::syscall(libc::SYS_name_to_handle_at, self.0.as_raw_fd(), name.as_ptr(), handle, mount, AT_HANDLE_FID)
        };
        told == 0 && handle.length > 6 && handle.bytes[UPPER.0] & UPPER.1 != 0
    }

    /// The facts of a name in it.
    ///
    /// # Errors
    /// As fstatat(2).
    pub fn look(&self, name: &[u8]) -> io::Result<Facts> {
        fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(|stat| Facts::of(&stat)).map_err(io)
    }

    /// True if this user may make and remove names in it.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        let mode = AccessFlags::W_OK | AccessFlags::X_OK;
        nix::unistd::faccessat(&self.0, c".", mode, AtFlags::AT_EACCESS).is_ok()
    }

    /// All names in it but `.` and `..`.
    ///
    /// # Errors
    /// As open(2) and getdents64(2).
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let open = openat(&self.0, c".", flags, Mode::empty()).map_err(io)?;
        let (mut entries, mut buffer) = (Vec::new(), vec![0_u8; 32 << 10]);
        loop {
            // SAFETY: the kernel writes at most as many bytes as the buffer has.
            let count =
                unsafe { libc::syscall(libc::SYS_getdents64, open.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) };
            let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
            if count == 0 {
                return Ok(entries);
            }
            let mut left = &buffer[..count];
            // Inode and offset take 16 bytes, the record's length 2, the sort 1. The name has a NUL behind it.
            while left.len() > 19 {
                let length = usize::from(u16::from_ne_bytes([left[16], left[17]])).clamp(20, left.len());
                let name = left[19..length].split(|byte| *byte == 0).next().unwrap_or_default();
                if name != b"." && name != b".." {
                    let is_directory = (left[18] != libc::DT_UNKNOWN).then_some(left[18] == libc::DT_DIR);
                    entries.push(Entry { name: name.to_vec(), is_directory });
                }
                left = &left[length..];
            }
        }
    }

    /// Makes a hard link to what this name is, also to a symbolic link, in another directory.
    ///
    /// # Errors
    /// As linkat(2).
    pub fn link(&self, name: &[u8], to: &Self, as_name: &[u8]) -> io::Result<()> {
        linkat(&self.0, name, &to.0, as_name, AtFlags::empty()).map_err(io)
    }

    /// Makes a directory with mode 0700, whatever the umask is, and enters it.
    ///
    /// # Errors
    /// As mkdirat(2).
    pub fn make(&self, name: &[u8]) -> io::Result<Self> {
        self.make_with(name, 0o700)
    }

    /// The same with another mode.
    ///
    /// # Errors
    /// As mkdirat(2).
    pub fn make_with(&self, name: &[u8], mode: u32) -> io::Result<Self> {
        mkdirat(&self.0, name, Mode::from_bits_truncate(mode)).map_err(io)?;
        let made = self.inner(name)?;
        made.set_mode(mode)?;
        Ok(made)
    }

    /// Gives the directory the mode 0700.
    ///
    /// # Errors
    /// As fchmod(2).
    pub fn make_private(&self) -> io::Result<()> {
        self.set_mode(0o700)
    }

    /// Gives the directory the mode 0300: who knows a name in it can use that, and nobody can list it.
    ///
    /// # Errors
    /// As fchmod(2).
    pub fn hide_names(&self) -> io::Result<()> {
        self.set_mode(0o300)
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        if self.facts()?.mode == mode {
            return Ok(());
        }
        match openat(&self.0, c".", flags, Mode::empty()) {
            // It may not be read: then only its path in /proc leads to it.
            Err(Errno::EACCES) => {
                let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
                std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
            }
            opened => fchmod(&opened.map_err(io)?, Mode::from_bits_truncate(mode)).map_err(io),
        }
    }

    /// Makes a file with mode 0600 that is not there yet.
    ///
    /// # Errors
    /// As open(2); EEXIST.
    pub fn create(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let file = openat(&self.0, name, flags, mode).map_err(io)?;
        fchmod(&file, mode).map_err(io)?;
        Ok(file.into())
    }

    /// Opens a regular file for reading. Nothing else is opened or waited for. The time of its last use stays, if it is ours.
    ///
    /// # Errors
    /// As open(2); `InvalidInput` for what is no regular file.
    pub fn read(&self, name: &[u8]) -> io::Result<(File, Facts)> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        if self.look(name)?.sort != Sort::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = match openat(&self.0, name, flags | OFlag::O_NOATIME, Mode::empty()) {
            Err(Errno::EPERM) => openat(&self.0, name, flags, Mode::empty()),
            opened => opened,
        };
        let file = file.map_err(io)?;
        let facts = fstat(&file).map(|stat| Facts::of(&stat)).map_err(io)?;
        if facts.sort == Sort::File { Ok((file.into(), facts)) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Gives a file another name in another directory, where nothing has that name.
    ///
    /// # Errors
    /// As renameat2(2) with RENAME_NOREPLACE; EEXIST, and EXDEV for another file system.
    pub fn move_to(&self, name: &[u8], to: &Self, as_name: &[u8]) -> io::Result<()> {
        match renameat2(&self.0, name, &to.0, as_name, RenameFlags::RENAME_NOREPLACE) {
            // Some file systems cannot do that. A link replaces nothing, either.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                self.link(name, to, as_name)?;
                self.remove(name)
            }
            moved => moved.map_err(io),
        }
    }

    /// Makes a directory with mode 0755, less the umask.
    ///
    /// # Errors
    /// As mkdirat(2).
    pub fn make_common(&self, name: &[u8]) -> io::Result<()> {
        mkdirat(&self.0, name, Mode::from_bits_truncate(0o755)).map_err(io)
    }

    /// Makes a symbolic link, a FIFO, a socket or a device as another one is, with its attributes.
    ///
    /// # Errors
    /// As readlinkat(2), symlinkat(2) and mknodat(2); `InvalidInput` for others.
    pub fn copy_special(&self, name: &[u8], to: &Self, as_name: &[u8]) -> io::Result<Facts> {
        let stat = fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW).map_err(io)?;
        let facts = Facts::of(&stat);
        match facts.sort {
            Sort::File | Sort::Directory => return Err(io::ErrorKind::InvalidInput.into()),
            Sort::Symlink => {
                let target = readlinkat(&self.0, name).map_err(io)?;
                symlinkat(target.as_os_str(), &to.0, as_name).map_err(io)?;
            }
            Sort::Fifo | Sort::Socket | Sort::Device => {
                let sort = SFlag::from_bits_truncate(stat.st_mode & libc::S_IFMT);
                mknodat(&to.0, as_name, sort, Mode::S_IRUSR | Mode::S_IWUSR, stat.st_rdev).map_err(io)?;
            }
        }
        to.give(as_name, &facts)?;
        Ok(facts)
    }

    /// The extended attributes of a name in it that belong to its file: those of users and ACLs.
    ///
    /// # Errors
    /// As openat(2), listxattr(2) and getxattr(2); `FileTooLarge` for more than [`limits::ATTRIBUTES_BYTES_MAX`].
    pub fn attributes(&self, name: &[u8]) -> io::Result<Vec<Attribute>> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        attributes(&openat(&self.0, name, flags, Mode::empty()).map_err(io)?)
    }

    /// Gives a file the owner, where that is allowed, the mode and the time of modification that these facts have.
    ///
    /// # Errors
    /// As fchmodat(2) and utimensat(2).
    pub fn give(&self, name: &[u8], facts: &Facts) -> io::Result<()> {
        let (user, group) = (Some(facts.uid.into()), Some(facts.gid.into()));
        let _ = fchownat(&self.0, name, user, group, AtFlags::AT_SYMLINK_NOFOLLOW);
        if facts.sort != Sort::Symlink {
            let mode = Mode::from_bits_truncate(facts.mode);
            fchmodat(&self.0, name, mode, FchmodatFlags::NoFollowSymlink).map_err(io)?;
        }
        let time = TimeSpec::new(facts.mtime.0, facts.mtime.1.into());
        utimensat(&self.0, name, &TimeSpec::UTIME_OMIT, &time, UtimensatFlags::NoFollowSymlink).map_err(io)
    }

    /// Gives a regular file or a directory an extended attribute.
    ///
    /// # Errors
    /// As fsetxattr(2).
    pub fn give_attribute(&self, name: &[u8], attribute: &[u8], value: &[u8]) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        if !matches!(self.look(name)?.sort, Sort::File | Sort::Directory) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set_attribute(&openat(&self.0, name, flags, Mode::empty()).map_err(io)?, attribute, value)
    }

    /// Gives a file another name in the same directory, in place of what has it.
    ///
    /// # Errors
    /// As renameat(2).
    pub fn rename(&self, name: &[u8], to: &[u8]) -> io::Result<()> {
        renameat(&self.0, name, &self.0, to).map_err(io)
    }

    /// # Errors
    /// As unlinkat(2).
    pub fn remove(&self, name: &[u8]) -> io::Result<()> {
        unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir).map_err(io)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As unlinkat(2) with AT_REMOVEDIR.
    pub fn remove_directory(&self, name: &[u8]) -> io::Result<()> {
        unlinkat(&self.0, name, UnlinkatFlags::RemoveDir).map_err(io)
    }
}

/// A name of an extended attribute, and its value.
pub type Attribute = (Vec<u8>, Vec<u8>);

/// The extended attributes of an open file, also of one that is open as a path alone.
fn attributes(file: &impl AsRawFd) -> io::Result<Vec<Attribute>> {
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let filled = |call: &dyn Fn(&mut [u8]) -> isize| {
        let mut buffer = vec![0_u8; limits::ATTRIBUTES_BYTES_MAX];
        let length = call(&mut buffer);
        buffer.truncate(usize::try_from(length).map_err(|_| io::Error::last_os_error())?);
        Ok::<_, io::Error>(buffer)
    };
    // SAFETY: the path ends with a NUL, and the kernel writes nothing.
    if unsafe { libc::listxattr(path.as_ptr(), std::ptr::null_mut(), 0) } == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the path ends with a NUL, and the kernel writes at most as many bytes as the buffer has.
    let list = filled(&|to| unsafe { libc::listxattr(path.as_ptr(), to.as_mut_ptr().cast(), to.len()) })?;
    let (mut found, mut size) = (Vec::new(), list.len());
    let is_of_file = |name: &&[u8]| {
        name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_") || *name == b"security.capability"
    };
    for name in list.split(|byte| *byte == 0).filter(is_of_file) {
        let written = CString::new(name)?;
        // SAFETY: path and name end with a NUL, and the kernel writes at most as many bytes as the buffer has.
        let read =
            filled(&|to| unsafe { libc::getxattr(path.as_ptr(), written.as_ptr(), to.as_mut_ptr().cast(), to.len()) });
        let value = read?;
        size += value.len();
        if size > limits::ATTRIBUTES_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        found.push((name.to_vec(), value));
    }
    Ok(found)
}

fn set_attribute(file: &impl AsRawFd, attribute: &[u8], value: &[u8]) -> io::Result<()> {
    let attribute = CString::new(attribute)?;
    // SAFETY: the name ends with a NUL, and the kernel reads as many bytes as the value has.
    let set = unsafe { libc::fsetxattr(file.as_raw_fd(), attribute.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    super::check(set).map(drop)
}

/// Copies a regular file's bytes, extended attributes where the other file system has them, mode, owner where that is allowed, and times, into a file that is new: its blocks are
/// shared where the file system can do that, else at most `most` bytes are copied. Returns true if they are shared.
///
/// # Errors
/// `FileTooLarge` beyond `most`; `Interrupted` if the file has changed meanwhile; as open(2), read(2) and write(2).
pub fn copy(from: &Folder, name: &[u8], to: &Folder, as_name: &[u8], most: u64) -> io::Result<(Facts, bool)> {
    let (source, before) = from.read(name)?;
    let target = to.create(as_name)?;
    let copied = copy_into(source, before, target, most);
    if copied.is_err() {
        let _ = to.remove(as_name);
    }
    copied
}

fn copy_into(mut source: File, before: Facts, mut target: File, most: u64) -> io::Result<(Facts, bool)> {
    // SAFETY: the ioctl takes two numbers.
    let is_shared = unsafe { libc::ioctl(target.as_raw_fd(), libc::FICLONE, source.as_raw_fd()) } == 0;
    if !is_shared {
        if before.size > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        io::copy(&mut io::Read::take(&mut source, most.saturating_add(1)), &mut target)?;
    }
    let after = fstat(source.as_fd()).map(|stat| Facts::of(&stat)).map_err(io)?;
    if (after.size, after.mtime) != (before.size, before.mtime) || target.metadata()?.len() != before.size {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let _ = nix::unistd::fchown(&target, Some(before.uid.into()), Some(before.gid.into()));
    for (attribute, value) in attributes(&source).unwrap_or_default() {
        let _ = set_attribute(&target, &attribute, &value);
    }
    let _ = fchmod(&target, Mode::from_bits_truncate(before.mode));
    let time = TimeSpec::new(before.mtime.0, before.mtime.1.into());
    nix::sys::stat::futimens(&target, &time, &time).map_err(io)?;
    Ok((before, is_shared))
}

/// Gives a regular file, which is these facts' one, the bytes, the mode and the time of another one, in place.
///
/// # Errors
/// `Interrupted` if another file has the name by now; as open(2), read(2) and write(2).
pub fn overwrite(from: &Folder, name: &[u8], to: &Folder, as_name: &[u8], facts: &Facts) -> io::Result<()> {
    let (mut source, then) = from.read(name)?;
    let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    if facts.sort != Sort::File {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut target: File = openat(&to.0, as_name, flags, Mode::empty()).map_err(io)?.into();
    let opened = fstat(&target).map(|stat| Facts::of(&stat)).map_err(io)?;
    if opened.identity() != facts.identity() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let length = io::copy(&mut source, &mut target)?;
    target.set_len(length)?;
    fchmod(&target, Mode::from_bits_truncate(then.mode)).map_err(io)?;
    let time = TimeSpec::new(then.mtime.0, then.mtime.1.into());
    nix::sys::stat::futimens(&target, &TimeSpec::UTIME_OMIT, &time).map_err(io)
}

/// True if a call failed because a symbolic link was on the way.
#[must_use]
pub fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// The user as whom this process makes files.
#[must_use]
pub fn own_user() -> u32 {
    nix::unistd::geteuid().as_raw()
}
