//! The catalogue of metrics as text, JSON and CSV, for `pagetide metrics`.

use crate::csv::{quoted, unit_name};
use crate::heading::wrap;
use crate::pattern::{ends_with_name, matching};
use pagetide_scenario::metric::catalogue::MetricEntry;
use pagetide_scenario::metric::declared::file_prefix;
use pagetide_scenario::metric::ScopeKind;
use std::fmt::Write;

/// The metrics that match a pattern: a name, a key that ends in one, a part of names, or `*`.
pub fn find<'a>(all: &'a [MetricEntry], pattern: Option<&str>) -> Vec<&'a MetricEntry> {
    let Some(pattern) = pattern else { return all.iter().collect() };
    if let Some((kind, of_it)) = of_moment(pattern) {
        let found = matching(all, |entry| &entry.name, of_it, &[&|name: &str| is_end(of_it, name)]);
        return found.into_iter().filter(|entry| entry.of.contains(&kind)).collect();
    }
    matching(all, |entry| &entry.name, pattern, &[&|name: &str| is_end(pattern, name)])
}

/// Whether a key of a table ends in a name: `stream.walltime`, `group:web:memory.current`,
/// `slabinfo.dentry.num_objs`.
pub fn is_end(key: &str, name: &str) -> bool {
    match file_prefix(key) {
        Some(file) => {
            let end = name.rsplit_once('.').map_or(name, |(_, end)| end);
            name.starts_with(file) && key.ends_with(&format!(".{end}"))
        }
        None => ends_with_name(key, name),
    }
}

/// The moment of a pattern (`done.pgfree`, `done.*`, `done`), and the rest of the pattern.
pub fn of_moment(pattern: &str) -> Option<(ScopeKind, &str)> {
    let (word, rest) = pattern.split_once(['.', ':']).unwrap_or((pattern, "*"));
    let moments = [ScopeKind::Idle, ScopeKind::Done, ScopeKind::Shrunk];
    let kind = moments.into_iter().find(|kind| kind.word() == word)?;
    Some((kind, if rest.is_empty() { "*" } else { rest }))
}

fn kinds(entry: &MetricEntry) -> String {
    let kinds: Vec<&str> = entry.of.iter().map(|kind| kind.word()).collect();
    kinds.join(", ")
}

/// One paragraph per metric: name, unit, owners and description, in lines of at most `width`
/// characters.
pub fn text(entries: &[&MetricEntry], width: usize) -> String {
    let mut out = String::new();
    for entry in entries {
        let head = format!("{} ({}; of {})", entry.name, unit_name(entry.unit), kinds(entry));
        wrap(&head, width.max(20)).iter().for_each(|line| put(&mut out, line));
        let about = format!("{}. Linux: {}", entry.about.trim_end_matches('.'), entry.source);
        let lines = wrap(&about, width.max(24) - 4);
        lines.iter().for_each(|line| put(&mut out, &format!("    {line}")));
    }
    out
}

fn put(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// One line per metric.
pub fn csv(entries: &[&MetricEntry]) -> String {
    let mut out = "name,unit,of,source,about\n".to_owned();
    for entry in entries {
        let (name, unit) = (quoted(&entry.name), unit_name(entry.unit));
        let (of, about) = (kinds(entry), quoted(&entry.about));
        writeln!(out, "{name},{unit},{},{},{about}", quoted(&of), quoted(entry.source))
            .expect("writing to a string");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_scenario::metric::catalogue;

    #[test]
    fn metrics_are_found_by_name_key_part_and_pattern() {
        let all = catalogue::all();
        let names = |pattern: &str| -> Vec<String> {
            find(&all, Some(pattern)).iter().map(|entry| entry.name.to_string()).collect()
        };
        assert_eq!(names("walltime"), ["walltime"]);
        assert_eq!(names("stream.alloc_latency_p99"), ["alloc_latency_p99"]);
        assert_eq!(names("group:web:memory.current"), ["memory.current"]);
        assert_eq!(names("slabinfo.dentry.num_objs"), ["slabinfo.CACHE.num_objs"]);
        let of_zone = "t.p.buddyinfo.node1.DMA32.nr_free_blocks_1";
        assert_eq!(names(of_zone), ["buddyinfo.nodeN.ZONE.nr_free_blocks_1"]);
        assert_eq!(names("psi.*"), ["psi.memory.some", "psi.memory.full"]);
        assert!(names("refault").contains(&"workingset_refault_anon".to_owned()));
        assert!(names("pgscam").is_empty());
        assert_eq!(names("done.pgfree"), ["pgfree"]);
        for all in ["done", "done.", "done.*"] {
            assert!(names(all).contains(&"nr_free_pages".to_owned()), "{all}");
            assert!(!names(all).contains(&"walltime".to_owned()), "{all}");
        }
        assert!(names("idle.walltime").is_empty());
        assert_eq!(find(&all, None).len(), all.len());
        let text = text(&find(&all, Some("psi.memory.some")), 60);
        assert!(
            text.starts_with(
                "psi.memory.some (seconds; of machine, done, phase)\n    time in which"
            ),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 60));
    }
}
