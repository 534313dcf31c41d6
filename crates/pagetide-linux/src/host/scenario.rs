//! Writes a system's snapshot as the text of a scenario: machine, knobs, groups, and a placeholder
//! for the workload.
//!
//! Invariant: the text loads without a mistake. Comments state its origin, and what was left out
//! and why. Every such comment that is specific to this system is also a note.

mod costs;
mod free_lists;
mod groups;
mod idle;
mod knobs;
mod machine;
mod page;
mod request;
mod watchers;

use super::error::HostError;
use super::note::ImportNote;
use super::number::{plural, show_pages};
use super::plain_names::NameAllocator;
use super::report::KernelReport;
use super::snapshot::HostSnapshot;
use super::{layout, marks, page_size, release, unnamed};
pub use costs::MeasuredCosts;
use page::ScenarioText;
use pagetide_core::config::{PolicyChoice, WatermarkPolicy};
use pagetide_core::units::page_size::PageSize;
use pagetide_scenario::load::{self, Overrides};
use std::path::Path;

/// Name of the placeholder task, which no group may have.
const TASK: &str = "example";
/// Its maximum size.
const TASK_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of CPUs of a scenario.
const CPUS_MAX: usize = 1024;

/// Options of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostImportOptions<'a> {
    /// The pages that are free now are free when the run starts. Otherwise all pages that would be
    /// free without programs.
    pub as_is: bool,
    /// Keep groups that set nothing, even if no descendant sets anything.
    pub all_groups: bool,
    /// The report that the system comes from, if any. Its request takes the place of the
    /// placeholder.
    pub report: Option<&'a KernelReport>,
    /// Measured operation costs, if available.
    pub costs: Option<&'a MeasuredCosts>,
}

/// A generated scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedScenario {
    /// Its TOML text.
    pub text: String,
    /// One line about its contents.
    pub summary: String,
    /// Notes about everything that was not understood or left out.
    pub notes: Vec<ImportNote>,
}

/// Generates a scenario for a system.
/// Fails if the size of memory is unknown, or larger than a scenario can have.
pub fn write(
    host: &HostSnapshot,
    options: HostImportOptions<'_>,
) -> Result<ImportedScenario, HostError> {
    let mut layout_notes = Vec::new();
    let (set, set_note) = release::policy_set(host.release.as_deref(), host.zones.newest_release());
    let is_derived = set.choices().contains(&PolicyChoice::Watermarks(WatermarkPolicy::Derived));
    let (size, how) = page_size::of(host, &mut layout_notes);
    let mut marks = marks::read(host, size, !is_derived);
    let mut nodes = layout::nodes(host, size, &marks.marks, &mut layout_notes)?;
    layout_notes.append(&mut marks.notes);
    layout_notes.extend(unnamed::notes(host, size));
    free_lists::assign_free_lists(host, &mut nodes, size, options.as_is, &mut layout_notes);
    let mut page = ScenarioText::new(size, options.report.is_some());
    let nr_cpus = host.zones.nr_cpus();
    let cpus = nr_cpus.clamp(1, CPUS_MAX);
    let managed = nodes.iter().flat_map(|node| &node.zones);
    let managed = managed.fold(0u64, |sum, zone| sum.saturating_add(zone.managed));
    if managed == 0 {
        return Err(HostError::NoMemory("/proc/zoneinfo".to_owned()));
    }
    let mut summary = format!("{}, {}", plural(cpus, "CPU"), show_pages(managed, size));
    if nodes.len() > 1 {
        summary += &format!(" on {} nodes", nodes.len());
    }

    let release = host.release.as_ref().map_or(String::new(), |name| format!("; Linux {name}"));
    let title = match options.report {
        None => {
            page.comment(&format!("A live system, imported by `pagetide import host`{release}."));
            page.comment(
                "docs/tutorials/import-a-machine.md describes the import. Write your own workload: \
                 see [[task]] at the end.",
            );
            "An imported machine"
        }
        Some(report) => {
            let from = format!(
                "A machine at a failed request, from line {} of a kernel log, imported by \
                 `pagetide import report`{release}.",
                report.request.line
            );
            page.comment(&from);
            page.comment("docs/tutorials/import-a-machine.md describes the import.");
            "A machine at a failed request"
        }
    };
    page.line(&format!("title = \"{title}: {summary}\""));
    page.line("repeats = 3");
    page.line("");
    page.line("[machine]");
    page.line(&format!("cpus = {cpus}"));
    if size != PageSize::default() {
        page.line(&format!("page_size = \"{} KiB\" # {how}", size.kbytes_of(1)));
    }
    if nr_cpus != cpus {
        let what = match nr_cpus {
            0 => "the number of CPUs is unknown; the scenario has one".to_owned(),
            _ => format!("the machine has {nr_cpus} CPUs, but a scenario has at most {CPUS_MAX}"),
        };
        page.comment_note(ImportNote::new("/proc/zoneinfo", what));
    }
    let free = machine::write(&mut page, host, &nodes, &marks, layout_notes, options);
    if let Some(measured) = options.costs {
        costs::write(&mut page, measured);
    }
    knobs::policies(&mut page, host, set, set_note);
    knobs::write(&mut page, host, set, &marks);
    let memory = size.bytes_of(managed);
    let reserved = [TASK, request::TASK, watchers::POD].into_iter().chain(watchers::NAMES);
    let mut names = NameAllocator::new(&reserved.collect::<Vec<_>>());
    let groups = groups::write(&mut page, host, memory, nodes.len(), options, &mut names);
    if options.as_is {
        idle::write(&mut page, host, &nodes, &groups, options.report, &mut names);
    }
    match options.report {
        None => task(&mut page, free, !groups.is_empty(), watchers::needs_pod(host)),
        Some(report) => {
            let group = groups.last().filter(|_| report.request.is_of_group);
            request::write(&mut page, &report.request, group.map(|(_, name)| name.as_str()));
        }
    }
    watchers::write(&mut page, host, memory, &groups);
    if !groups.is_empty() {
        summary += &format!(", {}", plural(groups.len(), "group"));
    }

    let (text, told) = page.finish();
    let overrides = Overrides::default();
    load::load_str("imported.toml", &text, Path::new(""), &overrides)
        .map_err(|mistakes| HostError::Refused(mistakes.to_string()))?;
    let notes = host.notes.iter().cloned().chain(told).collect();
    Ok(ImportedScenario { text, summary, notes })
}

fn task(page: &mut ScenarioText, free: u64, has_groups: bool, is_pod: bool) {
    let pages = page.size.pages_in(TASK_BYTES_MAX).min(free / 4).max(1);
    page.line("");
    page.comment(
        "A placeholder, so that the scenario runs: it writes once to each page of some memory.",
    );
    page.comment("Replace it with your workload; docs/scenario.md describes all workloads.");
    if is_pod {
        page.line("[[group]]");
        page.line(&format!("name = \"{}\"", watchers::POD));
    }
    page.line("[[task]]");
    page.line(&format!("name = \"{TASK}\""));
    if is_pod {
        page.line(&format!("group = \"{}\"", watchers::POD));
    } else if has_groups {
        page.line("# group = \"...\" # one of the groups above");
    }
    page.line("workload = \"touch\"");
    page.line(&format!("size = \"{pages} pages\" # {}", page.show(pages)));
}

#[cfg(test)]
mod tests;
