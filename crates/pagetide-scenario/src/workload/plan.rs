//! A task's phases, worked out before it runs: which regions it has and, for each phase, the
//! stages it consists of. All checks of a task's workloads that need no I/O are made here.

use super::modulo::Scatter;
use super::names_and_pipes::{Making, Thing};
use super::objects::{self, State, Units};
use super::ProgramError;
use crate::model::{Advice, BlockRequest, Build, HighOrder, KernelMemory};
use crate::model::{Names, Order, Pipes, Setup, Task, WorkingSet, Workload};
use crate::op::{Backing, Op};
use crate::prng::{sub_seed, Lcg, SplitMix64};
use crate::zipf::Zipf;
use pagetide_core::page_size::PageSize;
use std::path::PathBuf;
use std::sync::Arc;

/// Pages of the largest region.
pub const REGION_PAGES_MAX: u64 = 1 << 31;
/// Bytes of the largest file: as many pages, of the smallest.
pub const FILE_SIZE_MAX: u64 = REGION_PAGES_MAX * PageSize::Kib4.bytes();
/// Bytes of the longest read() or write() call of a build.
const BUILD_BLOCK: u64 = 64 << 10;
/// Bytes of a piece of headers: a header with its neighbours, and what read-ahead brings at least.
pub(super) const HEADER_PIECE: u64 = 16 << 10;
/// Exponent of the popularity of headers, in hundredths.
const HEADER_EXPONENT: u32 = 100;

/// Everything about a task that does not change while it runs, and the state that outlives a
/// phase.
#[derive(Debug)]
pub(super) struct Plan {
    /// How large the machine's pages are: those of a trace become as large.
    pub(super) page_size: PageSize,
    /// Name of the task.
    pub(super) task: String,
    pub(super) loops: u32,
    pub(super) phases: Vec<Stages>,
    pub(super) regions: Vec<Region>,
    /// One generator for each pair of regions that a working-set phase names.
    pub(super) generators: Vec<Generator>,
    /// Where this task's next write to a file goes.
    pub(super) positions: Vec<(usize, u64)>,
    /// Draws of headers, of all builds of the task.
    pub(super) headers: SplitMix64,
    /// Draws of the blocks that kernel-memory phases free.
    pub(super) blocks: SplitMix64,
    /// Slots and draws of kernel-objects phases; a cursor has them while it works.
    pub(super) objects: Option<State>,
    /// Number of the next name.
    pub(super) names: u32,
    /// Slot of the next pipe.
    pub(super) pipes: u32,
}

/// What a phase consists of.
#[derive(Debug)]
pub(super) struct Stages {
    pub(super) list: Vec<Stage>,
    /// How often the phase goes through them: the units of a build, otherwise once.
    pub(super) rounds: u32,
}

/// A named mapping of the task.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) backing: Backing,
    pub(super) pages: u64,
    pub(super) advice: Advice,
    /// Its number, once mapped.
    pub(super) number: Option<u32>,
    /// Random and Zipf draws over this region.
    pub(super) prng: SplitMix64,
}

/// A working-set generator.
#[derive(Debug)]
pub(super) struct Generator {
    anon: Option<usize>,
    file: Option<usize>,
    pub(super) lcg: Lcg,
}

/// A part of a phase. Regions are indices into [`Plan::regions`].
#[derive(Debug)]
pub(super) enum Stage {
    /// Maps a region, the first time.
    Map(usize),
    /// Unmaps it.
    Unmap(usize),
    /// A single operation.
    Once(Op),
    Walk(Walk),
    Accesses(Accesses),
    /// Pages of two regions by turns.
    Interleave {
        anon: usize,
        file: usize,
        pages: u64,
    },
    Discard {
        region: usize,
        first: u64,
        every: u64,
    },
    Take(Take),
    Churn(KernelMemory),
    Objects(Units),
    /// One unit of objects beside the stages that follow, one operation of either in turn.
    Beside(Units),
    /// The rest of that unit.
    EndBeside,
    Make(Making),
    /// Frees the blocks in the slots from 0 to below this.
    Free(u32),
    FileWrite {
        file: usize,
        bytes: Option<u64>,
        block: u64,
    },
    /// Each round of the phase goes on where the one before stopped.
    FileRead {
        file: usize,
        size: u64,
        bytes: u64,
        block: u64,
    },
    Headers {
        file: usize,
        size: u64,
        bytes: u64,
        /// Ranks of its pieces.
        zipf: Arc<Zipf>,
    },
    Trace {
        path: PathBuf,
        passes: u32,
    },
}

