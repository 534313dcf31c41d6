//! `workload = "service"`: requests arrive whether or not anybody is free, and threads serve them.
//!
//! Here are its keys and their checks; `request` has what arrives when, and what a thread does for it.
//!
//! Invariant: a latency is counted from the arrival of a request, so a stall is felt by all who arrive
//! during it.

use super::prelude::*;
use super::load_curve::{check_load, Load, Point, TIME_MAX};
use super::modulo::Scatter;
use super::paced::check_rate;
use super::request::{Places, Shared};
use super::walk::{check_order, Order, Walk};
use crate::load::check::phases::{anon_pages, check_block, region_name};
use crate::load::decode::{Hundredths, PerSecond, Rate};
use crate::load::span::Span;
use crate::load::units::show_size;
use crate::op::REGION_PAGES_MAX;
use crate::names::{ArrivalKind, CpuDistribution, OrderKind};
use std::sync::Arc;

/// Threads of a service.
const THREADS_MAX: i64 = 256;
/// Requests that wait at most.
const QUEUE_MAX: i64 = 1 << 20;

table! {
    /// Requests, and threads that serve them.
    Keys of "workload service" {
        /// When requests arrive (default poisson).
        arrivals: At<ArrivalKind> = ArrivalKind::Poisson,
        /// Requests a second.
        rate: At<PerSecond> => required "500",
        /// The share of the rate over time (default: all of it).
        load: At<Vec<Point>>,
        /// How long requests arrive (default: until it is stopped, or as `requests` says).
        duration: At<Time>,
        /// How many arrive (default: as long as `duration` says).
        requests: At<Int<1, { i64::MAX }>>,
        /// Threads that serve them (default 1).
        threads: At<Int<1, THREADS_MAX>> = Int(1),
        /// Requests that may wait for a thread; more are dropped (default 1048576, the most).
        queue: At<Int<0, QUEUE_MAX>> = Int(QUEUE_MAX),
        /// A request that takes longer is late (default: none is).
        deadline: At<Time>,
        /// CPU time of a request (default 0).
        cpu: At<Time> = Time(0),
        /// How it differs between requests (default fixed).
        cpu_distribution: At<CpuDistribution> = CpuDistribution::Fixed,
        /// Anonymous memory that requests touch (default: none).
        heap: At<Size>,
        /// Its name: phases of a task that name the same region share it (default anon).
        region: At<Name>,
        /// First write every page of it (default true).
        populate: At<bool> = true,
        /// Pages of the heap that a request touches.
        touches: At<Int<1, { 1 << 20 }>>,
        /// Which: random or zipf (default zipf).
        order: At<OrderKind> = OrderKind::Zipf,
        /// Exponent of order zipf (default 1.0).
        exponent: At<Hundredths>,
        /// Per cent of the touches that write (default 50).
        write_percent: At<Int<0, 100>> = Int(50),
        /// The file that requests read and write (default: none).
        file: At<Name>,
        /// Bytes that a request reads of it, at a random place (default: none).
        read: At<Size>,
        /// Bytes that a request writes to it, at a random place (default: none).
        write: At<Size>,
        /// Memory that a request allocates, writes, and frees at its end (default: none).
        allocate: At<Size>,
        /// Memory by which the service grows and that it never frees (default: none).
        grow: At<Rate>,
    }
}

/// Requests, and threads that serve them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Times between two arrivals are exponentially distributed; otherwise they are even.
    pub poisson: bool,
    /// Requests in 1000 seconds, at the whole of the load.
    pub rate: u64,
    /// The share of the rate over time.
    pub load: Load,
    /// How long requests arrive, if that is given.
    pub duration_ns: Option<u64>,
    /// How many arrive, if that is given.
    pub requests: Option<u64>,
    /// Threads that serve them.
    pub threads: u32,
    /// Requests that may wait for a thread.
    pub queue: u32,
    /// A request that takes longer is late.
    pub deadline_ns: Option<u64>,
    /// CPU time of a request, or the mean of it.
    pub cpu_ns: u64,
    /// CPU times are exponentially distributed.
    pub cpu_exponential: bool,
    /// Memory that requests touch: the region's name, its pages.
    pub heap: Option<(String, u64)>,
    /// Whether all of it is written first.
    pub populate: bool,
    /// Pages of it that a request touches.
    pub touches: u32,
    /// Which pages: `Random` or `Zipf`.
    pub order: Order,
    /// Per cent of the touches that write.
    pub write_percent: u32,
    /// The file that requests read and write, index into
    /// [`Setup::files`](crate::model::Setup::files).
    pub file: Option<usize>,
    /// Bytes that a request reads.
    pub read: u64,
    /// Bytes that a request writes.
    pub write: u64,
    /// Pages that a request allocates and frees.
    pub allocate: u64,
    /// Bytes a second by which the service grows.
    pub grow: u64,
}

