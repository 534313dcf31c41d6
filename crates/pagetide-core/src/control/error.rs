//! The errors of refused reads and writes of control files.

use alloc::format;
use alloc::string::String;
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

/// A control file or a policy refused a text; nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlError {
    /// The error that write(2) or read(2) returns in Linux.
    pub errno: Errno,
    /// The control file or policy, as the caller named it.
    pub name: String,
    /// A message with the name, the offending text and the accepted values.
    pub message: String,
}

impl ControlError {
    pub(super) fn new(errno: Errno, name: &str, message: String) -> ControlError {
        ControlError { errno, name: name.into(), message }
    }

    /// The error for a value of the wrong type.
    pub(super) fn wrong_kind(name: &str, text: &str) -> ControlError {
        let message = format!("{} is not a value for {name}", quoted(text));
        ControlError::new(Errno::Einval, name, message)
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.errno, self.message)
    }
}

impl core::error::Error for ControlError {}

/// Quotes the user's text for a message: one line, in backquotes, cut after 40 characters.
pub(super) fn quoted(text: &str) -> String {
    const MAX: usize = 40;
    let shown: String = text.trim().chars().take(MAX).flat_map(char::escape_debug).collect();
    let dots = if text.trim().chars().nth(MAX).is_some() { "..." } else { "" };
    format!("`{shown}{dots}`")
}
