//! `workload = "service"`: threads serve requests that arrive whether or not a thread is free.
//!
//! This file has the keys and their checks; `request` has the arrivals and the work of a request.
//!
//! Invariant: a latency counts from the arrival, so a stall affects all requests that arrive in it.

use super::prelude::*;
use super::load_curve::{check_load, LoadCurve, LoadPoint, TIME_MAX};
use super::modulo::Scatter;
use super::order::PageOrder;
use super::paced::check_rate;
pub use super::request::ServiceWorkload;
use super::request::{ServiceRegions, ServiceState};
use super::walk::{check_order, RegionPasses};
use crate::load::check::phases::{anon_pages, check_block, region_name};
use crate::load::decode::{Hundredths, PerSecond, Rate};
use crate::load::span::SourceSpan;
use crate::load::units::show_size;
use crate::op::REGION_PAGES_MAX;
use crate::names::{ArrivalKind, CpuDistribution, OrderKind};
use std::sync::Arc;

const THREADS_MAX: i64 = 256;
/// Largest number of waiting requests.
const QUEUE_MAX: i64 = 1 << 20;

table! {
    /// Serves requests with threads.
    ServiceKeys of "workload service" {
        /// Distribution of the arrivals of requests (default poisson).
        arrivals: Spanned<ArrivalKind> = ArrivalKind::Poisson,
        /// Requests per second.
        rate: Spanned<PerSecond> => required "500",
        /// Share of the rate over time (default: the full rate).
        load: Spanned<Vec<LoadPoint>>,
        /// Time during which requests arrive (default: until the task is stopped, or until all
        /// `requests` have arrived).
        duration: Spanned<Time>,
        /// Number of requests that arrive (default: as many as arrive in `duration`).
        requests: Spanned<Int<1, { i64::MAX }>>,
        /// Number of threads that serve them (default 1).
        threads: Spanned<Int<1, THREADS_MAX>> = Int(1),
        /// Requests that may wait for a thread; more are dropped (default 1048576, the maximum).
        queue: Spanned<Int<0, QUEUE_MAX>> = Int(QUEUE_MAX),
        /// A request that takes longer is late (default: no limit).
        deadline: Spanned<Time>,
        /// CPU time of a request (default 0).
        cpu: Spanned<Time> = Time(0),
        /// Distribution of the CPU times of requests (default fixed).
        cpu_distribution: Spanned<CpuDistribution> = CpuDistribution::Fixed,
        /// Size of the anonymous memory that requests touch (default: none).
        heap: Spanned<Size>,
        /// Region of `heap`; phases of a task that name the same region share it (default anon).
        region: Spanned<NameKey>,
        /// Writes every page of `heap` first (default true).
        populate: Spanned<bool> = true,
        /// Number of pages of `heap` that a request touches.
        touches: Spanned<Int<1, { 1 << 20 }>>,
        /// Distribution of the touched pages: random or zipf (default zipf).
        order: Spanned<OrderKind> = OrderKind::Zipf,
        /// Exponent of order zipf (default 1.0).
        exponent: Spanned<Hundredths>,
        /// Share of the touches that write, in per cent (default 50).
        write_percent: Spanned<Int<0, 100>> = Int(50),
        /// File that requests read and write (default: none).
        file: Spanned<NameKey>,
        /// Bytes of the file that a request reads, at a random position (default: none).
        read: Spanned<Size>,
        /// Bytes of the file that a request writes, at a random position (default: none).
        write: Spanned<Size>,
        /// Memory that a request allocates, writes, and frees at its end (default: none).
        allocate: Spanned<Size>,
        /// Rate at which the service allocates memory that it never frees (default: none).
        grow: Spanned<Rate>,
    }
}

impl WorkloadSpec for ServiceWorkload {
    type Keys = ServiceKeys;

