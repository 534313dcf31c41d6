//! `workload = "working-set"`: hot and cold accesses over an anonymous region, a file region or
//! both, with the generator of docs/scenario.md.

use super::prelude::*;
use super::computing::computing;
use super::cursor::Cursor;
use super::hotspot::{Hotspot, WorkingSetSide};
use super::load_curve::LoadPoint;
use super::paced::Pace;
use super::walk::RegionPasses;
use crate::load::check::phases::{anon_pages, region_name};
use crate::load::decode::Rate;
use crate::load::span::SourceSpan;
use crate::names::AdviceKind;

table! {
    /// Makes hot and cold accesses.
    WorkingSetKeys of "workload working-set" {
        /// Size of the anonymous region (default: none).
        anon: Spanned<Size>,
        /// Name of the anonymous region, shared by phases that name the same one (default anon).
        anon_region: Spanned<NameKey>,
        /// File to map (default: none).
        file: Spanned<NameKey>,
        /// Bytes of the file to map, from its start (default: all).
        file_size: Spanned<Size>,
        /// Name of the file's mapping (default: the file).
        file_region: Spanned<NameKey>,
        /// Advice on the file's mapping (default normal).
        advice: Spanned<AdviceKind> = AdviceKind::Normal,
        /// Touches every page in order first, anonymous before file (default false).
        populate: Spanned<bool> = false,
        /// Number of accesses (default 0).
        accesses: Spanned<Int<0, { i64::MAX }>> = Int(0),
        /// Per cent of the accesses that go to the anonymous region if there are both (default 50).
        anon_percent: Spanned<Int<0, 100>> = Int(50),
        /// Share of the accesses that are hot, in per cent (default 80).
        hot_access_percent: Spanned<Int<0, 100>> = Int(80),
        /// Share of the pages that are hot, in per cent (default 20).
        hot_page_percent: Spanned<Int<0, 100>> = Int(20),
        /// Share of the anonymous accesses that write, in per cent (default 100).
        write_percent: Spanned<Int<0, 100>> = Int(100),
        /// Start value of the generator (default: from the run's seed).
        generator_seed: Spanned<Int<0, { i64::MAX }>>,
        /// CPU time of the program after each access, except while it populates (default 0).
        compute: Spanned<Time> = Time(0),
        /// Rate in bytes or pages per second; an access counts as a page (default: no limit).
        rate: Spanned<Rate>,
        /// Share of the rate over time (default: the full rate).
        load: Spanned<Vec<LoadPoint>>,
    }
}

/// Parameters of the hot/cold generator.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkingSet {
    /// Anonymous region: (region name, pages); `None`: no such region.
    pub anon: Option<(String, u64)>,
    /// File region: (file index, region name, pages, advice).
    pub file: Option<(usize, String, u64, Advice)>,
    /// Touch every page in order before the accesses, anonymous before file.
    pub populate: bool,
    /// Number of accesses.
    pub accesses: u64,
    /// Share of the accesses to the anonymous region if both exist, in per cent.
    pub anon_percent: u32,
    /// Share of the accesses that are hot, in per cent.
    pub hot_access_percent: u32,
    /// Share of the pages that are hot, in per cent.
    pub hot_page_percent: u32,
    /// Per cent of the anonymous accesses that write (at 100 no draw is made).
    pub write_percent: u32,
    /// Start value of the generator; `None`: derived from the run's seed. Phases of one task with
    /// the same regions continue the same generator.
    pub generator_seed: Option<u64>,
    /// CPU time after each access, except while populating.
    pub compute_ns: u64,
    /// Rate of the accesses; `None`: no limit.
    pub pace: Option<Pace>,
}

impl WorkloadSpec for WorkingSet {
    type Keys = WorkingSetKeys;

