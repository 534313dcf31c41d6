//! /proc/vmstat and similar files: lines with a name and a count.
//!
//! Linux: `vmstat_show` (mm/vmstat.c). A group's `memory.stat` has the same form
//! (`memory_stat_format`, mm/memcontrol.c). Invariant: the order is that of the text.

use super::note::{FileNotes, ImportNote};
use super::number::count;

/// Names with their counts, in the order of the text.
pub type NamedCounts = Vec<(String, u64)>;

pub fn parse(text: &str) -> (NamedCounts, Vec<ImportNote>) {
    parse_of("/proc/vmstat", text)
}

/// Parses a text of this form; notes refer to `place`.
pub(crate) fn parse_of(place: &'static str, text: &str) -> (NamedCounts, Vec<ImportNote>) {
    let mut notes = FileNotes::new(place);
    let mut entries = NamedCounts::new();
    let text = notes.without_cut(text, |_| false);
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().take(3).collect();
        match words.as_slice() {
            [] => {}
            [name, value] => match count(value) {
                Some(value) => entries.push(((*name).to_owned(), value)),
                None => notes.line(index, "not a count", line),
            },
            _ => notes.line(index, "not a name with a count", line),
        }
    }
    if entries.is_empty() {
        notes.file("the file has no counters");
    }
    (entries, notes.finish())
}

pub fn get(entries: &[(String, u64)], name: &str) -> Option<u64> {
    entries.iter().find(|(entry, _)| entry == name).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_keep_their_order() {
        let (entries, notes) =
            parse("nr_free_pages 7\r\npgfault 0\nallocstall 18446744073709551615\n");
        assert_eq!(notes, []);
        let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["nr_free_pages", "pgfault", "allocstall"]);
        assert_eq!(get(&entries, "allocstall"), Some(u64::MAX));
        assert_eq!(get(&entries, "pgscan"), None);
    }

    #[test]
    fn a_number_that_is_cut_is_left_out() {
        let (entries, notes) = parse("pgfault 7\npgmajfault 1");
        assert_eq!(
            (entries.len(), notes[0].message.as_str()),
            (1, "left out: the file is truncated")
        );
    }

    #[test]
    fn what_is_strange_is_noted() {
        let (entries, notes) = parse("a\nb c\nd 1 2\ne 18446744073709551616\nf -1\n");
        assert_eq!(entries, []);
        assert_eq!(notes.len(), 6);
        assert_eq!(notes[3].to_string(), "/proc/vmstat:4: not a count: `e 18446744073709551616`");
    }
}
