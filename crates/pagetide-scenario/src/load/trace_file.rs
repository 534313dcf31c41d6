//! Checks by the header alone whether a trace file can be replayed.

use super::units::show_size;
use crate::op::REGION_PAGES_MAX;
use pagetide_trace::format::PAGE_SIZE;
use pagetide_trace::{Header, TraceReader};
use std::path::Path;

/// On error: the problem, and a hint if there is one.
pub(super) fn check(path: &Path) -> Result<(), (String, Option<String>)> {
    let metadata = std::fs::metadata(path).map_err(|error| {
        let shown = path.display();
        (
            error.to_string(),
            Some(format!("looked for {shown}: paths are relative to the file that names them")),
        )
    })?;
    // Opening a pipe would block until its other end opens.
    if !metadata.is_file() {
        return Err(("it is not a regular file".into(), None));
    }
    let reader = TraceReader::open(path).map_err(|mut error| {
        error.file = None;
        let hint = error.hint();
        let text = error.to_string();
        (text.lines().next().unwrap_or_default().to_owned(), hint)
    })?;
    check_header(reader.header())
}

fn check_header(header: &Header) -> Result<(), (String, Option<String>)> {
    if header.page_size != PAGE_SIZE {
        let message = format!("it has a page size of {} bytes", header.page_size);
        return Err((
            message,
            Some(format!("a trace must have a page size of {PAGE_SIZE}: import it again")),
        ));
    }
    let pages = header.regions.iter().fold(0_u64, |sum, region| sum.saturating_add(region.pages));
    if pages > REGION_PAGES_MAX {
        let shown = show_size(pages.saturating_mul(PAGE_SIZE.into()));
        let limit = show_size(REGION_PAGES_MAX * u64::from(PAGE_SIZE));
        let message = format!("it maps {shown}, more than the address space");
        return Err((message, Some(format!("a task can map at most {limit} in total"))));
    }
    Ok(())
}
