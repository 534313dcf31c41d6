//! The errors of refused reads and writes of control files.

use crate::units::errno::Errno;
use alloc::format;
use alloc::string::String;
use core::fmt;

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