/// Allocations of blocks into slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Take {
    pub(super) order: u8,
    pub(super) request: BlockRequest,
    pub(super) interval_ns: u64,
    /// Each block goes into a slot of its own, from `first` to below `end`; otherwise all go into the
    /// first and are freed at once.
    pub(super) hold: bool,
    pub(super) first: u32,
    pub(super) end: u32,
}

/// Passes over a region.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) region: usize,
    pub(super) pages: u64,
    pub(super) passes: u32,
    pub(super) write: bool,
    pub(super) order: WalkOrder,
}

#[derive(Debug)]
pub(super) enum WalkOrder {
    Sequential,
    Scattered(Scatter),
    Random,
    Zipf(Arc<Zipf>, Scatter),
}

/// The accesses of a working-set phase, after populating.
#[derive(Debug)]
pub(super) struct Accesses {
    pub(super) count: u64,
    /// (region, pages).
    pub(super) anon: Option<(usize, u64)>,
    pub(super) file: Option<(usize, u64)>,
    pub(super) anon_percent: u64,
    pub(super) hot_access_percent: u64,
    pub(super) hot_page_percent: u64,
    pub(super) write_percent: u64,
    /// Index into [`Plan::generators`].
    pub(super) generator: usize,
}

impl Plan {
    pub(super) fn new(setup: &Setup, task: usize, seed: u64) -> Result<Self, ProgramError> {
        let task = setup.tasks.get(task).ok_or(ProgramError::NoSuchTask(task))?;
        let plan = Plan {
            page_size: setup.machine.page_size,
            task: task.name.clone(),
            loops: task.loops,
            phases: Vec::with_capacity(task.phases.len()),
            regions: Vec::new(),
            generators: Vec::new(),
            positions: Vec::new(),
            // A name that no region gives: `#` is in no name of a scenario.
            headers: SplitMix64::new(sub_seed(seed, &format!("{}#headers", task.name))),
            blocks: SplitMix64::new(sub_seed(seed, &format!("{}#blocks", task.name))),
            objects: Some(State::new(SplitMix64::new(sub_seed(
                seed,
                &format!("{}#objects", task.name),
            )))),
            names: 0,
            pipes: 0,
        };
        let mut planner = Planner { setup, task, seed, plan, zipfs: Vec::new() };
        for (index, phase) in task.phases.iter().enumerate() {
            let stages = planner.stages(index as u32, &phase.workload).map_err(|problem| {
                ProgramError::Workload {
                    task: task.name.clone(),
                    phase: phase.name.clone(),
                    problem,
                }
            })?;
            let rounds = match &phase.workload {
                Workload::Build(build) => build.units,
                _ => 1,
            };
            planner.plan.phases.push(Stages { list: stages, rounds });
        }
        Ok(planner.plan)
    }
}

struct Planner<'a> {
    setup: &'a Setup,
    task: &'a Task,
    seed: u64,
    plan: Plan,
    /// Tables already made, by (pages, exponent).
    zipfs: Vec<(u64, u32, Arc<Zipf>)>,
}

