//! /proc/swaps: the swap areas.
//!
//! Linux: `swap_show` (mm/swapfile.c). Blanks and backslashes in a name are octal escapes.
//! Invariant: areas are in the order of the text, which is that of their numbers.

use super::note::{FileNotes, ImportNote};
use super::number::count;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSwap {
    /// Its file or device, unescaped.
    pub name: String,
    /// `partition` or `file`.
    pub kind: String,
    /// Size in kB, without the header page.
    pub size_kb: u64,
    pub used_kb: u64,
    /// Areas of higher priority are filled first.
    pub priority: i32,
}

impl HostSwap {
    /// The name of the device without its directory; `None` for a file.
    pub fn device(&self) -> Option<&str> {
        self.name.strip_prefix("/dev/").filter(|_| self.kind == "partition")
    }

    /// Whether this is a compressed RAM disk (zram).
    pub fn is_zram(&self) -> bool {
        self.device().is_some_and(|device| device.starts_with("zram"))
    }
}

pub fn parse(text: &str) -> (Vec<HostSwap>, Vec<ImportNote>) {
    let mut notes = FileNotes::new("/proc/swaps");
    let mut areas = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || (index == 0 && line.starts_with("Filename")) {
            continue;
        }
        match parse_line(line) {
            Some(area) => areas.push(area),
            None => notes.line(index, "not a swap area", line),
        }
    }
    (areas, notes.finish())
}

fn parse_line(line: &str) -> Option<HostSwap> {
    let words: Vec<&str> = line.split_whitespace().take(6).collect();
    let [name, kind, size, used, priority] = words[..] else { return None };
    Some(HostSwap {
        name: unescape(name),
        kind: kind.to_owned(),
        size_kb: count(size)?,
        used_kb: count(used)?,
        priority: priority.parse().ok()?,
    })
}

/// Resolves escapes such as `\040`.
fn unescape(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('\\') {
        out += before;
        let code = after.get(..3).filter(|code| code.bytes().all(|b| (b'0'..b'8').contains(&b)));
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()).filter(u8::is_ascii) {
            Some(byte) => {
                out.push(byte.into());
                rest = &after[3..];
            }
            None => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_read() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/nvme0n1p3                          partition\t8388604\t\t1024\t\t-2\r\n\
            /my\\040swap\\134 file 4 0 5\n/dev/zram0 partition 100 0 100\n";
        let (areas, notes) = parse(text);
        assert_eq!(notes, []);
        assert_eq!((areas[0].device(), areas[0].size_kb), (Some("nvme0n1p3"), 8_388_604));
        assert_eq!((areas[0].used_kb, areas[0].priority), (1024, -2));
        assert_eq!((areas[1].name.as_str(), areas[1].device()), ("/my swap\\", None));
        assert!(areas[2].is_zram() && !areas[0].is_zram());
    }

    #[test]
    fn what_is_strange_is_noted() {
        let text = "/dev/sda partition 1 2\n/dev/sda partition x 2 3\na b 1 2 3 4\n\
                    Filename\na b 1 2 9999999999\n";
        let (areas, notes) = parse(text);
        assert_eq!((areas.len(), notes.len()), (0, 5));
        for (name, plain) in
            [("\\", "\\"), ("\\04", "\\04"), ("\\777x", "\\777x"), ("\\\u{e9}", "\\\u{e9}")]
        {
            assert_eq!(unescape(name), plain);
        }
    }
}
