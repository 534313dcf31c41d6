//! zram devices and zswap, as /sys shows them.
//!
//! Linux 6.1: drivers/block/zram (`comp_algorithm` has the chosen algorithm in brackets; `mem_limit`
//! can only be written, so the limit is the fourth number of `mm_stat`), and the parameters of module
//! zswap. Invariant: an algorithm that scenarios do not know keeps its name, for a note.

use super::files::HostFiles;
use super::note::{shown, ImportNote};
use super::number::count;

/// The parameters of module zswap.
const ZSWAP: &str = "/sys/module/zswap/parameters";

/// A zram device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostZram {
    /// `zram0`
    pub name: String,
    /// The chosen algorithm.
    pub algorithm: Option<String>,
    /// Size before compression, in bytes.
    pub disksize: Option<u64>,
    /// Most memory that it takes, in bytes.
    pub mem_limit: Option<u64>,
    /// The disk behind it.
    pub backing: Option<String>,
}

/// zswap, which is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostZswap {
    pub max_pool_percent: Option<u64>,
    pub accept_threshold_percent: Option<u64>,
    pub compressor: Option<String>,
    pub is_shrinker_on: Option<bool>,
}

/// The zram devices among the names of /sys/block that have a size.
pub(super) fn zrams(files: &HostFiles, notes: &mut Vec<ImportNote>) -> Vec<HostZram> {
    let names = files.list("/sys/block", false, &mut Vec::new());
    let names = names.iter().filter_map(|name| name.to_str());
    let mut devices = Vec::new();
    for name in names.filter(|name| name.starts_with("zram")) {
        let mut read = |file: &str| files.read(format!("/sys/block/{name}/{file}"), notes);
        let size = read("disksize").and_then(|text| count(text.trim()));
        if size == Some(0) {
            continue;
        }
        let backing = read("backing_dev").map(|text| text.trim().to_owned());
        devices.push(HostZram {
            name: name.to_owned(),
            algorithm: read("comp_algorithm").and_then(|text| chosen(&text)),
            disksize: size,
            mem_limit: read("mm_stat")
                .and_then(|text| count(text.split_whitespace().nth(3)?))
                .filter(|limit| *limit > 0),
            backing: backing.filter(|name| !name.is_empty() && name != "none"),
        });
    }
    devices
}

/// zswap, if it is on.
pub(super) fn zswap(files: &HostFiles, notes: &mut Vec<ImportNote>) -> Option<HostZswap> {
    let mut read = |file: &str| {
        files.read(format!("{ZSWAP}/{file}"), notes).map(|text| text.trim().to_owned())
    };
    if read("enabled").as_deref() != Some("Y") {
        return None;
    }
    let max = read("max_pool_percent");
    let accept = read("accept_threshold_percent");
    let compressor = read("compressor");
    let shrinker = read("shrinker_enabled");
    let mut percent = |file: &str, text: Option<String>| {
        let text = text?;
        let value = count(&text).filter(|percent| *percent <= 100);
        if value.is_none() {
            let place = format!("{ZSWAP}/{file}");
            notes.push(ImportNote {
                text: shown(&text),
                ..ImportNote::new(place, "not a percentage")
            });
        }
        value
    };
    Some(HostZswap {
        max_pool_percent: percent("max_pool_percent", max),
        accept_threshold_percent: percent("accept_threshold_percent", accept),
        compressor: compressor.filter(|name| !name.is_empty()),
        is_shrinker_on: shrinker.map(|text| text == "Y"),
    })
}

/// The word in brackets; the only word if there is one.
fn chosen(text: &str) -> Option<String> {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let mut words = text.split_whitespace();
    match (bracketed, words.next(), words.next()) {
        (Some((name, _)), ..) => Some(name.to_owned()),
        (None, Some(only), None) => Some(only.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_algorithm_is_the_word_in_brackets() {
        assert_eq!(chosen("lzo lzo-rle lz4 [zstd]\n").as_deref(), Some("zstd"));
        assert_eq!(chosen("[lzo-rle] lz4").as_deref(), Some("lzo-rle"));
        assert_eq!(chosen("lz4\n").as_deref(), Some("lz4"));
        assert_eq!((chosen("lzo lz4"), chosen("")), (None, None));
    }
}