impl Planner<'_> {
    fn stages(&mut self, phase: u32, workload: &Workload) -> Result<Vec<Stage>, String> {
        match workload {
            Workload::FileWrite { file, bytes, block } => {
                self.check_block(*block)?;
                self.append_to(*file)?;
                Ok(vec![Stage::FileWrite { file: *file, bytes: *bytes, block: *block }])
            }
            Workload::FileRead { file, bytes, block } => {
                let size = self.file_size(*file)?;
                self.check_block(*block)?;
                if size == 0 && *bytes > 0 {
                    return Err("the file it reads is empty".into());
                }
                Ok(vec![Stage::FileRead { file: *file, size, bytes: *bytes, block: *block }])
            }
            Workload::MappedRead { file, pages, order, advice, passes, region } => {
                let region = self.file_region(*file, region, *pages, *advice)?;
                let order = self.order(*order, *pages)?;
                let walk = Walk { region, pages: *pages, passes: *passes, write: false, order };
                Ok(vec![Stage::Map(region), Stage::Walk(walk)])
            }
            Workload::Touch { region, pages, passes, write, order, advice } => {
                let region = self.region(region, Backing::Anon, *pages, *advice)?;
                let order = self.order(*order, *pages)?;
                let walk = Walk { region, pages: *pages, passes: *passes, write: *write, order };
                Ok(vec![Stage::Map(region), Stage::Walk(walk)])
            }
            Workload::Interleave { region, pages, file } => {
                let advice = self.advice_of(region);
                let anon = self.region(region, Backing::Anon, *pages, advice)?;
                // A mapping of this phase alone: `#` is in no name of a scenario.
                let name = format!("#interleave{phase}");
                let file = self.file_region(*file, &name, *pages, Advice::Random)?;
                let interleave = Stage::Interleave { anon, file, pages: *pages };
                Ok(vec![Stage::Map(anon), Stage::Map(file), interleave, Stage::Unmap(file)])
            }
            Workload::Discard { region, first, every } => {
                let known = self.plan.regions.iter().position(|known| known.name == *region);
                let known =
                    known.filter(|known| self.plan.regions[*known].backing == Backing::Anon);
                let known = known.ok_or("no phase before it maps its anonymous region")?;
                Ok(vec![Stage::Discard { region: known, first: *first, every: *every }])
            }
            Workload::HighOrder(high_order) => {
                let HighOrder { order, attempts, interval_ns, request, hold } = *high_order;
                let take = Take { order, request, interval_ns, hold, first: 0, end: attempts };
                let take = Stage::Take(take);
                Ok(if hold { vec![take, Stage::Free(attempts)] } else { vec![take] })
            }
            Workload::KernelMemory(memory) => {
                if memory.blocks == 0 {
                    return Err("it holds no blocks".into());
                }
                let used = memory.count.map_or(memory.blocks, |count| {
                    u32::try_from(count).unwrap_or(u32::MAX).min(memory.blocks)
                });
                Ok(vec![Stage::Churn(*memory), Stage::Free(used)])
            }
            Workload::KernelObjects(objects) => {
                let units = objects::units(self.setup, objects)?;
                Ok(units.into_iter().map(Stage::Objects).collect())
            }
            Workload::Names(Names { make, keep_percent, missing }) => {
                let thing = if *missing { Thing::Missing } else { Thing::File };
                let (make, keep_percent) = (*make, *keep_percent);
                Ok(vec![Stage::Make(Making { thing, make, keep_percent })])
            }
            Workload::Pipes(Pipes { make, keep_percent }) => {
                let (make, keep_percent) = (*make, *keep_percent);
                Ok(vec![Stage::Make(Making { thing: Thing::Pipe, make, keep_percent })])
            }
            Workload::WorkingSet(set) => self.working_set(set),
            Workload::Trace { path, passes } => {
                Ok(vec![Stage::Trace { path: path.clone(), passes: *passes }])
            }
            Workload::Build(build) => self.build(build),
            Workload::WriteControl { .. }
            | Workload::CreateGroup { .. }
            | Workload::RemoveGroup { .. }
            | Workload::JoinGroup { .. } => Ok(vec![Stage::Once(Op::Group { phase })]),
            Workload::Compute { ns } => Ok(vec![Stage::Once(Op::Compute { ns: *ns })]),
            Workload::Sleep { ns } => Ok(vec![Stage::Once(Op::Sleep { ns: *ns })]),
        }
    }

    /// The stages of one unit.
    fn build(&mut self, build: &Build) -> Result<Vec<Stage>, String> {
        if build.units == 0 {
            return Err("it has no units".into());
        }
        let mut stages = Vec::with_capacity(9);
        if let Some(mix) = &build.mix {
            stages.push(Stage::Beside(objects::one_unit(self.setup, mix)?));
        }
        let block = BUILD_BLOCK;
        let stacks = u32::from(build.stack_order > 0);
        let blocks = stacks + build.kernel_pages;
        for (order, first, end) in [(build.stack_order, 0, stacks), (0, stacks, blocks)] {
            let request = BlockRequest::Kernel;
            let take = Take { order, request, interval_ns: 0, hold: true, first, end };
            stages.extend((first < end).then_some(Stage::Take(take)));
        }
        if let Some((file, bytes)) = build.sources {
            let size = self.file_size(file)?;
            if size == 0 && bytes > 0 {
                return Err("its file of sources is empty".into());
            }
            stages.push(Stage::FileRead { file, size, bytes, block });
        }
        if let Some((file, bytes)) = build.headers {
            let size = self.file_size(file)?;
            if size == 0 {
                return Err("its file of headers is empty".into());
            }
            let zipf = self.zipf(size.div_ceil(HEADER_PIECE), HEADER_EXPONENT)?;
            stages.push(Stage::Headers { file, size, bytes, zipf });
        }
        stages.push(Stage::Trace { path: build.trace.clone(), passes: 1 });
        if let Some((file, bytes)) = build.objects {
            self.append_to(file)?;
            stages.push(Stage::FileWrite { file, bytes: Some(bytes), block });
        }
        stages.extend((blocks > 0).then_some(Stage::Free(blocks)));
        stages.extend(build.mix.is_some().then_some(Stage::EndBeside));
        Ok(stages)
    }

    /// Sees to it that the task has a position in a file: at its end, for the first write.
    fn append_to(&mut self, file: usize) -> Result<(), String> {
        let size = self.file_size(file)?;
        if !self.plan.positions.iter().any(|(known, _)| *known == file) {
            self.plan.positions.push((file, size));
        }
        Ok(())
    }

    fn working_set(&mut self, set: &WorkingSet) -> Result<Vec<Stage>, String> {
        let anon = match &set.anon {
            Some((name, pages)) => {
                let advice = self.advice_of(name);
                Some((self.region(name, Backing::Anon, *pages, advice)?, *pages))
            }
            None => None,
        };
        let file = match &set.file {
            Some((file, name, pages, advice)) => {
                Some((self.file_region(*file, name, *pages, *advice)?, *pages))
            }
            None => None,
        };
        if anon.is_none() && file.is_none() {
            return Err("it has neither an anonymous nor a file region".into());
        }
        let mut stages = Vec::new();
        stages.extend(anon.map(|(region, _)| Stage::Map(region)));
        stages.extend(file.map(|(region, _)| Stage::Map(region)));
        if set.populate {
            for (side, write) in [(anon, true), (file, false)] {
                stages.extend(side.map(|(region, pages)| {
                    let order = WalkOrder::Sequential;
                    Stage::Walk(Walk { region, pages, passes: 1, write, order })
                }));
            }
        }
        let generator = self.generator(anon.map(|a| a.0), file.map(|f| f.0), set.generator_seed);
        stages.push(Stage::Accesses(Accesses {
            count: set.accesses,
            anon,
            file,
            anon_percent: u64::from(set.anon_percent),
            hot_access_percent: u64::from(set.hot_access_percent),
            hot_page_percent: u64::from(set.hot_page_percent.min(100)),
            write_percent: u64::from(set.write_percent),
            generator,
        }));
        Ok(stages)
    }

    /// The generator of a pair of regions; the first phase that names the pair seeds it.
    fn generator(&mut self, anon: Option<usize>, file: Option<usize>, seed: Option<u64>) -> usize {
        let known = self.plan.generators.iter().position(|g| g.anon == anon && g.file == file);
        known.unwrap_or_else(|| {
            let name = |region: Option<usize>| region.map_or("", |r| &self.plan.regions[r].name);
            let name = format!("{}/{}/{}", self.task.name, name(anon), name(file));
            let lcg = Lcg::new(seed.unwrap_or_else(|| sub_seed(self.seed, &name)));
            self.plan.generators.push(Generator { anon, file, lcg });
            self.plan.generators.len() - 1
        })
    }

    /// The advice that an earlier phase has given on a region.
    fn advice_of(&self, region: &str) -> Advice {
        let known = self.plan.regions.iter().find(|known| known.name == region);
        known.map_or(Advice::Normal, |known| known.advice)
    }

    fn file_region(
        &mut self,
        file: usize,
        name: &str,
        pages: u64,
        advice: Advice,
    ) -> Result<usize, String> {
        let size = self.file_size(file)?;
        if pages > self.setup.machine.page_size.pages_for(size) {
            return Err(format!("it maps {pages} pages of a file of {size} bytes"));
        }
        self.region(name, Backing::File(file), pages, advice)
    }

    /// The region called `name`, grown to the largest size that a phase asks for.
    fn region(
        &mut self,
        name: &str,
        backing: Backing,
        pages: u64,
        advice: Advice,
    ) -> Result<usize, String> {
        if pages == 0 {
            return Err(format!("region `{name}` has no pages"));
        }
        if pages > REGION_PAGES_MAX {
            return Err(format!("region `{name}` has more than {REGION_PAGES_MAX} pages"));
        }
        let Some(index) = self.plan.regions.iter().position(|region| region.name == name) else {
            let prng = SplitMix64::new(sub_seed(self.seed, &format!("{}/{name}", self.task.name)));
            let name = name.to_owned();
            self.plan.regions.push(Region { name, backing, pages, advice, number: None, prng });
            return Ok(self.plan.regions.len() - 1);
        };
        let region = &mut self.plan.regions[index];
        if region.backing != backing {
            return Err(format!("region `{name}` is backed by something else in another phase"));
        }
        if region.advice != advice {
            return Err(format!("region `{name}` has another advice in another phase"));
        }
        region.pages = region.pages.max(pages);
        Ok(index)
    }

    fn order(&mut self, order: Order, pages: u64) -> Result<WalkOrder, String> {
        match order {
            Order::Sequential => Ok(WalkOrder::Sequential),
            Order::Scattered => Ok(WalkOrder::Scattered(Scatter::new(pages))),
            Order::Random => Ok(WalkOrder::Random),
            Order::Zipf { exponent_hundredths } => {
                let zipf = self.zipf(pages, exponent_hundredths)?;
                Ok(WalkOrder::Zipf(zipf, Scatter::new(pages)))
            }
        }
    }

    fn zipf(&mut self, pages: u64, exponent: u32) -> Result<Arc<Zipf>, String> {
        let known = self.zipfs.iter().find(|(p, e, _)| (*p, *e) == (pages, exponent));
        if let Some((_, _, zipf)) = known {
            return Ok(Arc::clone(zipf));
        }
        let zipf = Zipf::new(pages, exponent)
            .ok_or_else(|| format!("{exponent} hundredths is no Zipf exponent"))?;
        let zipf = Arc::new(zipf);
        self.zipfs.push((pages, exponent, Arc::clone(&zipf)));
        Ok(zipf)
    }

    fn file_size(&self, file: usize) -> Result<u64, String> {
        let file = self.setup.files.get(file).ok_or("it names a file that does not exist")?;
        Ok(file.size)
    }

    fn check_block(&self, block: u64) -> Result<(), String> {
        if block == 0 {
            return Err("its block is 0 bytes".into());
        }
        Ok(())
    }
}
