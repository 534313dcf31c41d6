//! `workload = "touch"`: writes or reads each page of an anonymous region (usemem).

use super::prelude::*;
use super::computing::computing;
use super::load_curve::LoadPoint;
use super::paced::Pace;
use super::order::PageOrder;
use super::walk::{check_order, check_stride, RegionPasses};
use crate::load::check::phases::{anon_pages, region_name};
use crate::load::decode::{Hundredths, Rate};
use crate::names::{HugeAdviceKind, OrderKind};

table! {
    /// Touches anonymous memory.
    TouchKeys of "workload touch" {
        /// Size of the region.
        size: Spanned<Size> => required "\"1GiB\"",
        /// Writes if true, reads if false (default true).
        write: Spanned<bool> = true,
        /// Order of the pages (default sequential).
        order: Spanned<OrderKind> = OrderKind::Sequential,
        /// Exponent of order zipf (default 1.0).
        exponent: Spanned<Hundredths>,
        /// Distance between two pages that are touched, in whole pages (default: one page).
        stride: Spanned<Size>,
        /// Number of passes over the region (default 1).
        passes: Spanned<Int<0, { u32::MAX as i64 }>> = Int(1),
        /// Name of the region; phases of a task that name the same region share it (default anon).
        region: Spanned<NameKey>,
        /// Advice on the region about huge pages (default normal).
        advice: Spanned<HugeAdviceKind>,
        /// CPU time of the program after each access (default 0).
        compute: Spanned<Time> = Time(0),
        /// Rate in bytes or pages per second; an access counts as a page (default: no limit).
        rate: Spanned<Rate>,
        /// Share of the rate over time (default: the full rate).
        load: Spanned<Vec<LoadPoint>>,
    }
}

/// Passes over an anonymous region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchWorkload {
    /// Region name, shared between phases.
    pub region: String,
    pub pages: u64,
    /// Distance between two pages that are touched.
    pub stride: u64,
    /// Whole passes (for `Random` and `Zipf`: as many draws as a pass touches pages).
    pub passes: u32,
    pub write: bool,
    pub order: PageOrder,
    /// Advice about huge pages, given after mapping.
    pub advice: Advice,
    /// CPU time after each access.
    pub compute_ns: u64,
    /// Rate of the accesses; `None`: no limit.
    pub pace: Option<Pace>,
}

impl WorkloadSpec for TouchWorkload {
    type Keys = TouchKeys;

    fn check(keys: &TouchKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let order = check_order(keys.order(), &keys.exponent, sink);
        let stride = check_stride(&keys.stride, sink);
        let pace = Pace::check(&keys.rate, &keys.load, &keys.bad, sink);
        let size = keys.size(sink)?;
        let pages = anon_pages(size, sink)?;
        let region = region_name(&keys.region, size.span);
        let advice = match &keys.advice {
            None => phases.advice_of(&region.value.0),
            Some(advice) => advice.value.into(),
        };
        phases.use_region(&region, None, advice, pages, size.span, sink)?;
        let (passes, write) = (keys.passes().into(), keys.write());
        let (region, order, stride, pace) = (region.value.0, order?, stride?, pace?);
        let compute_ns = keys.compute().0;
        Some(TouchWorkload { region, pages, stride, passes, write, order, advice, compute_ns, pace })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let region = planner.anon_region(&self.region, self.pages, self.advice);
        let TouchWorkload { pages, stride, passes, write, order, .. } = *self;
        let walk = planner.walk(RegionPasses { region, pages, stride, passes, write, order });
        let walk = planner.paced(walk, self.pace.as_ref());
        vec![PhaseStage::Map(region), computing(walk, self.compute_ns)]
    }
}