    fn check(keys: &ServiceKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let rate = keys.rate(sink).map(|rate| rate.value.0);
        let order = check_draws(keys, sink);
        let load = check_load(&keys.load, sink);
        let is_sound = check_needs(keys, sink) && check_times(keys, load.as_ref(), sink);
        let heap = match &keys.heap {
            Some(size) => {
                let pages = anon_pages(size, sink)?;
                let region = region_name(&keys.region, size.span);
                let advice = phases.advice_of(&region.value.0);
                phases.use_region(&region, None, advice, pages, size.span, sink)?;
                Some((region.value.0, pages))
            }
            None => None,
        };
        let file = match &keys.file {
            Some(name) => Some(check_file(keys, name, phases, sink)?),
            None => None,
        };
        let threads: u32 = keys.threads().into();
        let allocate = match &keys.allocate {
            Some(size) => {
                let pages = anon_pages(size, sink)?;
                let all = pages.saturating_mul(threads.into());
                use_own_region("allocated", all, size.span, phases, sink)?;
                pages
            }
            None => 0,
        };
        if let (Some(grow), Some(duration)) = (&keys.grow, &keys.duration) {
            let pages = grown_pages(grow.value.0, duration.value.0, sink.page_size.bytes());
            use_own_region("grown", pages, grow.span, phases, sink)?;
        }
        let size = |size: &Option<Spanned<Size>>| size.as_ref().map_or(0, |size| size.value.0);
        let service = ServiceWorkload {
            poisson: keys.arrivals() == ArrivalKind::Poisson,
            rate: rate?,
            load: load?,
            duration_ns: keys.duration.as_ref().map(|duration| duration.value.0),
            requests: keys.requests.as_ref().map(|requests| requests.value.into()),
            threads,
            queue: keys.queue().into(),
            deadline_ns: keys.deadline.as_ref().map(|deadline| deadline.value.0),
            cpu_ns: keys.cpu().0,
            cpu_exponential: keys.cpu_distribution() == CpuDistribution::Exponential,
            heap,
            populate: keys.populate(),
            touches: keys.touches.as_ref().map_or(0, |touches| touches.value.into()),
            order: order?,
            write_percent: keys.write_percent().into(),
            file,
            read: size(&keys.read),
            write: size(&keys.write),
            allocate,
            grow: keys.grow.as_ref().map_or(0, |grow| grow.value.0),
        };
        is_sound.then_some(service)
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let mut stages = Vec::new();
        let heap = self.heap.as_ref().map(|(name, pages)| {
            let advice = planner.advice_of(name);
            let region = planner.anon_region(name, *pages, advice);
            stages.push(PhaseStage::Map(region));
            if self.populate {
                stages.push(planner.walk(RegionPasses::once(region, *pages, true)));
            }
            let zipf = match self.order {
                PageOrder::Zipf { exponent_hundredths } => {
                    Some(planner.zipf(*pages, exponent_hundredths))
                }
                PageOrder::Sequential | PageOrder::Scattered | PageOrder::Random => None,
            };
            (region, zipf, Scatter::new(*pages))
        });
        let page = planner.page_size.bytes();
        let duration_ns = self.duration_ns.filter(|_| self.grow > 0);
        let grown = duration_ns.map_or(0, |duration| grown_pages(self.grow, duration, page));
        let own = [("allocated", self.allocate * u64::from(self.threads)), ("grown", grown)];
        let [arena, grown] = own.map(|(what, pages)| {
            let region = (pages > 0).then(|| {
                planner.anon_region(&format!("#{what} {phase}"), pages, Advice::Normal)
            });
            stages.extend(region.map(PhaseStage::Map));
            region
        });
        let service = Arc::new(self.clone());
        let file_size = self.file.map_or(0, |file| planner.file_sizes[file]);
        stages.push(PhaseStage::run(move |state, _| {
            let places = ServiceRegions {
                heap: heap
                    .as_ref()
                    .map(|(region, zipf, scatter)| (state.number(*region), zipf.clone(), *scatter)),
                arena: arena.map(|region| state.number(region)),
                grown: grown.map(|region| state.number(region)),
            };
            ServiceState::new(phase, Arc::clone(&service), places, (file_size, page), state).into()
        }));
        stages
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        if let Some(file) = &mut self.file {
            each(file, self.write > 0);
        }
    }

    fn missing_end(&self) -> Option<&'static str> {
        let is_endless = self.duration_ns.is_none() && self.requests.is_none();
        is_endless.then_some("duration = \"10s\"")
    }
}

/// Upper limit of the pages by which a service has grown at the end of its load.
fn grown_pages(bytes_a_second: u64, duration_ns: u64, page: u64) -> u64 {
    let bytes = u128::from(bytes_a_second) * u128::from(duration_ns) / 1_000_000_000;
    u64::try_from(bytes / u128::from(page)).unwrap_or(u64::MAX).max(1)
}

/// Uses a region that no other phase can name.
fn use_own_region(
    what: &str,
    pages: u64,
    span: SourceSpan,
    phases: &mut Phases<'_, '_>,
    sink: &mut ProblemSink,
) -> Option<()> {
    let value = NameKey(format!("#{what} {}", phases.regions.len()));
    let pages = pages.min(REGION_PAGES_MAX + 1);
    phases.use_region(&Spanned { value, span }, None, Advice::Normal, pages, span, sink)
}

