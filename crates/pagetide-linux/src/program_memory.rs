//! The memory of the guest's program itself: one locked process for each task, which gives its
//! frames back when the task ends.
//!
//! These frames are in use when the tasks start, so the simulator starts without them, too. Like
//! disk times ([`crate::disk_times`]) their number is taken from the record: locked pages, page
//! tables and kernel stacks before the first task starts, less those after the last one has ended.
//!
//! Invariant: a record that lacks one of these counters, or that ends with a measured task, has no
//! such frames.

use pagetide_scenario::model::Setup;
use pagetide_scenario::record::Unit;
use std::collections::BTreeMap;

/// Counters of /proc/vmstat, and how many of their unit are a frame.
const COUNTERS: [(&str, f64); 3] =
    [("nr_mlock", 1.0), ("nr_page_table_pages", 1.0), ("nr_kernel_stack", 4.0)];

/// Sets the frames of each task's program in `setup`, the mean of all runs. Tasks with the same start
/// begin at once.
pub fn apply(metrics: &BTreeMap<String, (Unit, Vec<Option<f64>>)>, setup: &mut Setup) {
    setup.machine.starts_at_once = true;
    if setup.measure.is_some() {
        return;
    }
    let mean = |key: &str| -> Option<f64> {
        let values = || metrics.get(key).into_iter().flat_map(|(_, values)| values).flatten();
        let nr = values().count();
        (nr > 0).then(|| values().sum::<f64>() / nr as f64)
    };
    let given_back = |(counter, of_frame): (&str, f64)| {
        Some((mean(&format!("idle.{counter}"))? - mean(counter)?) / of_frame)
    };
    let frames: Option<f64> = COUNTERS.into_iter().map(given_back).sum();
    let tasks = setup.tasks.len().max(1) as f64;
    setup.machine.program_frames = (frames.unwrap_or(0.0) / tasks).round().max(0.0) as u64;
    let locked = mean("idle.nr_unevictable").unwrap_or(0.0);
    setup.machine.program_locked = locked.round().max(0.0) as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::setup;

    #[test]
    fn a_program_has_what_is_free_after_its_end() {
        let text = "[machine]\nmemory = \"64MiB\"\n[[task]]\nname = \"a\"\ncopies = 2\n\
                    [[task.phase]]\nname = \"b\"\nworkload = \"touch\"\nsize = \"1MiB\"\n";
        let mut setup = setup(text);
        let mut metrics = BTreeMap::new();
        let mut put = |key: &str, value: f64| {
            metrics.insert(key.to_owned(), (Unit::Pages, vec![None, Some(value)]));
        };
        put("idle.nr_mlock", 1000.0);
        put("nr_mlock", 200.0);
        put("idle.nr_page_table_pages", 30.0);
        put("nr_page_table_pages", 10.0);
        put("idle.nr_kernel_stack", 900.0);
        apply(&metrics, &mut setup);
        assert_eq!(setup.machine.program_frames, 0, "incomplete");
        metrics.insert("nr_kernel_stack".to_owned(), (Unit::Pages, vec![Some(860.0)]));
        apply(&metrics, &mut setup);
        assert_eq!(setup.machine.program_frames, 415);
    }
}
