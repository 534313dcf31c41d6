//! /proc/meminfo: the machine's memory in kB.
//!
//! Linux: `meminfo_proc_show` (fs/proc/meminfo.c). Lines are `Name: value kB`; the counts of huge
//! pages have no unit. Invariant: entries stand in the order of the text.

use super::note::{FileNotes, ImportNote};
use super::number::count;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// Names without the colon; values in kB, or plain for counts (`HugePages_Total`).
    pub entries: Vec<(String, u64)>,
}

impl MemInfo {
    /// The value of `name`, in kB unless it is a count.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.entries.iter().find(|(entry, _)| entry == name).map(|(_, value)| *value)
    }
}

pub fn parse(text: &str) -> (MemInfo, Vec<ImportNote>) {
    let mut notes = FileNotes::new("/proc/meminfo");
    let mut info = MemInfo::default();
    let text = notes.without_cut(text, |line| line.ends_with(" kB"));
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Some((name, value)) = line.split_once(':') else {
            // 2.4 began with a table in bytes; the lines below repeat its values.
            notes.line(index, "not a name with a value", line);
            continue;
        };
        let words: Vec<&str> = value.split_whitespace().take(3).collect();
        let value = match words.as_slice() {
            [value] | [value, "kB"] => count(value),
            _ => None,
        };
        match value {
            Some(value) => info.entries.push((name.trim().to_owned(), value)),
            None => notes.line(index, "not a value in kB", line),
        }
    }
    if info.get("MemTotal").is_none() {
        notes.file("`MemTotal` is missing");
    }
    (info, notes.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let text =
            "MemTotal:       24684096 kB\r\nActive(anon):  1532 kB\nHugePages_Total:       3\n";
        let (info, notes) = parse(text);
        assert_eq!(notes, []);
        assert_eq!(info.get("MemTotal"), Some(24_684_096));
        assert_eq!(info.get("Active(anon)"), Some(1532));
        assert_eq!(info.get("HugePages_Total"), Some(3));
        assert_eq!(info.get("Active"), None);
    }

    #[test]
    fn a_number_that_is_cut_is_left_out() {
        let text = "MemTotal: 24684096 kB\nMemFree: 1532 kB";
        for (end, free) in [(text.len(), Some(1532)), (text.len() - 4, None)] {
            let (info, notes) = parse(&text[..end]);
            assert_eq!((info.get("MemFree"), notes.len(), notes[0].line), (free, 1, Some(2)));
        }
    }

    #[test]
    fn what_is_strange_is_noted() {
        let (info, notes) = parse("MemTotal: 1 MB\nMemFree 3 kB\nCached: -3 kB\nSlab: 7 kB x\n\n");
        assert_eq!(info.entries, []);
        let lines: Vec<_> = notes.iter().map(|note| note.line).collect();
        assert_eq!(lines, [Some(1), Some(2), Some(3), Some(4), None]);
    }
}
