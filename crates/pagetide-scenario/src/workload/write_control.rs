//! `workload = "write-control"`: writes a text to a control file, like `echo TEXT > FILE`.

use super::prelude::*;
use crate::load::raw::{ControlName, ControlText};
use pagetide_core::ageing::generations::command::LruGenWrite;
use pagetide_core::control::{ControlError, ControlWrite, GroupControlWrite};
use pagetide_core::swap::zram::ZramWrite;
use pagetide_core::units::page_size::PageSize;

table! {
    /// Writes to a control file.
    WriteControlKeys of "workload write-control" {
        /// Name of the file, as the kernel spells it.
        control: Spanned<ControlName> => required "\"memory.reclaim\"",
        /// Text to write.
        text: Spanned<ControlText> => required "\"100M\"",
        /// Group of the file, or one copy, `NAME.0` (default: none, for a file of the machine).
        target: Spanned<GroupTarget>,
    }
}

/// A write to a control file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetWrite {
    Machine(ControlWrite),
    /// To a file of a group (index into [`Setup::groups`](crate::model::Setup::groups)).
    Group(usize, GroupControlWrite),
    /// To a file of all zram devices.
    Zram(ZramWrite),
    /// Commands to `lru_gen`.
    LruGen(LruGenWrite),
}

impl TargetWrite {
    /// The value of a text for the control file `name` of a group, or of a machine.
    /// Fails if the kernel would refuse the write.
    pub fn read(
        group: Option<usize>,
        name: &str,
        text: &str,
        page_size: PageSize,
    ) -> Result<TargetWrite, ControlError> {
        Ok(match group {
            None if name == LruGenWrite::NAME => TargetWrite::LruGen(LruGenWrite::read(text)?),
            None => match ZramWrite::read(name, text) {
                Some(write) => TargetWrite::Zram(write?),
                None => TargetWrite::Machine(ControlWrite::read(name, text, page_size)?),
            },
            Some(group) => TargetWrite::Group(group, GroupControlWrite::read(name, text)?),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteControl {
    pub write: TargetWrite,
}

impl WorkloadSpec for WriteControl {
    type Keys = WriteControlKeys;

    fn check(keys: &WriteControlKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let (control, text) = (keys.control(sink), keys.text(sink));
        let group = phases.group(&keys.target, sink)?;
        let (control, text) = (control?, text?);
        let control = Spanned { value: control.value.0.clone(), span: control.span };
        let text = Spanned { value: text.value.0.clone(), span: text.span };
        // An unreadable target may be valid: do not report it as missing.
        if keys.target.is_none() && keys.bad.contains(&"target") {
            return None;
        }
        let target = keys.target.as_ref().map(|target| target.span).zip(group);
        let write = phases.scene.task_write((&control, &text), target, sink)?;
        Some(WriteControl { write })
    }

    fn stages(&self, phase: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![PhaseStage::Once(Op::Group { phase })]
    }
}
