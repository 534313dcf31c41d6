//! A write to a control file of the machine, parsed and checked.
//!
//! Linux: the parsing and checks of `proc_dointvec_minmax` and the like, before the handler.
//!
//! Invariant: the text of a write ([`ControlWrite`]'s `Display`) parses to the same write.

use super::cache::{is_cache_control, CacheControl};
use super::error::{quoted, ControlError};
use super::parse::Refusal;
use crate::config::{ControlFile, ControlForm, ControlValue, Sysctl};
use crate::units::errno::Errno;
use crate::units::page_size::PageSize;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// A checked write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlWrite {
    /// To a control file of the machine.
    Sysctl(Sysctl, ControlValue),
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

/// Prints the text to write, as the kernel accepts it.
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

    /// Parses a text as the kernel does, for pages of this size. Does not check whether a cache
    /// exists.
    pub fn read(name: &str, text: &str, page_size: PageSize) -> Result<ControlWrite, ControlError> {
        if is_cache_control(name) {
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

    /// Checks the value for a machine with pages of this size. A value may be invalid if it was not
    /// parsed from a text, or was parsed for another page size. Its text must parse to the same
    /// value.
    pub(super) fn check(&self, page_size: PageSize) -> Result<(), ControlError> {
        let (name, text) = (self.name(), self.to_string());
        if ControlWrite::read(&name, &text, page_size)? == *self {
            return Ok(());
        }
        Err(ControlError::wrong_kind(&name, &text))
    }
}

pub(super) fn find_sysctl(name: &str) -> Result<Sysctl, ControlError> {
    if let Some(sysctl) = Sysctl::find(name) {
        return Ok(sysctl);
    }
    // Ignores the directory, and takes a dash and an underscore as equal.
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
        (Refusal::TooLarge, ControlForm::Debugfs) => Errno::Erange,
        _ => Errno::Einval,
    };
    let takes = file.form.expected_text(page_size);
    let message =
        format!("{} {} for {}; it takes {takes}", quoted(text), refusal.what(), file.name);
    ControlError::new(errno, file.name, message)
}
