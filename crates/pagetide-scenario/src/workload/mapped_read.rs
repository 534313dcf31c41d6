//! `workload = "mapped-read"`: reads a byte of each page of a shared mapping (mapped-file-stream).

use super::prelude::*;
use super::computing::computing;
use super::order::PageOrder;
use super::walk::{check_order, check_stride, RegionPasses};
use crate::load::decode::Hundredths;
use crate::names::{AdviceKind, OrderKind};

table! {
    /// Reads a mapped file.
    MappedReadKeys of "workload mapped-read" {
        /// File to map.
        file: Spanned<NameKey> => required "\"data\"",
        /// Bytes to map, from its start (default: all).
        size: Spanned<Size>,
        /// Order of the pages (default sequential).
        order: Spanned<OrderKind> = OrderKind::Sequential,
        /// Exponent of order zipf (default 1.0).
        exponent: Spanned<Hundredths>,
        /// Distance between two pages that are read, in whole pages (default: one page).
        stride: Spanned<Size>,
        /// Advice on the mapping (default normal).
        advice: Spanned<AdviceKind> = AdviceKind::Normal,
        /// Number of passes over the mapping (default 1).
        passes: Spanned<Int<0, { u32::MAX as i64 }>> = Int(1),
        /// CPU time of the program after each access (default 0).
        compute: Spanned<Time> = Time(0),
        /// Name of the mapping, shared by phases that name the same region (default: the file).
        region: Spanned<NameKey>,
    }
}

/// Passes over a mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRead {
    /// Index into [`Setup::files`](crate::model::Setup::files).
    pub file: usize,
    /// Pages of the mapping, from page 0.
    pub pages: u64,
    /// Distance between two pages that are read.
    pub stride: u64,
    pub order: PageOrder,
    /// Advice given after mapping.
    pub advice: Advice,
    /// Whole passes (for `Random` and `Zipf`: as many draws as a pass reads pages).
    pub passes: u32,
    /// CPU time after each access.
    pub compute_ns: u64,
    /// Region name: phases of one task with the same name share one mapping.
    pub region: String,
}

impl WorkloadSpec for MappedRead {
    type Keys = MappedReadKeys;

    fn check(keys: &MappedReadKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let order = check_order(keys.order(), &keys.exponent, sink);
        let stride = check_stride(&keys.stride, sink);
        let name = keys.file(sink)?;
        let file = phases.files.names.find(name, sink)?;
        let pages = phases.mapped(file, name, &keys.size, sink)?;
        let region = keys.region.as_ref().unwrap_or(name);
        let advice = keys.advice().into();
        let span = keys.size.as_ref().map_or(region.span, |size| size.span);
        phases.use_region(region, Some(file), advice, pages, span, sink)?;
        let (region, passes) = (region.value.0.clone(), keys.passes().into());
        Some(MappedRead {
            file,
            pages,
            stride: stride?,
            order: order?,
            advice,
            passes,
            compute_ns: keys.compute().0,
            region,
        })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let region = planner.file_region(self.file, &self.region, self.pages, self.advice);
        let MappedRead { pages, stride, passes, order, .. } = *self;
        let walk = planner.walk(RegionPasses { region, pages, stride, passes, write: false, order });
        vec![PhaseStage::Map(region), computing(walk, self.compute_ns)]
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        each(&mut self.file, false);
    }
}
