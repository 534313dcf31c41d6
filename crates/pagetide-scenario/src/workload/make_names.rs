//! `workload = "names"`: makes files and removes most of them again, or looks for names that do not exist.

use super::prelude::*;
use super::making::{Keep, Thing};
use crate::load::decode::Share;
use crate::names::{NameKind, PickKind};

table! {
    /// Names in directories.
    Keys of "workload names" {
        /// How many.
        make: At<Int<1, 1_000_000>> => required "1000",
        /// The share of files that stays, beyond the end of the task (default "0 %").
        keep: At<Share> = Share::NONE,
        /// Which of them stay: those that lie evenly, or any (default evenly).
        pick: At<PickKind> = PickKind::Evenly,
        /// Files, or names that do not exist (default file).
        kind: At<NameKind> = NameKind::File,
    }
}

/// Names in directories: each costs the kernel a dentry, and a file an inode besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// How many.
    pub make: u32,
    /// The files that stay, beyond the end of the task. Of missing names nothing is there to be removed.
    pub keep: Keep,
    /// Names that the first disk does not have, instead of files on the memory file system.
    pub missing: bool,
}

impl Kind for Names {
    type Keys = Keys;

    fn check(keys: &Keys, _: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let make = keys.make(sink)?.value.into();
        let missing = keys.kind() == NameKind::Missing;
        if let (true, Some(keep)) = (missing, &keys.keep) {
            let hint = "remove it, or kind = \"missing\": there is nothing to be removed";
            sink.hinted(keep.span, "names that do not exist cannot be kept", hint);
            return None;
        }
        Some(Names { make, keep: Keep::new(keys.keep(), keys.pick()), missing })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<Stage> {
        let thing = if self.missing { Thing::Missing } else { Thing::File };
        vec![planner.makes(phase, thing, "names", (self.make, self.keep))]
    }
}
