//! Error numbers of the kernel.
//!
//! Linux: `errno.h`. Only numbers that a control file or a call can return.

use core::fmt;

/// The kernel's error number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Errno {
    /// No such control file.
    Enoent,
    /// The file cannot be read, or cannot be written.
    Eacces,
    /// Not possible now: the requested state cannot be reached.
    Ebusy,
    /// The file does not accept this value.
    Einval,
    /// Too large for the type of the file.
    Erange,
    /// Less was done than requested; a retry may help.
    Eagain,
    /// The table for this kind of object is full.
    Enospc,
    /// The name already exists.
    Eexist,
    /// No such process.
    Esrch,
    /// The disk has failed, or nothing more may be written to it.
    Eio,
    /// The device is not there.
    Enodev,
    /// The file is too large.
    Efbig,
    /// No memory of the requested kind is free.
    Enomem,
    /// No page can be made present at an address.
    Efault,
}

impl Errno {
    /// Its number in Linux.
    pub const fn code(self) -> i32 {
        match self {
            Errno::Enoent => 2,
            Errno::Eacces => 13,
            Errno::Ebusy => 16,
            Errno::Einval => 22,
            Errno::Erange => 34,
            Errno::Eagain => 11,
            Errno::Enospc => 28,
            Errno::Eexist => 17,
            Errno::Esrch => 3,
            Errno::Eio => 5,
            Errno::Enodev => 19,
            Errno::Efbig => 27,
            Errno::Enomem => 12,
            Errno::Efault => 14,
        }
    }

    /// Its symbol in errno.h.
    pub const fn name(self) -> &'static str {
        match self {
            Errno::Enoent => "ENOENT",
            Errno::Eacces => "EACCES",
            Errno::Ebusy => "EBUSY",
            Errno::Einval => "EINVAL",
            Errno::Erange => "ERANGE",
            Errno::Eagain => "EAGAIN",
            Errno::Enospc => "ENOSPC",
            Errno::Eexist => "EEXIST",
            Errno::Esrch => "ESRCH",
            Errno::Eio => "EIO",
            Errno::Enodev => "ENODEV",
            Errno::Efbig => "EFBIG",
            Errno::Enomem => "ENOMEM",
            Errno::Efault => "EFAULT",
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
