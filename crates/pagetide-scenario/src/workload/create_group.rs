//! `workload = "create-group"`: creates a group (mkdir) and writes its controls.

use super::prelude::*;

table! {
    /// Creates a group that does not exist.
    CreateGroupKeys of "workload create-group" {
        /// Group to create; for a group with copies, one copy: `NAME.0`.
        target: Spanned<GroupTarget> => required "\"batch\"",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateGroup {
    /// Index into [`Setup::groups`](crate::model::Setup::groups).
    pub group: usize,
}

impl WorkloadSpec for CreateGroup {
    type Keys = CreateGroupKeys;

    fn check(keys: &CreateGroupKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        Some(CreateGroup { group: phases.scene.groups.create(keys.target(sink)?, sink)? })
    }

    fn stages(&self, phase: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![PhaseStage::Once(Op::Group { phase })]
    }
}
