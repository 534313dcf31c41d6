//! A write to a control file of the machine, read and checked.
//!
//! Linux: the parsing and the checks of `proc_dointvec_minmax` and its like, before a handler gets
//! the value.
//!
//! Invariant: the text of a write ([`ControlWrite`]'s `Display`) reads as the same write again.

use super::cache::{is_of_cache, CacheControl};
use super::error::{quoted, ControlError, Errno};
use super::parse::Refusal;
use crate::config::{ControlFile, Form, Sysctl, Value};
use crate::page_size::PageSize;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// What is to be written where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlWrite {
    /// To a control file with a name of its own.
    Sysctl(Sysctl, Value),
    /// To a file of a cache.
    Cache {
        /// The cache.
        cache: String,
        /// The file.
        control: CacheControl,
        /// The number.
        value: u32,
    },
}

/// The text to write, as the kernel takes it.
impl fmt::Display for ControlWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlWrite::Sysctl(_, value) => value.fmt(f),
            ControlWrite::Cache { value, .. } => value.fmt(f),
        }
    }
}

impl ControlWrite {
    /// The kernel's name for the file, or `slab.CACHE.FILE`.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            ControlWrite::Sysctl(sysctl, _) => Cow::Borrowed(sysctl.name()),
            ControlWrite::Cache { cache, control, .. } => {
                Cow::Owned(format!("slab.{cache}.{}", control.file().name))
            }
        }
    }

    /// Reads a text as the kernel would, on a machine with pages of this size. Whether a cache is there is
    /// the machine's to know.
    ///
    /// # Errors
    /// The kernel's errno and a sentence.
    pub fn read(name: &str, text: &str, page_size: PageSize) -> Result<ControlWrite, ControlError> {
        if is_of_cache(name) {
            let (cache, control) = CacheControl::of_name(name)?;
            let value = control.read(name, text)?;
            return Ok(ControlWrite::Cache { cache: cache.into(), control, value });
        }
        let sysctl = find_sysctl(name)?;
        match sysctl.file().form.read(text, page_size) {
            Ok(value) => Ok(ControlWrite::Sysctl(sysctl, value)),
            Err(refusal) => Err(refuse(sysctl.file(), refusal, text, page_size)),
        }
    }

    /// Whether the file takes the value on a machine with such pages: a value that was made by hand, or read
    /// for other pages, may be none of its own. Its text must read as itself.
    pub(super) fn check(&self, page_size: PageSize) -> Result<(), ControlError> {
        let (name, text) = (self.name(), self.to_string());
        if ControlWrite::read(&name, &text, page_size)? == *self {
            return Ok(());
        }
        Err(ControlError::not_of(&name, &text))
    }
}

/// The control file of this name.
pub(super) fn find_sysctl(name: &str) -> Result<Sysctl, ControlError> {
    if let Some(sysctl) = Sysctl::find(name) {
        return Ok(sysctl);
    }
    // Forgives the directory, and a dash for an underscore.
    let last =
        |name: &str| String::from(name.rsplit(['.', '/']).next().unwrap_or(name)).replace('_', "-");
    let close = Sysctl::ALL.iter().find(|sysctl| last(sysctl.name()) == last(name));
    let hint = match close {
        Some(sysctl) => format!("; did you mean {}?", sysctl.name()),
        None => String::new(),
    };
    let message = format!("there is no control file {}{hint}", quoted(name));
    Err(ControlError::new(Errno::Enoent, name, message))
}

fn refuse(file: &ControlFile, refusal: Refusal, text: &str, page_size: PageSize) -> ControlError {
    let errno = match (refusal, file.form) {
        (Refusal::TooLarge, Form::Debugfs) => Errno::Erange,
        _ => Errno::Einval,
    };
    let takes = file.form.accepts(page_size);
    let message =
        format!("{} {} for {}; it takes {takes}", quoted(text), refusal.what(), file.name);
    ControlError::new(errno, file.name, message)
}
