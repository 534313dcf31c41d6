//! `workload = "remove-group"`: removes a group (rmdir).

use super::prelude::*;

table! {
    /// Removes a group.
    Keys of "workload remove-group" {
        /// Group to remove; for a group with copies, one copy: `NAME.0`.
        target: At<Target> => required "\"batch\"",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoveGroup {
    /// Index into [`Setup::groups`](crate::model::Setup::groups).
    pub group: usize,
}

impl Kind for RemoveGroup {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        Some(RemoveGroup { group: phases.scene.groups.one(keys.target(sink)?, sink)? })
    }

    fn stages(&self, phase: u32, _: &mut Planner<'_>) -> Vec<Stage> {
        vec![Stage::Once(Op::Group { phase })]
    }
}
