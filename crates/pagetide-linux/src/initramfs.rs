//! The initramfs: the archive that the kernel unpacks into its first file system.
//!
//! Format: cpio "newc", uncompressed (Documentation/driver-api/early-userspace/buffer-format.rst).
//! Each entry is a header of hexadecimal numbers, a name and contents, both padded to four bytes.
//! Parents come before children.

use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

#[derive(Debug, Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Initramfs {
    /// Adds an executable file.
    pub fn program(&mut self, path: &Path, contents: &[u8]) {
        self.add(path, PROGRAM, contents);
    }

    pub fn file(&mut self, path: &Path, contents: &[u8]) {
        self.add(path, FILE, contents);
    }

    fn add(&mut self, path: &Path, mode: u32, contents: &[u8]) {
        let name = path.to_string_lossy();
        let name = name.trim_start_matches('/');
        for (at, _) in name.match_indices('/') {
            self.directory(&name[..at]);
        }
        self.entry(name, mode, contents);
    }

    /// Adds a directory, if it is missing.
    fn directory(&mut self, name: &str) {
        if self.directories.insert(name.to_owned()) {
            self.entry(name, DIRECTORY, &[]);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) {
        self.entries += 1;
        let links = if mode == DIRECTORY { 2 } else { 1 };
        // After the magic: inode, mode, uid, gid, links, mtime, size, device (2), special device
        // (2), length of the name including its NUL, checksum.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            links,
            0,
            contents.len() as u32,
            0,
            0,
            0,
            0,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }

    pub fn finish(mut self) -> Vec<u8> {
        for directory in ["dev", "proc", "sys", "disks"] {
            self.directory(directory);
        }
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses names, modes and contents by the format's description.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |index: usize| {
                let text = std::str::from_utf8(&bytes[6 + index * 8..14 + index * 8]).unwrap();
                u32::from_str_radix(text, 16).unwrap() as usize
            };
            let (mode, size, name_len) = (field(1), field(6), field(11));
            let name = std::str::from_utf8(&bytes[110..110 + name_len - 1]).unwrap();
            assert_eq!(bytes[110 + name_len - 1], 0);
            let begin = (110 + name_len).next_multiple_of(4);
            if name == "TRAILER!!!" {
                return entries;
            }
            entries.push((name.into(), mode as u32, bytes[begin..begin + size].to_vec()));
            bytes = &bytes[(begin + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn parents_stand_before_children_and_once() {
        let mut archive = Initramfs::default();
        archive.program(Path::new("/init"), b"\x7fELF");
        archive.file(Path::new("/a/b/c.toml"), b"x = 1\n");
        archive.file(Path::new("/a/b/d"), b"");
        let entries = read(&archive.finish());
        let names: Vec<&str> = entries.iter().map(|entry| entry.0.as_str()).collect();
        assert_eq!(
            names,
            ["init", "a", "a/b", "a/b/c.toml", "a/b/d", "dev", "proc", "sys", "disks"]
        );
        assert_eq!(entries[0].1, 0o100_755);
        assert_eq!(entries[3].2, b"x = 1\n");
    }
}
