//! `pagetide trace info`: prints the contents of a page trace.

use crate::cli::InfoArgs;
use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;
use pagetide_trace::format::PAGE_SIZE;
use pagetide_trace::{Clock, RegionKind, TraceInfo, TraceRegion, TraceSlice};
use std::fmt::Write;

/// Reads and checks the whole trace, then prints its contents.
pub fn info(args: &InfoArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let info =
        TraceInfo::scan(&args.file).map_err(|error| CliError::BadInput(error.to_string()))?;
    let mut out = format!("{:<11}{}\n", "file", args.file.display());
    describe(&info, &mut out);
    regions(&info.header.regions, &mut out);
    timeline(&info.timeline, &mut out);
    printer.data(out)?;
    Ok(ExitStatus::Success)
}

fn describe(info: &TraceInfo, out: &mut String) {
    let (header, totals) = (&info.header, &info.totals);
    let unit = match header.clock {
        Clock::Instructions => "instructions",
        Clock::Nanoseconds => "ns",
    };
    let mut line = |label: &str, text: String| {
        writeln!(out, "{label:<11}{text}").expect("writing to a string");
    };
    line("format", format!("version {}, {} bytes", header.version, info.bytes));
    line("source", header.source.clone());
    line("time", format!("{} {unit}", totals.time));
    line("references", format!("{} in {} records", totals.references, totals.records));
    line("writes", format!("{} records", totals.writes));
    line("pages", format!("{} ({})", totals.distinct_pages, mebibytes(totals.distinct_pages)));
    if header.is_request_trace() {
        line("replay", "objects: without read-ahead, unless the task says `advice`".to_owned());
    }
    line("window", format!("{} pages, {} {unit}", header.window.pages, header.window.time));
    line("digest", format!("{:016x}", totals.digest));
}

fn regions(regions: &[TraceRegion], out: &mut String) {
    writeln!(out, "\nregion  kind        pages  first page    name").expect("writing to a string");
    for (number, region) in regions.iter().enumerate() {
        let kind = match region.kind {
            RegionKind::Anon => "anon",
            RegionKind::File { executable: true, .. } => "file, exec",
            RegionKind::File { executable: false, .. } => "file",
        };
        let line = format!(
            "{number:>6}  {kind:<10} {:>6}  {:<12x}  {}",
            region.pages, region.start, region.name
        );
        writeln!(out, "{}", line.trim_end()).expect("writing to a string");
    }
}

fn timeline(slices: &[TraceSlice], out: &mut String) {
    const BAR: u64 = 40;
    let widest = slices.iter().map(|slice| slice.pages).max().unwrap_or(0).max(1);
    writeln!(out, "\n slice   pages     new  (time in {} equal slices)", slices.len())
        .expect("writing to a string");
    for (number, slice) in slices.iter().enumerate() {
        let bar = "*".repeat((slice.pages * BAR).div_ceil(widest) as usize);
        let line = format!("{number:>6}  {:>6}  {:>6}  {bar}", slice.pages, slice.new_pages);
        writeln!(out, "{}", line.trim_end()).expect("writing to a string");
    }
}

fn mebibytes(pages: u64) -> String {
    format!("{:.1} MiB", (pages * u64::from(PAGE_SIZE)) as f64 / f64::from(1 << 20))
}
