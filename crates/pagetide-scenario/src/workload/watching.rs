//! Work of all watchers: memory of their own that they use at each look, a look, and a rest.
//!
//! A look ([`Op::Watch`]) reads, decides and acts in the world. The rest ([`Op::WatchRest`]) lasts
//! until the time that the decision gave.

use super::prelude::*;

/// Name of a watcher's region.
const REGION: &str = "watcher";

/// The parts that watchers of all kinds have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatcherBase {
    /// Pages of its own that it uses at each look.
    pub footprint_pages: u64,
    /// It has called mlockall(MCL_ONFAULT).
    pub locked: bool,
    /// CPU time of a look in addition to the time for reading.
    pub compute_ns: u64,
}

impl WatcherBase {
    pub(super) fn check(
        footprint: (Size, Option<&Spanned<Size>>),
        locked: bool,
        compute: Time,
        phases: &mut Phases<'_, '_>,
        sink: &mut ProblemSink,
    ) -> Option<WatcherBase> {
        let span = footprint.1.map_or_else(Default::default, |size| size.span);
        let footprint_pages = sink.page_size.pages_for(footprint.0 .0).max(1);
        let region = Spanned { value: NameKey(REGION.to_owned()), span };
        phases.use_region(&region, None, Advice::Normal, footprint_pages, span, sink)?;
        Some(WatcherBase { footprint_pages, locked, compute_ns: compute.0 })
    }

    pub(super) fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let WatcherBase { footprint_pages: pages, locked, .. } = *self;
        let region = planner.anon_region(REGION, pages, Advice::Normal);
        let looks = PhaseStage::run(move |state, _| {
            let step = if locked { WatcherOp::Lock } else { WatcherOp::Touch(0) };
            Box::new(WatcherLoop { region: state.number(region), pages, phase, step }).into()
        });
        vec![PhaseStage::Map(region), looks]
    }
}

#[derive(Clone, Copy, Debug)]
enum WatcherOp {
    Lock,
    Touch(u64),
    Look,
    Rest,
}

/// Generates looks without end.
#[derive(Debug)]
struct WatcherLoop {
    region: u32,
    pages: u64,
    phase: u32,
    step: WatcherOp,
}

impl Generator for WatcherLoop {
    fn next_op(&mut self) -> Option<Op> {
        let (region, pages, phase) = (self.region, self.pages, self.phase);
        let (op, next) = match self.step {
            WatcherOp::Lock => {
                let how = crate::names::LockKind::OnFault;
                (Op::Lock { region, page: 0, pages, how }, WatcherOp::Touch(0))
            }
            WatcherOp::Touch(page) => {
                let next =
                    if page + 1 < pages { WatcherOp::Touch(page + 1) } else { WatcherOp::Look };
                (Op::Access { region, page, write: true }, next)
            }
            WatcherOp::Look => (Op::Watch { phase }, WatcherOp::Rest),
            WatcherOp::Rest => (Op::WatchRest, WatcherOp::Touch(0)),
        };
        self.step = next;
        Some(op)
    }
}
