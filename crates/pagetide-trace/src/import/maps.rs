//! Parser for /proc/PID/maps: the address ranges of a program, and the file that each range maps.

use crate::error::{quote, TraceError, TraceProblem};
use crate::format::{MAX_PAGES, MAX_TEXT, PAGE_SIZE};

/// Most lines of a maps file.
pub const MAX_MAPPINGS: usize = 1 << 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMapping {
    /// Virtual page number of the first page.
    pub start: u64,
    /// Virtual page number after the last page.
    pub end: u64,
    /// Offset in the file of the first page, in pages.
    pub file_page: u64,
    /// Mapped executable.
    pub executable: bool,
    /// MAP_SHARED: writes go to the file.
    pub shared: bool,
    pub path: String,
}

/// The file mappings of a program, in the order of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    mappings: Vec<FileMapping>,
}

impl Maps {
    /// Parses the text. Skips mappings without a file (no path, or one like `[heap]`).
    pub fn parse(text: &str) -> Result<Maps, TraceError> {
        let mut mappings = Vec::new();
        let mut byte = 0;
        for (index, line) in text.split('\n').enumerate() {
            let bad = || {
                let problem = TraceProblem::BadText {
                    what: "maps line",
                    text: quote(line.as_bytes()),
                    expected: "`START-END PERMS OFFSET DEV INODE PATH`, as in /proc/PID/maps",
                    hint: None,
                };
                TraceError::at_line(index as u64 + 1, byte, problem)
            };
            if !line.trim().is_empty() {
                if mappings.len() >= MAX_MAPPINGS {
                    let (value, limit) = (index as u64 + 1, MAX_MAPPINGS as u64);
                    let problem =
                        TraceProblem::TooLarge { what: "number of mappings", value, limit };
                    return Err(TraceError::at_line(index as u64 + 1, byte, problem));
                }
                if let Some(mapping) = parse_line(line).ok_or_else(bad)? {
                    mappings.push(mapping);
                }
            }
            byte += line.len() as u64 + 1;
        }
        mappings.sort_by_key(|mapping: &FileMapping| (mapping.start, mapping.end));
        let overlap = mappings.windows(2).find(|pair| pair[1].start < pair[0].end);
        if let Some(pair) = overlap {
            return Err(TraceError::whole(TraceProblem::BadText {
                what: "maps file: mapping",
                text: quote(pair[1].path.as_bytes()),
                expected: "after the end of the mapping before it",
                hint: None,
            }));
        }
        Ok(Maps { mappings })
    }

    pub fn mappings(&self) -> &[FileMapping] {
        &self.mappings
    }

    /// Index of the mapping that contains a page.
    pub(crate) fn find(&self, page: u64) -> Option<usize> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= page);
        let index = after.checked_sub(1)?;
        (page < self.mappings[index].end).then_some(index)
    }
}

/// `None`: not a line of a maps file; `Some(None)`: a mapping without a file.
fn parse_line(line: &str) -> Option<Option<FileMapping>> {
    let mut rest = line;
    let range = next_word(&mut rest)?;
    let perms = next_word(&mut rest)?.as_bytes();
    let offset = u64::from_str_radix(next_word(&mut rest)?, 16).ok()?;
    let _device = next_word(&mut rest)?;
    let _inode: u64 = next_word(&mut rest)?.parse().ok()?;
    let path = rest.trim();
    let (start, end) = range.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let page = u64::from(PAGE_SIZE);
    let is_aligned = start % page == 0 && end % page == 0 && offset % page == 0;
    if perms.len() != 4 || !is_aligned || start >= end || path.len() > MAX_TEXT {
        return None;
    }
    if !path.starts_with('/') || path.starts_with("/dev/zero") {
        return Some(None);
    }
    if (end - start) / page > MAX_PAGES / MAX_MAPPINGS as u64 {
        return None;
    }
    Some(Some(FileMapping {
        start: start / page,
        end: end / page,
        file_page: offset / page,
        executable: perms[2] == b'x',
        shared: perms[3] == b's',
        path: path.to_string(),
    }))
}

fn next_word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    *rest = after;
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
00400000-00631000 r--p 00000000 08:01 1234 /usr/bin/cc1
00631000-019f5000 r-xp 00231000 08:01 1234                /usr/bin/cc1
04c5d000-04c5f000 rw-p 00000000 00:00 0
1ffeffd000-1fff001000 rw-p 00000000 00:00 0                  [stack]
";

    #[test]
    fn keeps_files_only() {
        let maps = Maps::parse(TEXT).unwrap();
        assert_eq!(maps.mappings().len(), 2);
        let text = &maps.mappings()[1];
        assert_eq!((text.start, text.end, text.file_page), (0x631, 0x19f5, 0x231));
        assert!(text.executable && !text.shared);
        assert_eq!(maps.find(0x400), Some(0));
        assert_eq!(maps.find(0x630), Some(0));
        assert_eq!(maps.find(0x631), Some(1));
        assert_eq!(maps.find(0x19f5), None);
        assert_eq!(maps.find(0), None);
    }

    #[test]
    fn says_which_line_is_wrong() {
        let error =
            Maps::parse("00400000-00631000 r--p 00000000 08:01 1234 /a\nrubbish\n").unwrap_err();
        assert_eq!((error.line(), error.byte()), (Some(2), Some(46)));
        for bad in [
            "0-0 r--p 0 08:01 1 /a",
            "1000-2001 r--p 0 08:01 1 /a",
            "0-ffffffffffffe000 r--p 0 08:01 1 /a",
            "0-1000 r- 0 08:01 1 /a",
            "0-2000 r--p 0 08:01 1 /a\n1000-3000 r--p 0 08:01 1 /b",
        ] {
            assert!(Maps::parse(bad).is_err(), "{bad}");
        }
    }
}
