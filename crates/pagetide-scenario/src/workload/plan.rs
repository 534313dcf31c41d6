//! The plan of a task, made before it runs: the regions of the task and the stages of each phase.
//! Every checked setup has a plan.

use super::cursor::Cursor;
use super::making::MadeObjects;
use super::objects::Units;
use super::state::{Accesses, ProgramState, TaskRegion};
use crate::draws::prng::{sub_seed, Lcg, SplitMix64};
use crate::draws::zipf::Zipf;
use crate::model::object_mix::KernelCache;
use crate::op::Advice;
use crate::op::{Op, RegionBacking};
use pagetide_core::units::page_size::PageSize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The stages of a phase.
#[derive(Debug)]
pub(super) struct Stages {
    pub(super) list: Vec<PhaseStage>,
    /// Number of times that the phase runs through its stages.
    pub(super) rounds: u32,
}

/// A step of a phase. Regions are indices into [`ProgramState::regions`].
#[derive(Debug)]
pub(crate) enum PhaseStage {
    /// Maps a region that is not yet mapped.
    Map(usize),
    Unmap(usize),
    Once(Op),
    /// The operations of a generator.
    Run(GeneratorStage),
    /// Starts one unit of objects: the following stages alternate with it, operation by operation.
    Beside(Units),
    /// Runs the rest of that unit.
    EndBeside,
    /// Replays a page trace.
    Trace {
        path: PathBuf,
        passes: u32,
        advice: Option<Advice>,
    },
}

/// Creates a generator for a round of the phase.
type GeneratorFactory = dyn Fn(&mut ProgramState, u32) -> Cursor + Send + Sync;

/// Creates the generator of a stage.
#[derive(Clone)]
pub(crate) struct GeneratorStage(Arc<GeneratorFactory>);

impl fmt::Debug for GeneratorStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Run")
    }
}

impl GeneratorStage {
    pub(super) fn begin(&self, state: &mut ProgramState, round: u32) -> Cursor {
        self.0(state, round)
    }
}

impl PhaseStage {
    /// `begin` gets the task's state and the round of the phase.
    pub(super) fn run(
        begin: impl Fn(&mut ProgramState, u32) -> Cursor + Send + Sync + 'static,
    ) -> PhaseStage {
        PhaseStage::Run(GeneratorStage(Arc::new(begin)))
    }
}

/// Makes the stages of a task.
pub(crate) struct Planner<'a> {
    pub(super) page_size: PageSize,
    /// Sizes of the setup's files.
    pub(super) file_sizes: Vec<u64>,
    pub(super) caches: &'a [KernelCache],
    pub(super) state: ProgramState,
    /// Files and pipes that phases make, by phase.
    pub(super) made: BTreeMap<u32, MadeObjects>,
    /// Tables already made, by (pages, exponent).
    zipfs: Vec<(u64, u32, Arc<Zipf>)>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        page_size: PageSize,
        file_sizes: Vec<u64>,
        caches: &'a [KernelCache],
        state: ProgramState,
    ) -> Planner<'a> {
        Planner { page_size, file_sizes, caches, state, made: BTreeMap::new(), zipfs: Vec::new() }
    }

    /// The generator of a pair of regions; the first phase that names the pair seeds it.
    pub(super) fn generator(
        &mut self,
        regions: (Option<usize>, Option<usize>),
        seed: Option<u64>,
    ) -> usize {
        let ProgramState { generators, regions: all, task, seed: of_run, .. } = &mut self.state;
        let known = generators.iter().position(|known| known.regions == regions);
        known.unwrap_or_else(|| {
            let name = |region: Option<usize>| region.map_or("", |r| &all[r].name);
            let name = format!("{task}/{}/{}", name(regions.0), name(regions.1));
            let lcg = Lcg::new(seed.unwrap_or_else(|| sub_seed(*of_run, &name)));
            generators.push(Accesses { regions, lcg });
            generators.len() - 1
        })
    }

    /// The advice that an earlier phase gave on a region.
    pub(super) fn advice_of(&self, region: &str) -> Advice {
        let known = self.state.regions.iter().find(|known| known.name == region);
        known.map_or(Advice::Normal, |known| known.advice)
    }

    /// A mapping of a file.
    pub(super) fn file_region(
        &mut self,
        file: usize,
        name: &str,
        pages: u64,
        advice: Advice,
    ) -> usize {
        assert!(pages <= self.page_size.pages_for(self.file_sizes[file]), "of a file as long");
        self.region(name, RegionBacking::File(file), pages, advice)
    }

    /// An anonymous region.
    pub(super) fn anon_region(&mut self, name: &str, pages: u64, advice: Advice) -> usize {
        self.region(name, RegionBacking::Anon, pages, advice)
    }

    /// The region of an earlier phase.
    pub(super) fn known_region(&self, name: &str) -> usize {
        let known = self.state.regions.iter().position(|known| known.name == name);
        known.expect("a phase before it maps the region")
    }

    /// The region called `name`; it grows to the largest size that a phase requests.
    fn region(&mut self, name: &str, backing: RegionBacking, pages: u64, advice: Advice) -> usize {
        let ProgramState { regions, task, seed, .. } = &mut self.state;
        if let Some(index) = regions.iter().position(|region| region.name == name) {
            let known = &mut regions[index];
            let what = (known.backing, known.advice);
            assert_eq!(what, (backing, advice), "phases agree about the region `{name}`");
            known.pages = known.pages.max(pages);
            return index;
        }
        let prng = SplitMix64::new(sub_seed(*seed, &format!("{task}/{name}")));
        let name = name.to_owned();
        regions.push(TaskRegion { name, backing, pages, advice, number: None, prng });
        regions.len() - 1
    }

    pub(super) fn zipf(&mut self, pages: u64, exponent: u32) -> Arc<Zipf> {
        let known = self.zipfs.iter().find(|(p, e, _)| (*p, *e) == (pages, exponent));
        if let Some((_, _, zipf)) = known {
            return Arc::clone(zipf);
        }
        let zipf = Arc::new(Zipf::new(pages, exponent).expect("an exponent within its bounds"));
        self.zipfs.push((pages, exponent, Arc::clone(&zipf)));
        zipf
    }
}
