//! /sys/block: the disks, and their models in a scenario.
//!
//! Linux: block/genhd.c and block/blk-sysfs.c. Devices on top of other disks (device mapper, RAID,
//! loops), devices that are not disks (RAM disks, zram), and drives without a
//! medium or connection are left out: I/O to the former reaches
//! one of the disks. Invariant: a device with [`BlockDevice::is_real`] has a model.

use super::note::{shown, ImportNote};
use super::number::count;
use pagetide_scenario::names::DiskModel;

/// Prefixes of devices that are stacked on others or are not disks; a number follows.
const NOT_REAL: [&str; 11] =
    ["loop", "ram", "zram", "dm-", "md", "sr", "fd", "nullb", "mtdblock", "bcache", "zd"];
/// The sectors of a network block device that was never connected, before 4.10.
const NBD_UNUSED: u64 = 0xffff_f800;

/// A device of /sys/block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockDevice {
    pub name: String,
    /// The value of `queue/rotational`.
    pub is_rotational: Option<bool>,
    /// The value of `queue/read_ahead_kb`, in kB.
    pub read_ahead_kb: Option<u64>,
    /// Its size in sectors of 512 bytes.
    pub sectors: Option<u64>,
    /// Whether this is one of several paths to the same disk.
    pub is_hidden: bool,
}

/// The files to read below /sys/block/NAME.
pub const FILES: [&str; 4] = ["queue/rotational", "queue/read_ahead_kb", "size", "hidden"];

impl BlockDevice {
    /// Parses a device from the texts of [`FILES`].
    pub fn parse(name: &str, texts: [Option<&str>; 4]) -> (BlockDevice, Vec<ImportNote>) {
        let mut notes = Vec::new();
        let mut read = |file: usize| {
            let text = texts[file]?;
            let value = count(text.trim());
            if value.is_none() {
                let place = format!("/sys/block/{}/{}", shown(name), FILES[file]);
                notes.push(ImportNote {
                    text: shown(text),
                    ..ImportNote::new(place, "not a count")
                });
            }
            value
        };
        let device = BlockDevice {
            name: name.to_owned(),
            is_rotational: read(0).map(|value| value != 0),
            read_ahead_kb: read(1),
            sectors: read(2),
            is_hidden: read(3).is_some_and(|value| value != 0),
        };
        (device, notes)
    }

    /// Whether this is a disk itself, as far as the system shows.
    pub fn is_real(&self) -> bool {
        let is_other = NOT_REAL.iter().any(|prefix| {
            let rest = self.name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        let is_connected = match self.sectors {
            Some(0) => false,
            Some(NBD_UNUSED) | None => !self.name.starts_with("nbd"),
            Some(_) => true,
        };
        !is_other && !self.is_hidden && is_connected
    }

    /// The nearest preset.
    pub fn model(&self) -> DiskModel {
        match self.is_rotational {
            _ if self.name.starts_with("nvme") => DiskModel::Nvme,
            Some(true) => DiskModel::Rotating,
            Some(false) | None => DiskModel::Ssd,
        }
    }

    /// Whether this is a virtual disk: its `rotational` does not describe the physical disk.
    pub fn is_virtual(&self) -> bool {
        ["vd", "xvd"].iter().any(|prefix| self.name.starts_with(prefix))
    }

    /// Whether `device`, such as `sda2` or `nvme0n1p3`, is this disk or a partition of it.
    pub fn contains_device(&self, device: &str) -> bool {
        let Some(rest) = device.strip_prefix(self.name.as_str()) else { return false };
        let rest = match self.name.ends_with(|c: char| c.is_ascii_digit()) {
            true if !rest.is_empty() => match rest.strip_prefix('p') {
                Some(number) if !number.is_empty() => number,
                _ => return false,
            },
            _ => rest,
        };
        rest.bytes().all(|byte| byte.is_ascii_digit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> BlockDevice {
        BlockDevice { name: name.to_owned(), ..BlockDevice::default() }
    }

    #[test]
    fn files_are_read() {
        let texts = [Some("1\n"), Some("128\r\n"), Some("2097152"), None];
        let (disk, notes) = BlockDevice::parse("sda", texts);
        assert_eq!((notes.len(), disk.model()), (0, DiskModel::Rotating));
        assert_eq!((disk.read_ahead_kb, disk.sectors), (Some(128), Some(2_097_152)));
        let (disk, notes) =
            BlockDevice::parse("sd\n", [Some("x"), Some("-1"), Some(""), Some("1")]);
        assert_eq!((notes.len(), disk.model(), disk.is_real()), (3, DiskModel::Ssd, false));
        assert!(notes[0].to_string().starts_with("/sys/block/sd/queue/rotational: not a count"));
        let (disk, _) = BlockDevice::parse("nvme0n1", [Some("0"), None, None, None]);
        assert_eq!(disk.model(), DiskModel::Nvme);
    }

    #[test]
    fn real_disks_are_distinguished_from_virtual_ones() {
        for name in ["sda", "vda", "nvme0n1", "mmcblk0", "xvda", "pmem0", "mdx", "sraa"] {
            assert!(named(name).is_real(), "{name}");
        }
        for name in ["loop0", "ram15", "zram0", "dm-0", "md127", "sr0", "fd0"] {
            assert!(!named(name).is_real(), "{name}");
        }
        let of_size = |name: &str, sectors| BlockDevice { sectors, ..named(name) }.is_real();
        assert!(of_size("nbd0", Some(8)) && !of_size("nbd0", None) && !of_size("sdb", Some(0)));
        assert!(!of_size("nbd0", Some(NBD_UNUSED)) && of_size("sdb", Some(NBD_UNUSED)));
    }

    #[test]
    fn parts_belong_to_their_disk() {
        assert!(named("sda").contains_device("sda") && named("sda").contains_device("sda12"));
        assert!(
            named("nvme0n1").contains_device("nvme0n1p3")
                && named("nvme0n1").contains_device("nvme0n1")
        );
        assert!(!named("sda").contains_device("sdaa1") && !named("sda").contains_device("sdb"));
        assert!(
            !named("nvme0n1").contains_device("nvme0n12")
                && !named("nvme0n1").contains_device("nvme0n1p")
        );
    }
}
