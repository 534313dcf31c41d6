//! `workload = "write-control"`: writes a text to a control file, as `echo TEXT > FILE` does.

use super::prelude::*;
use crate::load::raw::{ControlName, ControlText};

table! {
    /// Writes to a control file.
    Keys of "workload write-control" {
        /// Name of the file, as the kernel spells it.
        control: At<ControlName> => required "\"memory.reclaim\"",
        /// What to write.
        text: At<ControlText> => required "\"100M\"",
        /// The group whose file it is (default: none, the file is the machine's).
        target: At<Name>,
    }
}

/// A write to a control file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteControl {
    /// Index into [`Setup::groups`](crate::model::Setup::groups); `None`: the machine's
    /// (`vm.swappiness`).
    pub group: Option<usize>,
    /// Name of the file: `memory.reclaim`.
    pub control: String,
    /// What to write.
    pub text: String,
}

impl Kind for WriteControl {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let (control, text) = (keys.control(sink), keys.text(sink));
        let group = phases.group(&keys.target, sink)?;
        let (control, text) = (control?, text?);
        let control = At { value: control.value.0.clone(), span: control.span };
        let text = At { value: text.value.0.clone(), span: text.span };
        // A target that cannot be read may be the right one.
        if keys.target.is_some() || !keys.bad.contains(&"target") {
            let target = keys.target.as_ref().map(|target| target.span);
            phases.scene.check_write(&control, &text, target, sink);
        }
        Some(WriteControl { group, control: control.value, text: text.value })
    }

    fn stages(&self, phase: u32, _: &mut Planner<'_>) -> Vec<Stage> {
        vec![Stage::Once(Op::Group { phase })]
    }
}