    fn check(keys: &WorkingSetKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        check_pairs(keys, sink)?;
        let anon = match &keys.anon {
            Some(size) => {
                let pages = anon_pages(size, sink)?;
                let region = region_name(&keys.anon_region, size.span);
                let advice = phases.advice_of(&region.value.0);
                phases.use_region(&region, None, advice, pages, size.span, sink)?;
                Some((region.value.0, pages))
            }
            None => None,
        };
        let file = match &keys.file {
            Some(name) => {
                let file = phases.files.names.find(name, sink)?;
                let pages = phases.mapped(file, name, &keys.file_size, sink)?;
                let region = keys.file_region.as_ref().unwrap_or(name);
                let span = keys.file_size.as_ref().map_or(name.span, |size| size.span);
                let advice = keys.advice().into();
                phases.use_region(region, Some(file), advice, pages, span, sink)?;
                Some((file, region.value.0.clone(), pages, advice))
            }
            None => None,
        };
        let names = (
            anon.as_ref().map_or(String::new(), |anon| anon.0.clone()),
            file.as_ref().map_or(String::new(), |file| file.1.clone()),
        );
        use_generator(names, keys, phases, sink);
        let pace = Pace::check(&keys.rate, &keys.load, &keys.bad, sink)?;
        Some(WorkingSet {
            anon,
            file,
            populate: keys.populate(),
            accesses: keys.accesses().into(),
            anon_percent: keys.anon_percent().into(),
            hot_access_percent: keys.hot_access_percent().into(),
            hot_page_percent: keys.hot_page_percent().into(),
            write_percent: keys.write_percent().into(),
            generator_seed: keys.generator_seed.as_ref().map(|seed| seed.value.into()),
            compute_ns: keys.compute().0,
            pace,
        })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let anon = self.anon.as_ref().map(|(name, pages)| {
            let advice = planner.advice_of(name);
            (planner.anon_region(name, *pages, advice), *pages)
        });
        let file = self.file.as_ref().map(|(file, name, pages, advice)| {
            (planner.file_region(*file, name, *pages, *advice), *pages)
        });
        let sides = [(anon, true), (file, false)];
        let mut stages = Vec::new();
        stages.extend(sides.iter().filter_map(|(side, _)| side.map(|side| PhaseStage::Map(side.0))));
        if self.populate {
            for (side, write) in sides {
                stages.extend(side.map(|(region, pages)| {
                    planner.walk(RegionPasses::once(region, pages, write))
                }));
            }
        }
        let regions = (anon.map(|side| side.0), file.map(|side| side.0));
        let generator = planner.generator(regions, self.generator_seed);
        let set = self.clone();
        let accesses = PhaseStage::run(move |state, _| {
            Cursor::WorkingSet(hotspot(&set, [anon, file], generator, state))
        });
        let accesses = planner.paced(accesses, self.pace.as_ref());
        stages.push(computing(accesses, self.compute_ns));
        stages
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        if let Some((file, ..)) = &mut self.file {
            each(file, false);
        }
    }
}

/// Reports keys that need other keys.
fn check_pairs(keys: &WorkingSetKeys, sink: &mut ProblemSink) -> Option<()> {
    if keys.anon.is_none() && keys.file.is_none() && keys.bad.is_empty() {
        let hint = "add anon = \"1GiB\", or file = \"data\", or both";
        sink.hinted(keys.at, "workload working-set has no memory", hint);
        return None;
    }
    let needs = |key: &str, other: &str, span: SourceSpan, sink: &mut ProblemSink| {
        sink.hinted(span, format!("`{key}` needs `{other}`"), format!("add `{other}` too"));
    };
    if let (Some(region), None) = (&keys.anon_region, &keys.anon) {
        needs("anon_region", "anon", region.span, sink);
    }
    if keys.file.is_none() {
        let size = keys.file_size.as_ref().map(|size| ("file_size", size.span));
        let region = keys.file_region.as_ref().map(|region| ("file_region", region.span));
        let advice = keys.advice.as_ref().map(|advice| ("advice", advice.span));
        for (key, span) in [size, region, advice].into_iter().flatten() {
            needs(key, "file", span, sink);
        }
    }
    Some(())
}

/// Uses the generator of a pair of regions: the first phase seeds it.
fn use_generator(
    names: (String, String),
    keys: &WorkingSetKeys,
    phases: &mut Phases<'_, '_>,
    sink: &mut ProblemSink,
) {
    let seed = keys.generator_seed.as_ref();
    let value = seed.map(|seed| seed.value.0);
    let span = seed.map_or(keys.at, |seed| seed.span);
    let (first, first_span) = *phases.generators.entry(names).or_insert((value, span));
    if let Some(seed) = seed.filter(|_| first != value) {
        let hint = "leave it out: later phases on the same regions continue the generator";
        sink.push(SpannedProblem {
            span: seed.span,
            message: "the start value differs from that of an earlier phase".into(),
            hint: Some(hint.into()),
            also: Some((first_span, "the generator starts here".into())),
        });
    }
}

/// The accesses, after populating. `sides`: the anonymous region and the file region, each with its
/// pages.
fn hotspot(
    set: &WorkingSet,
    sides: [Option<(usize, u64)>; 2],
    generator: usize,
    state: &ProgramState,
) -> Hotspot {
    let hot_page_percent = u64::from(set.hot_page_percent.min(100));
    let [anon, file] = sides.map(|side| {
        side.map(|(region, pages)| WorkingSetSide::new(state.number(region), pages, hot_page_percent))
    });
    Hotspot {
        left: set.accesses,
        lcg: state.generators[generator].lcg,
        generator,
        anon,
        file,
        anon_percent: u64::from(set.anon_percent),
        hot_access_percent: u64::from(set.hot_access_percent),
        write_percent: u64::from(set.write_percent),
    }
}
