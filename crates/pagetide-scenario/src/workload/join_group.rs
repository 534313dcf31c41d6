//! `workload = "join-group"`: the task moves itself into a group (`echo $$ > cgroup.procs`). Its
//! memory stays charged to the old group.

use super::prelude::*;

table! {
    /// Moves the task into a group.
    JoinGroupKeys of "workload join-group" {
        /// Group to join; for a group with copies, one copy: `NAME.0` (default: the root).
        target: Spanned<GroupTarget>,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinGroup {
    /// Index into [`Setup::groups`](crate::model::Setup::groups); `None` is the root.
    pub group: Option<usize>,
}

impl WorkloadSpec for JoinGroup {
    type Keys = JoinGroupKeys;

    fn check(keys: &JoinGroupKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        Some(JoinGroup { group: phases.group(&keys.target, sink)? })
    }

    fn stages(&self, phase: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![PhaseStage::Once(Op::Group { phase })]
    }
}
