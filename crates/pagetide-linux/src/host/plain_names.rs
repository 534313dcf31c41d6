//! Converts paths of groups and disks to names that a scenario accepts.
//!
//! Names have letters, digits, `-` and `_`, at most 64, and a group and a task cannot have the same
//! name. Invariant: names are unique, and depend only on the paths and their order.

use std::collections::BTreeSet;

/// Maximum length, without the number that makes a name unique.
const NAME_MAX: usize = 56;

#[derive(Debug)]
pub(super) struct NameAllocator {
    taken: BTreeSet<String>,
}

impl NameAllocator {
    /// Creates names outside `reserved`.
    pub(super) fn new(reserved: &[&str]) -> NameAllocator {
        NameAllocator { taken: reserved.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// A name for the object at `path`, derived from its last component.
    pub(super) fn name(&mut self, path: &str) -> String {
        let last = path.rsplit('/').next().filter(|last| !last.is_empty());
        let plain = plain(last.unwrap_or("top"));
        let mut name = plain.clone();
        let mut number = 1u64;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{plain}-{number}");
        }
        name
    }
}

fn plain(part: &str) -> String {
    let mut out = String::new();
    let mut rest = part;
    while let Some(c) = rest.chars().next().filter(|_| out.len() < NAME_MAX) {
        // systemd escapes special characters as `\x2d`.
        let code = rest.strip_prefix("\\x").and_then(|code| code.get(..2));
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let (c, len) = match code {
            Some(byte) => (char::from(byte), 4),
            None => (c, c.len_utf8()),
        };
        out.push(if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
        rest = &rest[len..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_unique() {
        let mut names = NameAllocator::new(&["example"]);
        for (path, wanted) in [
            ("/system.slice", "system_slice"),
            ("/a/system.slice", "system_slice-2"),
            ("/b/system_slice", "system_slice-3"),
            ("/example", "example-2"),
            ("/", "top"),
            ("/dev-disk-by\\x2duuid.swap", "dev-disk-by-uuid_swap"),
            ("/\u{e9}\u{1b}[0m", "___0m"),
            ("/odd\\x\u{e9}\u{e9}", "odd_x__"),
        ] {
            assert_eq!(names.name(path), wanted, "{path}");
        }
        let long = "x".repeat(300);
        assert_eq!(names.name(&long).len(), NAME_MAX);
        assert_eq!(names.name(&long).len(), NAME_MAX + 2);
    }
}