/// The order of the touches, which must be drawn.
fn check_draws(keys: &ServiceKeys, sink: &mut ProblemSink) -> Option<PageOrder> {
    match &keys.order {
        Some(Spanned { value: OrderKind::Sequential | OrderKind::Scattered, span }) => {
            let hint = "write order = \"zipf\" or \"random\"";
            sink.hinted(*span, "requests cannot touch pages in this order", hint);
            None
        }
        _ => check_order(keys.order(), &keys.exponent, sink),
    }
}

/// Reports keys that need other keys, and requests without any work.
fn check_needs(keys: &ServiceKeys, sink: &mut ProblemSink) -> bool {
    let mut is_sound = true;
    let mut report = |span: Option<SourceSpan>, key: &str, other: &str, example: &str| {
        if let Some(span) = span.filter(|_| !keys.bad.contains(&other)) {
            sink.hinted(span, format!("`{key}` needs `{other}`"), format!("add {example}"));
            is_sound = false;
        }
    };
    macro_rules! spans {
        ($($key:ident),+) => { [$((stringify!($key), keys.$key.as_ref().map(|key| key.span))),+] };
    }
    if keys.heap.is_none() {
        for (key, span) in spans!(touches, region, populate, order, exponent, write_percent) {
            report(span, key, "heap", "heap = \"64MiB\", the memory that requests touch");
        }
    } else if keys.touches.is_none() {
        let span = keys.heap.as_ref().map(|heap| heap.span);
        report(span, "heap", "touches", "touches = 16, the pages that a request touches");
    }
    if keys.file.is_none() {
        for (key, span) in spans!(read, write) {
            report(span, key, "file", "file = \"NAME\", the file to use");
        }
    } else if keys.read.is_none() && keys.write.is_none() && !keys.bad.contains(&"write") {
        let span = keys.file.as_ref().map(|file| file.span);
        report(span, "file", "read", "`read` or `write`, or both: read = \"16KiB\"");
    }
    if keys.duration.is_none() {
        let span = keys.grow.as_ref().map(|grow| grow.span);
        report(span, "grow", "duration", "duration = \"10s\": it limits the growth of the service");
    }
    if keys.cpu.is_none() {
        let span = keys.cpu_distribution.as_ref().map(|distribution| distribution.span);
        report(span, "cpu_distribution", "cpu", "cpu = \"1ms\", the mean CPU time");
    }
    let is_idle = keys.cpu().0 == 0
        && keys.heap.is_none()
        && keys.file.is_none()
        && keys.allocate.is_none()
        && keys.grow.is_none();
    if is_idle && keys.bad.is_empty() && is_sound {
        let hint = "add cpu = \"1ms\", or heap and touches, or file and read, for example";
        sink.hinted(keys.at, "requests have no work", hint);
        is_sound = false;
    }
    is_sound
}

/// Reports a duration or a rate of 0, and a load that never ends.
fn check_times(keys: &ServiceKeys, load: Option<&LoadCurve>, sink: &mut ProblemSink) -> bool {
    let mut is_sound = keys.grow.as_ref().is_none_or(|grow| check_rate(grow, sink).is_some());
    if let Some(duration) = &keys.duration {
        if !(1..=TIME_MAX).contains(&duration.value.0) {
            let hint =
                "write for how long requests arrive: \"10s\", for example, at most two years";
            sink.hinted(duration.span, "the duration is out of range", hint);
            is_sound = false;
        }
    }
    let ends = load.is_some_and(LoadCurve::ends_at_zero);
    if let (Some(points), true, None) = (&keys.load, ends, &keys.duration) {
        let hint = "end with a share above \"0 %\", or add a duration";
        sink.hinted(points.span, "the load ends at 0 %: the remaining requests would never arrive", hint);
        is_sound = false;
    }
    is_sound
}

/// The file of requests, which must be as large as a read and a write.
fn check_file(
    keys: &ServiceKeys,
    name: &Spanned<NameKey>,
    phases: &Phases<'_, '_>,
    sink: &mut ProblemSink,
) -> Option<usize> {
    let file = phases.files.names.find(name, sink)?;
    let size = phases.not_empty(file, name, sink)?;
    for bytes in [&keys.read, &keys.write] {
        check_block(bytes, sink);
        if let Some(bytes) = bytes.as_ref().filter(|bytes| bytes.value.0 > size) {
            let shown = (show_size(bytes.value.0), show_size(size));
            let message = format!("a request uses {}, but the file has only {}", shown.0, shown.1);
            sink.hinted(bytes.span, message, "make the file larger, or this size smaller");
            return None;
        }
        if bytes.as_ref().is_some_and(|bytes| bytes.value.0 == 0) {
            return None;
        }
    }
    Some(file)
}
