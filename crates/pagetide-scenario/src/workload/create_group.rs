//! `workload = "create-group"`: creates a group (mkdir) and writes its controls.

use super::prelude::*;

table! {
    /// Creates a group that does not exist.
    Keys of "workload create-group" {
        /// Group to create; for a group with copies, one copy: `NAME.0`.
        target: At<Target> => required "\"batch\"",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateGroup {
    /// Index into [`Setup::groups`](crate::model::Setup::groups).
    pub group: usize,
}

impl Kind for CreateGroup {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        Some(CreateGroup { group: phases.scene.groups.create(keys.target(sink)?, sink)? })
    }

    fn stages(&self, phase: u32, _: &mut Planner<'_>) -> Vec<Stage> {
        vec![Stage::Once(Op::Group { phase })]
    }
}
