//! `workload = "remove"`: removes files, or closes pipes, that an earlier phase of the task has made and kept.

use super::prelude::*;
use super::making::Keep;
use super::Workload;
use crate::load::decode::Share;
use crate::load::span::list_names;
use crate::names::PickKind;

table! {
    /// Removes what an earlier phase has kept.
    Keys of "workload remove" {
        /// The phase, one before this, with workload names or pipes.
        of: At<Name> => required "\"fill\"",
        /// The share of what is left of them that stays (default "0 %").
        keep: At<Share> = Share::NONE,
        /// Which of them stay: those that lie evenly, or any (default evenly).
        pick: At<PickKind> = PickKind::Evenly,
    }
}

/// Removes files, or closes pipes, that an earlier phase has kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remove {
    /// Number of that phase within its task.
    pub of: u32,
    /// What stays of what is left.
    pub keep: Keep,
}

impl Kind for Remove {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let name = keys.of(sink)?;
        let shown = clip(&name.value.0);
        let before = || phases.before.iter().map(|phase| phase.name.as_str());
        let Some(of) = before().position(|known| known == name.value.0) else {
            // The phase may be one that could not be read.
            if !phases.is_incomplete {
                let hint = match sink.suggest(&name.value.0, before()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if phases.before.is_empty() => {
                        "it removes what a phase before it keeps: workload = \"names\"".to_owned()
                    }
                    None => format!("the phases before it are {}", list_names(before())),
                };
                let message = format!("no phase before this one is called `{shown}`");
                sink.hinted(name.span, message, hint);
            }
            return None;
        };
        let (message, hint) = match &phases.before[of].workload {
            Workload::Names(names) if names.missing => {
                (format!("names of the phase `{shown}` do not exist"), "name one that makes files")
            }
            Workload::Names(super::Names { keep, .. })
            | Workload::Pipes(super::Pipes { keep, .. }) => match keep.part {
                0 => (format!("the phase `{shown}` keeps nothing"), "add keep = \"100 %\" to it"),
                _ => {
                    let keep = Keep::new(keys.keep(), keys.pick());
                    return Some(Remove { of: of as u32, keep });
                }
            },
            _ => (
                format!("the phase `{shown}` makes neither files nor pipes"),
                "name one with workload = \"names\" or \"pipes\"",
            ),
        };
        sink.hinted(name.span, message, hint);
        None
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<Stage> {
        vec![planner.removes(phase, self.of, self.keep)]
    }
}
