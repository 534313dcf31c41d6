//! `workload = "pulse"`: writes each page of a region, then rests, and so on.

use super::prelude::*;
use super::order::PageOrder;
use super::walk::RegionPasses;
use crate::load::check::phases::{anon_pages, region_name};

table! {
    /// Writes anonymous memory in pulses, with a rest after each.
    PulseKeys of "workload pulse" {
        /// Size of the region.
        size: Spanned<Size> => required "\"1GiB\"",
        /// Time to sleep after each pass over the region.
        rest: Spanned<Time> => required "\"1s\"",
        /// Number of passes (default 1).
        pulses: Spanned<Int<1, { u32::MAX as i64 }>> = Int(1),
        /// Name of the region; phases of a task that name the same region share it (default anon).
        region: Spanned<NameKey>,
    }
}

/// Passes over an anonymous region, each followed by a rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Region name, shared between phases.
    pub region: String,
    pub pages: u64,
    pub advice: Advice,
    pub rest_ns: u64,
    pub pulses: u32,
}

impl WorkloadSpec for Pulse {
    type Keys = PulseKeys;

    fn check(keys: &PulseKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let rest = keys.rest(sink);
        let size = keys.size(sink)?;
        let pages = anon_pages(size, sink)?;
        let region = region_name(&keys.region, size.span);
        let advice = phases.advice_of(&region.value.0);
        phases.use_region(&region, None, advice, pages, size.span, sink)?;
        let (rest_ns, pulses) = (rest?.value.0, keys.pulses().into());
        Some(Pulse { region: region.value.0, pages, advice, rest_ns, pulses })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let region = planner.anon_region(&self.region, self.pages, self.advice);
        let order = PageOrder::Sequential;
        let pass =
            RegionPasses { region, pages: self.pages, stride: 1, passes: 1, write: true, order };
        let rest = PhaseStage::Once(Op::Sleep { ns: self.rest_ns });
        vec![PhaseStage::Map(region), planner.walk(pass), rest]
    }

    fn rounds(&self) -> u32 {
        self.pulses
    }
}

#[cfg(test)]
mod tests {
    use crate::build::Builder;
    use crate::op::Op;
    use crate::workload::Program;

    #[test]
    fn each_pass_is_followed_by_a_rest() {
        let task = Builder::new().set("name", "t").set("workload", "pulse").set("size", "8KiB");
        let task = task.set("rest", "1ms").set("pulses", 2);
        let machine = Builder::new().set("machine.memory", "64MiB");
        let setup = machine.push("task", task).setup().expect("it is sound");
        let mut program = Program::new(&setup, 0, 1).unwrap();
        let next = || program.next_op().unwrap();
        let ops: Vec<Op> = std::iter::from_fn(next).collect();
        let write = |page| Op::Access { region: 0, page, write: true };
        let pulse = [write(0), write(1), Op::Sleep { ns: 1_000_000 }];
        assert_eq!(ops[2..8], [pulse, pulse].concat());
        assert_eq!(ops[8..], [Op::PhaseEnd { phase: 0 }]);
    }
}