impl Kind for Service {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
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
        let size = |size: &Option<At<Size>>| size.as_ref().map_or(0, |size| size.value.0);
        let service = Service {
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

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<Stage> {
        let mut stages = Vec::new();
        let heap = self.heap.as_ref().map(|(name, pages)| {
            let advice = planner.advice_of(name);
            let region = planner.anon_region(name, *pages, advice);
            stages.push(Stage::Map(region));
            if self.populate {
                stages.push(planner.walk(Walk::once(region, *pages, true)));
            }
            let zipf = match self.order {
                Order::Zipf { exponent_hundredths } => {
                    Some(planner.zipf(*pages, exponent_hundredths))
                }
                Order::Sequential | Order::Scattered | Order::Random => None,
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
            stages.extend(region.map(Stage::Map));
            region
        });
        let service = Arc::new(self.clone());
        let file_size = self.file.map_or(0, |file| planner.file_sizes[file]);
        stages.push(Stage::run(move |state, _| {
            let places = Places {
                heap: heap
                    .as_ref()
                    .map(|(region, zipf, scatter)| (state.number(*region), zipf.clone(), *scatter)),
                arena: arena.map(|region| state.number(region)),
                grown: grown.map(|region| state.number(region)),
            };
            Shared::new(phase, Arc::clone(&service), places, (file_size, page), state).into()
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

/// Pages by which a service has grown at the end of its load, at most.
fn grown_pages(bytes_a_second: u64, duration_ns: u64, page: u64) -> u64 {
    let bytes = u128::from(bytes_a_second) * u128::from(duration_ns) / 1_000_000_000;
    u64::try_from(bytes / u128::from(page)).unwrap_or(u64::MAX).max(1)
}

/// Notes a region that no other phase can name.
fn use_own_region(
    what: &str,
    pages: u64,
    span: Span,
    phases: &mut Phases<'_, '_>,
    sink: &mut Sink,
) -> Option<()> {
    let value = Name(format!("#{what} {}", phases.regions.len()));
    let pages = pages.min(REGION_PAGES_MAX + 1);
    phases.use_region(&At { value, span }, None, Advice::Normal, pages, span, sink)
}

/// The order of touches, which are drawn.
fn check_draws(keys: &Keys, sink: &mut Sink) -> Option<Order> {
    match &keys.order {
        Some(At { value: OrderKind::Sequential | OrderKind::Scattered, span }) => {
            let hint = "requests draw their pages: \"zipf\" or \"random\"";
            sink.hinted(*span, "not an order of touches", hint);
            None
        }
        _ => check_order(keys.order(), &keys.exponent, sink),
    }
}

/// Reports keys that lack others, and requests that do nothing.
fn check_needs(keys: &Keys, sink: &mut Sink) -> bool {
    let mut is_sound = true;
    let mut report = |span: Option<Span>, key: &str, other: &str, example: &str| {
        if let Some(span) = span.filter(|_| !keys.bad.contains(&other)) {
            sink.hinted(span, format!("`{key}` without `{other}`"), format!("add {example}"));
            is_sound = false;
        }
    };
    macro_rules! spans {
        ($($key:ident),+) => { [$((stringify!($key), keys.$key.as_ref().map(|key| key.span))),+] };
    }
    if keys.heap.is_none() {
        for (key, span) in spans!(touches, region, populate, order, exponent, write_percent) {
            report(span, key, "heap", "heap = \"64MiB\", the memory that is touched");
        }
    } else if keys.touches.is_none() {
        let span = keys.heap.as_ref().map(|heap| heap.span);
        report(span, "heap", "touches", "touches = 16, the pages that a request touches");
    }
    if keys.file.is_none() {
        for (key, span) in spans!(read, write) {
            report(span, key, "file", "file = \"NAME\", the file");
        }
    } else if keys.read.is_none() && keys.write.is_none() && !keys.bad.contains(&"write") {
        let span = keys.file.as_ref().map(|file| file.span);
        report(span, "file", "read", "read = \"16KiB\", or write, or both");
    }
    if keys.duration.is_none() {
        let span = keys.grow.as_ref().map(|grow| grow.span);
        report(span, "grow", "duration", "duration = \"10s\": it says how large the service gets");
    }
    if keys.cpu.is_none() {
        let span = keys.cpu_distribution.as_ref().map(|distribution| distribution.span);
        report(span, "cpu_distribution", "cpu", "cpu = \"1ms\", the mean");
    }
    let is_idle = keys.cpu().0 == 0
        && keys.heap.is_none()
        && keys.file.is_none()
        && keys.allocate.is_none()
        && keys.grow.is_none();
    if is_idle && keys.bad.is_empty() && is_sound {
        let hint = "add cpu = \"1ms\", or heap and touches, or file and read, for example";
        sink.hinted(keys.at, "a request does nothing", hint);
        is_sound = false;
    }
    is_sound
}

/// Reports times and rates at which nothing is done, and a load that never ends.
fn check_times(keys: &Keys, load: Option<&Load>, sink: &mut Sink) -> bool {
    let mut is_sound = keys.grow.as_ref().is_none_or(|grow| check_rate(grow, sink).is_some());
    if let Some(duration) = &keys.duration {
        if !(1..=TIME_MAX).contains(&duration.value.0) {
            let hint = "how long requests arrive: \"10s\", for example, at most two years";
            sink.hinted(duration.span, "no duration of a load", hint);
            is_sound = false;
        }
    }
    let ends = load.is_some_and(Load::ends_at_zero);
    if let (Some(points), true, None) = (&keys.load, ends, &keys.duration) {
        let hint = "end with a share above \"0 %\", or add a duration";
        sink.hinted(points.span, "the load ends at 0 %: the rest never arrives", hint);
        is_sound = false;
    }
    is_sound
}

/// The file of requests, which must hold what they read and write.
fn check_file(
    keys: &Keys,
    name: &At<Name>,
    phases: &Phases<'_, '_>,
    sink: &mut Sink,
) -> Option<usize> {
    let file = phases.files.names.find(name, sink)?;
    let size = phases.not_empty(file, name, sink)?;
    for bytes in [&keys.read, &keys.write] {
        check_block(bytes, sink);
        if let Some(bytes) = bytes.as_ref().filter(|bytes| bytes.value.0 > size) {
            let shown = (show_size(bytes.value.0), show_size(size));
            let message = format!("{} of a file of {}", shown.0, shown.1);
            sink.hinted(bytes.span, message, "make the file larger, or this less");
            return None;
        }
        if bytes.as_ref().is_some_and(|bytes| bytes.value.0 == 0) {
            return None;
        }
    }
    Some(file)
}
