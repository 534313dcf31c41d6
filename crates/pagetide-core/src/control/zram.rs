//! The files of zram devices that a task can write: idle marks, writeback, and its limit.
//!
//! Linux: `idle_store`, `writeback_store`, `writeback_limit_store`, `writeback_limit_enable_store`
//! (drivers/block/zram/zram_drv.c, 6.1), as /sys/block/zram*/NAME. Invariant: a [`ZramWrite`] is a
//! write that a device with a disk behind it accepts.

use super::error::{quoted, ControlError};
use super::parse::kstrtoull;
use crate::swap::zram::{ZramWrite, ZramWritebackMode};
use crate::units::errno::Errno;
use alloc::format;

impl ZramWrite {
    /// The names of the files, as scenarios write them.
    pub const NAMES: [&'static str; 4] =
        ["zram.idle", "zram.writeback", "zram.writeback_limit", "zram.writeback_limit_enable"];

    /// The file that is written.
    pub const fn name(self) -> &'static str {
        match self {
            ZramWrite::Idle => Self::NAMES[0],
            ZramWrite::Writeback(_) => Self::NAMES[1],
            ZramWrite::Limit(_) => Self::NAMES[2],
            ZramWrite::LimitEnable(_) => Self::NAMES[3],
        }
    }

    /// The write of a text to the file `name`; `None` if no zram device has such a file.
    ///
    /// # Errors
    /// The kernel refuses the text, or the write needs what is not modelled.
    pub fn read(name: &str, text: &str) -> Option<Result<ZramWrite, ControlError>> {
        let word = text.strip_suffix('\n').unwrap_or(text);
        let refuse = |accepted: &str| {
            let message = format!("{} is not valid for {name}: write {accepted}", quoted(text));
            Err(ControlError::new(Errno::Einval, name, message))
        };
        let number = kstrtoull(text, 10);
        Some(match (Self::NAMES.iter().position(|known| *known == name)?, word, number) {
            (0, "all", _) => Ok(ZramWrite::Idle),
            (0, _, Ok(_)) => refuse("`all`: ages of idle pages are not modelled"),
            (0, ..) => refuse("`all`"),
            (1, "idle", _) => Ok(ZramWrite::Writeback(ZramWritebackMode::Idle)),
            (1, "huge", _) => Ok(ZramWrite::Writeback(ZramWritebackMode::Huge)),
            (1, "huge_idle", _) => Ok(ZramWrite::Writeback(ZramWritebackMode::HugeIdle)),
            (1, "incompressible", _) => refuse(
                "`idle`, `huge` or `huge_idle`: a second algorithm, which this mode needs, is not \
                 modelled",
            ),
            (1, ..) => refuse("`idle`, `huge` or `huge_idle`"),
            (2, _, Ok(units)) => Ok(ZramWrite::Limit(units)),
            (2, ..) => refuse("a number of units of 4 KiB"),
            (_, _, Ok(value)) => Ok(ZramWrite::LimitEnable(value != 0)),
            (..) => refuse("0 or 1"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_kernel() {
        let read = |name: &str, text: &str| ZramWrite::read(name, text).unwrap();
        for (name, text, write) in [
            ("zram.idle", "all\n", ZramWrite::Idle),
            ("zram.writeback", "huge_idle", ZramWrite::Writeback(ZramWritebackMode::HugeIdle)),
            ("zram.writeback_limit", "0", ZramWrite::Limit(0)),
            ("zram.writeback_limit_enable", "1\n", ZramWrite::LimitEnable(true)),
        ] {
            assert_eq!(read(name, text), Ok(write));
            assert_eq!(write.name(), name);
        }
        for (name, text, part) in [
            ("zram.idle", "60", "ages"),
            ("zram.idle", "", "`all`"),
            ("zram.writeback", "incompressible", "second algorithm"),
            ("zram.writeback", "page_index=1", "`huge`"),
            ("zram.writeback_limit", "-1", "4 KiB"),
            ("zram.writeback_limit_enable", "on", "0 or 1"),
        ] {
            let error = read(name, text).unwrap_err();
            assert!(error.message.contains(part), "{}", error.message);
        }
        assert!(ZramWrite::read("zram.compact", "1").is_none());
    }
}
