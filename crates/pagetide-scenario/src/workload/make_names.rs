//! `workload = "names"`: makes and removes files, or looks up names that do not exist.

use super::prelude::*;
use super::making::{KeepShare, MadeKind};
use crate::load::decode::Share;
use crate::names::{NameKind, PickKind};

table! {
    /// Makes names in directories.
    MakeNamesKeys of "workload names" {
        /// Number of names.
        make: Spanned<Int<1, 1_000_000>> => required "1000",
        /// Share of the files that stays, also after the end of the task (default "0 %").
        keep: Spanned<Share> = Share::NONE,
        /// Which files stay: every Nth, or random ones (default evenly).
        pick: Spanned<PickKind> = PickKind::Evenly,
        /// Files, or names that do not exist (default file).
        kind: Spanned<NameKind> = NameKind::File,
    }
}

/// Names in directories: each costs the kernel a dentry, and a file also an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MakeNames {
    pub make: u32,
    /// The files that stay, also after the end of the task. Missing names have nothing to remove.
    pub keep: KeepShare,
    /// Look up names that the first disk lacks, instead of making files on the memory file system.
    pub missing: bool,
}

impl WorkloadSpec for MakeNames {
    type Keys = MakeNamesKeys;

    fn check(keys: &MakeNamesKeys, _: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let make = keys.make(sink)?.value.into();
        let missing = keys.kind() == NameKind::Missing;
        if let (true, Some(keep)) = (missing, &keys.keep) {
            let hint = "leave out `keep` or kind = \"missing\"";
            sink.hinted(keep.span, "missing names cannot be kept", hint);
            return None;
        }
        Some(MakeNames { make, keep: KeepShare::new(keys.keep(), keys.pick()), missing })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let thing = if self.missing { MadeKind::Missing } else { MadeKind::File };
        vec![planner.make_stage(phase, thing, "names", (self.make, self.keep))]
    }
}
