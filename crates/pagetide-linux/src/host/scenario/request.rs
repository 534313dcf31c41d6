//! Writes the failed request of a report as the last task of the scenario.
//!
//! A request for a user page, or one that met a group's limit, becomes a write to memory; any other
//! becomes a block of kernel memory. Invariant: a note names each flag that the workload lacks.

use super::page::ScenarioText;
use crate::host::note::ImportNote;
use crate::host::report::{FailedRequest, PLACE};
use pagetide_core::units::MAX_PAGE_ORDER;

/// The name of the task.
pub(super) const TASK: &str = "request";

/// Writes the task, in `group` if the request met its limit.
pub(super) fn write(page: &mut ScenarioText, request: &FailedRequest, group: Option<&str>) {
    let flags = request.flags;
    let ended = if request.is_oom { "invoked the OOM killer" } else { "failed" };
    page.line("");
    page.comment(&format!(
        "The request of `{}` for a block of order {} that {ended}.",
        request.comm, request.order
    ));
    let note = |page: &mut ScenarioText, message: &str| {
        let line = Some(request.line);
        page.comment_note(ImportNote { line, ..ImportNote::new(PLACE, message) });
    };
    for (is_set, message) in [
        (flags.no_retry, "__GFP_NORETRY: the request here tries as often as one without it"),
        (flags.direct && !flags.io, "no __GFP_IO (GFP_NOIO): the request here may start I/O"),
        (
            flags.direct && flags.io && !flags.fs,
            "no __GFP_FS (GFP_NOFS): here it may enter file systems",
        ),
        (flags.low_zone, "only zone DMA or DMA32: the request here takes any zone"),
        (flags.memalloc, "__GFP_MEMALLOC: the request here respects the watermarks"),
    ] {
        if is_set {
            note(page, message);
        }
    }
    page.line("[[task]]");
    page.line(&format!("name = \"{TASK}\""));
    group.iter().for_each(|group| page.line(&format!("group = \"{group}\"")));
    let order = request.order.min(MAX_PAGE_ORDER.into());
    if order < request.order {
        note(page, "the order is above the largest block of a scenario, which is asked for");
    }
    if flags.movable || request.is_of_group {
        page.line("workload = \"touch\"");
        page.line(&format!("size = \"{} pages\"", 1u64 << order));
        report(page, &["request.walltime"], "oom_kill > 0");
        return;
    }
    let rights = match (flags.direct, flags.high, flags.reclaimable) {
        (true, _, true) => "reclaimable",
        (true, ..) => "kernel",
        (false, true, _) => "atomic",
        (false, false, _) => "nowait",
    };
    page.line("workload = \"kernel-memory\"");
    page.line(&format!("order = {order}"));
    page.line("blocks = 1");
    page.line("count = 1");
    page.line(&format!("request = \"{rights}\""));
    let fails = if request.is_oom { "oom_kill > 0" } else { "request.success = 0 %" };
    report(page, &["request.success", "compact_stall"], fails);
}

/// The rows and the expectation that say whether the request fails here, too.
fn report(page: &mut ScenarioText, own: &[&str], fails: &str) {
    let rows = own.iter().chain(&["oom_kill", "allocstall", "nr_free_pages"]);
    let rows: Vec<String> = rows.map(|row| format!("\"{row}\"")).collect();
    page.line("");
    page.line("[report]");
    page.line(&format!("rows = [{}]", rows.join(", ")));
    page.line("");
    page.line("[[expect]]");
    page.line("text = \"as in the report, there is no memory for the request\"");
    page.line(&format!("that = \"{fails}\""));
}
