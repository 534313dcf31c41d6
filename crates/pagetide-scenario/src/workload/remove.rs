//! `workload = "remove"`: removes files, or closes pipes, that an earlier phase kept.

use super::prelude::*;
use super::making::KeepShare;
use super::Workload;
use crate::load::decode::Share;
use crate::load::span::list_names;
use crate::names::PickKind;

table! {
    /// Removes files, or closes pipes, that an earlier phase kept.
    RemoveKeys of "workload remove" {
        /// Earlier phase with workload names or pipes.
        of: Spanned<NameKey> => required "\"fill\"",
        /// Share of the remaining ones that stays (default "0 %").
        keep: Spanned<Share> = Share::NONE,
        /// Which ones stay: every Nth, or random ones (default evenly).
        pick: Spanned<PickKind> = PickKind::Evenly,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoveObjects {
    /// Number of the earlier phase within its task.
    pub of: u32,
    /// Share of the remaining ones that stays.
    pub keep: KeepShare,
}

impl WorkloadSpec for RemoveObjects {
    type Keys = RemoveKeys;

    fn check(keys: &RemoveKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let name = keys.of(sink)?;
        let shown = clip(&name.value.0);
        let before = || phases.before.iter().map(|phase| phase.name.as_str());
        let Some(of) = before().position(|known| known == name.value.0) else {
            // The phase may be one that could not be read.
            if !phases.is_incomplete {
                let hint = match sink.suggest(&name.value.0, before()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if phases.before.is_empty() => {
                        "an earlier phase must make and keep files, with workload = \"names\"".to_owned()
                    }
                    None => format!("earlier phases are {}", list_names(before())),
                };
                let message = format!("no earlier phase is called `{shown}`");
                sink.hinted(name.span, message, hint);
            }
            return None;
        };
        let (message, hint) = match &phases.before[of].workload {
            Workload::Names(names) if names.missing => {
                let message = format!("the phase `{shown}` looks up missing names and makes nothing");
                (message, "name a phase that makes files")
            }
            Workload::Names(super::MakeNames { keep, .. })
            | Workload::Pipes(super::Pipes { keep, .. }) => match keep.part {
                0 => (format!("the phase `{shown}` keeps nothing"), "add keep = \"100 %\" to it"),
                _ => {
                    let keep = KeepShare::new(keys.keep(), keys.pick());
                    return Some(RemoveObjects { of: of as u32, keep });
                }
            },
            _ => (
                format!("the phase `{shown}` makes neither files nor pipes"),
                "name a phase with workload = \"names\" or \"pipes\"",
            ),
        };
        sink.hinted(name.span, message, hint);
        None
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![planner.remove_stage(phase, self.of, self.keep)]
    }
}
