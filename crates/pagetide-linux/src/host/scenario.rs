//! A system's snapshot becomes the text of a scenario: its machine, its knobs, its groups, and a
//! placeholder for the workload.
//!
//! Invariant: the text loads without a mistake, and says in comments what it was made from, what
//! was left out and why. Every such remark that is about this system is a note, too.

mod costs;
mod free_lists;
mod groups;
mod knobs;
mod machine;
mod page;

use super::error::HostError;
use super::layout;
use super::note::Note;
use super::number::{plural, show_pages};
use super::snapshot::HostSnapshot;
pub use costs::MeasuredCosts;
use page::Page;
use pagetide_scenario::load::{self, Overrides};
use std::path::Path;

/// The placeholder's name, which no group may have.
const TASK: &str = "example";
/// Its size at most, in pages: 64 MiB.
const TASK_PAGES_MAX: u64 = 16_384;
/// CPUs of a scenario at most.
const CPUS_MAX: usize = 1024;

/// What the user may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// Exactly the pages that are free now are free when the run starts. Otherwise all are that
    /// would be without programs.
    pub as_is: bool,
    /// Keep groups that set nothing and have none below that does.
    pub all_groups: bool,
    /// What operations cost on the machine, if that was measured.
    pub costs: Option<&'a MeasuredCosts>,
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its TOML text.
    pub text: String,
    /// What is in it, in one line.
    pub summary: String,
    /// What was not understood or left out.
    pub notes: Vec<Note>,
}

/// Makes a scenario of a system.
///
/// # Errors
/// If the system does not say what memory it has, or has more than a scenario can.
pub fn write(host: &HostSnapshot, options: Options<'_>) -> Result<Written, HostError> {
    let mut layout_notes = Vec::new();
    let mut nodes = layout::nodes(host, &mut layout_notes)?;
    if options.as_is {
        free_lists::settle(host, &mut nodes, &mut layout_notes);
    } else {
        nodes.iter_mut().flat_map(|node| &mut node.zones).for_each(|zone| zone.free_lists = None);
    }
    let mut page = Page::new();
    let nr_cpus = host.zones.nr_cpus();
    let cpus = nr_cpus.clamp(1, CPUS_MAX);
    let managed = machine::managed_pages(host, &nodes);
    let Some(managed) = managed.filter(|pages| *pages > 0) else {
        return Err(HostError::NoMemory("/proc/zoneinfo".to_owned()));
    };
    let mut summary = format!("{}, {}", plural(cpus, "CPU"), show_pages(managed));
    if nodes.len() > 1 {
        summary += &format!(" on {} nodes", nodes.len());
    }

    let release = host.release.as_ref().map_or(String::new(), |name| format!("; Linux {name}"));
    page.comment(&format!("A live system, imported by `pagetide import host`{release}."));
    page.comment(
        "docs/import-host.md says what is read, and how. The workload is yours to write: see",
    );
    page.comment("[[task]] at the end.");
    page.line(&format!("title = \"An imported machine: {summary}\""));
    page.line("repeats = 3");
    page.line("");
    page.line("[machine]");
    page.line(&format!("cpus = {cpus}"));
    if nr_cpus != cpus {
        let what = match nr_cpus {
            0 => "no zone says which CPUs there are; the scenario has one".to_owned(),
            _ => format!("the machine has {nr_cpus} CPUs, a scenario at most {CPUS_MAX}"),
        };
        page.tell(Note::new("/proc/zoneinfo", what));
    }
    let free = machine::write(&mut page, host, &nodes, layout_notes, options);
    if let Some(measured) = options.costs {
        costs::write(&mut page, measured);
    }
    knobs::write(&mut page, host);
    let memory = managed.saturating_mul(4096);
    let nr_groups = groups::write(&mut page, host, memory, options, TASK);
    task(&mut page, free, nr_groups);
    if nr_groups > 0 {
        summary += &format!(", {}", plural(nr_groups, "group"));
    }

    let (text, told) = page.finish();
    let overrides = Overrides::default();
    load::load_str("imported.toml", &text, Path::new(""), &overrides)
        .map_err(|mistakes| HostError::Refused(mistakes.to_string()))?;
    let notes = host.notes.iter().cloned().chain(told).collect();
    Ok(Written { text, summary, notes })
}

fn task(page: &mut Page, free: u64, nr_groups: usize) {
    let pages = TASK_PAGES_MAX.min(free / 4).max(1);
    page.line("");
    page.comment(
        "A placeholder, so that the scenario runs: it writes to each page of some memory once.",
    );
    page.comment("Replace it with your workload; docs/scenario.md has all of them.");
    page.line("[[task]]");
    page.line(&format!("name = \"{TASK}\""));
    if nr_groups > 0 {
        page.line("# group = \"...\" # one of the groups above");
    }
    page.line("workload = \"touch\"");
    page.line(&format!("size = \"{pages} pages\" # {}", show_pages(pages)));
}

#[cfg(test)]
mod tests;
