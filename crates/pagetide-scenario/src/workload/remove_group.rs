//! `workload = "remove-group"`: removes a group (rmdir).

use super::prelude::*;

table! {
    /// Removes a group.
    RemoveGroupKeys of "workload remove-group" {
        /// Group to remove; for a group with copies, one copy: `NAME.0`.
        target: Spanned<GroupTarget> => required "\"batch\"",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoveGroup {
    /// Index into [`Setup::groups`](crate::model::Setup::groups).
    pub group: usize,
}

impl WorkloadSpec for RemoveGroup {
    type Keys = RemoveGroupKeys;

    fn check(keys: &RemoveGroupKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        Some(RemoveGroup { group: phases.scene.groups.find_one(keys.target(sink)?, sink)? })
    }

    fn stages(&self, phase: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![PhaseStage::Once(Op::Group { phase })]
    }
}
