//! Coverage of all storms of a test run together. A storm that never reclaims, or has only failing
//! writes, passes every audit and tests nothing. So each kind of work must occur in a minimum share
//! of the storms, and some outcomes in at most a given share.
//!
//! The expected shares are those of 20 000 seeds from 100 000 on. The shares of other seeds may
//! differ by four standard deviations of the difference of two such shares. Fewer than 60 storms
//! are not judged.
//!
//! A single occurrence of these fails a storm directly: a rejected setup, and a write to an unknown
//! control file or of an always invalid value.

use pagetide_scenario::record::RunRecord;

/// Number of storms that the expected shares come from.
const REFERENCE: f64 = 20_000.0;

/// With fewer storms, shares are not judged.
const LEAST_JUDGED: u64 = 60;

/// Value of a metric; 0 if the record does not have it.
fn count(record: &RunRecord, name: &str) -> f64 {
    record.metrics.get(name).map_or(0.0, |metric| metric.value)
}

/// The sum of a counter over all groups.
fn in_groups(record: &RunRecord, name: &str) -> f64 {
    let of_groups = record.metrics.iter().filter(|(key, _)| {
        key.split_once('.').is_some_and(|(group, rest)| group.starts_with("group") && rest == name)
    });
    of_groups.map(|(_, metric)| metric.value).sum()
}

/// The sum of a metric over all tasks.
fn of_tasks(record: &RunRecord, name: &str) -> f64 {
    let of_tasks = record.metrics.iter().filter(|(key, _)| {
        key.split_once('.').is_some_and(|(task, rest)| task.starts_with("task") && rest == name)
    });
    of_tasks.map(|(_, metric)| metric.value).sum()
}

fn has_note(record: &RunRecord, text: &str) -> bool {
    record.notes.iter().any(|note| note.contains(text))
}

/// Direction in which a share must not deviate.
enum ShareBound {
    AtLeast,
    AtMost,
}
use ShareBound::{AtLeast, AtMost};

/// A kind of work or outcome that storms must cover.
struct CoverageItem {
    what: &'static str,
    wanted: ShareBound,
    /// Number of storms in 1000 with it.
    per_mille: u32,
    is_in: fn(&RunRecord) -> bool,
}

impl CoverageItem {
    /// True if the number of storms with it is within bounds; and the bound in percent.
    fn judge(&self, seen: u64, storms: u64, has_first: bool) -> (bool, f64) {
        let (share, storms) = (f64::from(self.per_mille) / 1000.0, storms as f64);
        let room = 4.0 * (share * (1.0 - share) * (1.0 / storms + 1.0 / REFERENCE)).sqrt();
        let seen = seen as f64 / storms;
        let (is_in, bound) = match self.wanted {
            AtLeast => (seen >= share - room, (share - room).max(0.0)),
            AtMost => (seen <= share + room, share + room),
        };
        // The first sixty seeds cover everything. For others, accept 0 if its probability is above
        // one in a thousand.
        let must_be_seen = matches!(self.wanted, AtLeast) && (has_first || share * storms >= 7.0);
        (is_in && !(must_be_seen && seen == 0.0), bound * 100.0)
    }
}

const fn sight(
    what: &'static str,
    wanted: ShareBound,
    per_mille: u32,
    is_in: fn(&RunRecord) -> bool,
) -> CoverageItem {
    CoverageItem { what, wanted, per_mille, is_in }
}

const SIGHTS: [CoverageItem; 20] = [
    sight("kswapd scanned", AtLeast, 349, |it| count(it, "pgscan_kswapd") > 0.0),
    sight("tasks reclaimed for themselves", AtLeast, 341, |it| count(it, "pgscan_direct") > 0.0),
    sight("anonymous pages were stolen", AtLeast, 162, |it| count(it, "pgsteal_anon") > 0.0),
    sight("file pages were stolen", AtLeast, 436, |it| count(it, "pgsteal_file") > 0.0),
    sight("pages came back from swap", AtLeast, 66, |it| count(it, "pswpin") > 0.0),
    sight("pages refaulted", AtLeast, 234, |it| {
        count(it, "workingset_refault_anon") + count(it, "workingset_refault_file") > 0.0
    }),
    sight("dirty pages were written", AtLeast, 407, |it| count(it, "nr_written") > 0.0),
    sight("a task was throttled", AtLeast, 248, |it| count(it, "mm_vmscan_throttled") > 0.0),
    sight("a group met its limit", AtLeast, 111, |it| in_groups(it, "memory.events.max") > 0.0),
    sight("a group used up its CPU time", AtLeast, 70, |it| {
        in_groups(it, "cpu.stat.nr_throttled") > 0.0
    }),
    sight("pages were compacted", AtLeast, 374, |it| count(it, "compact_migrate_scanned") > 0.0),
    sight("faults got huge pages", AtLeast, 119, |it| count(it, "thp_fault_alloc") > 0.0),
    sight("a huge page was split", AtLeast, 44, |it| count(it, "thp_split_page") > 0.0),
    sight("slabs were shrunk", AtLeast, 377, |it| count(it, "slabs_scanned") > 0.0),
    sight("a task was killed for memory", AtLeast, 285, |it| count(it, "oom_kill") > 0.0),
    sight("I/O failed", AtLeast, 85, |it| has_note(it, "calls failed with EIO")),
    sight("requests were served", AtLeast, 180, |it| of_tasks(it, "requests") > 0.0),
    sight("a request was dropped", AtLeast, 84, |it| of_tasks(it, "dropped") > 0.0),
    sight("the time limit cut the run", AtMost, 300, |it| has_note(it, "cut by the time limit")),
    sight("something was refused", AtMost, 389, |it| {
        has_note(it, " was refused with ") || has_note(it, "making group")
    }),
];

/// Counts over the storms so far.
#[derive(Default)]
pub struct Tally {
    storms: u64,
    seen: [u64; SIGHTS.len()],
}

impl Tally {
    /// Adds a storm that passed.
    pub fn add(&mut self, record: &RunRecord) {
        self.storms += 1;
        for (seen, sight) in self.seen.iter_mut().zip(&SIGHTS) {
            *seen += u64::from((sight.is_in)(record));
        }
    }

    /// A line for each share, and the lines of those out of bounds. `has_first`: the seeds start
    /// with the first.
    pub fn judge(&self, has_first: bool) -> (String, Vec<String>) {
        let mut text = format!("{} storms\n", self.storms);
        let mut out = Vec::new();
        for (&seen, sight) in self.seen.iter().zip(&SIGHTS) {
            let (is_in, bound) = sight.judge(seen, self.storms, has_first);
            let wanted = match sight.wanted {
                AtLeast => "least",
                AtMost => "most",
            };
            let share = seen as f64 / self.storms as f64 * 100.0;
            let line = format!("{}: in {share:.1} %, at {wanted} {bound:.1} %", sight.what);
            text += &format!("{line}\n");
            if self.storms >= LEAST_JUDGED && !is_in {
                out.push(line);
            }
        }
        (text, out)
    }
}

/// The first write that could never succeed: to an unknown file, or with a value out of bounds.
/// Notes of such writes have an errno and a message; writes that fail for now have the errno only.
pub fn never_taken(record: &RunRecord) -> Option<&String> {
    let never = [": ENOENT: ", ": EINVAL: ", ": EACCES: ", ": ERANGE: "];
    record.notes.iter().find(|note| never.iter().any(|errno| note.contains(errno)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storm::more::write_control;
    use pagetide_scenario::model::{Phase, Setup, Variant};
    use pagetide_sim::{run, RunOptions};

    fn record_of(setup: Setup) -> RunRecord {
        let variant = Variant { name: "calm".into(), sets: Vec::new(), setup };
        run("calm", &variant, 1, &RunOptions::default()).unwrap()
    }

    #[test]
    fn storms_that_do_nothing_are_noticed() {
        let record = record_of(crate::storm::weather::calm());
        let mut tally = Tally::default();
        (1..LEAST_JUDGED).for_each(|_| tally.add(&record));
        assert!(tally.judge(false).1.is_empty(), "too few to judge");
        tally.add(&record);
        let (text, out) = tally.judge(false);
        assert!(out.iter().any(|line| line.starts_with("kswapd scanned: in 0.0 %")), "{text}");
    }

    #[test]
    fn a_control_that_is_not_there_is_noticed() {
        let note = |control| {
            let mut setup = crate::storm::weather::calm();
            let workload = write_control(None, control, "1");
            setup.tasks[0].phases = vec![Phase { name: "write".into(), workload }];
            never_taken(&record_of(setup)).cloned()
        };
        assert_eq!(note("vm.drop_caches"), None);
        // No task of this machine uses files or pipes.
        assert!(note("slab.dentry.shrink").unwrap().contains("ENOENT"));
    }
}
