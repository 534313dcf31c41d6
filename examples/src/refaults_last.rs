//! `policy.groups = "refaults-last"`: a group whose pages come back is scanned more gently than the others.
//!
//! Linux scans every group in proportion to the size of its lists, whether what it frees there is wanted again or
//! not. Here the share of a group's reclaimed pages that has come back (refaults by pages freed, a decaying mean)
//! is compared with that of all groups together. For every eighth that it is above, the group's priority rises by
//! one, by at most four: one sixteenth of the pages are looked at.
//!
//! Invariant: a group with as many refaults as the mean, or fewer, is scanned as Linux does.
//!
//! refaults-last.toml, where it is worth half of the service's time, and costs the backup a quarter of its speed.
//! `memory.low` does more, for whoever knows how much to write:
//!
//! ```text
//! scenario   refaults-last: Two tenants: is a backup taken from before a service that comes back for
//!            its pages?
//! version    pagetide 0.1.0
//! seeds      1 to 10 (10 repeats)
//! machine    2 CPUs, 256 MiB, disk (ssd), no swap
//! variants   linux: as described
//!            refaults-last: policy.groups=refaults-last
//!            low: service/memory.low=160M
//!
//!                                              linux             refaults-last                       low
//! ------------------------------------------------------------------------------------------------------
//! serve.serve.walltime            ms    15302 ±  104    7800 ±    37   -49.0%*   1.201 ± 0.000  -100.0%*
//! serve.serve.pgmajfault                46224 ±  166   23543 ±    55   -49.1%*       0 ±     0  -100.0%*
//! service.memory.current          MiB   27.70 ± 0.30   99.59 ±  0.28  +259.5%*   160.5 ±   0.1  +479.3%*
//! service.workingset_refault_file       46224 ±  166   23543 ±    55   -49.1%*       0 ±     0  -100.0%*
//! copy.bytes                      GiB   12.42 ± 0.11   9.237 ± 0.053   -25.6%*   5.897 ± 0.015   -52.5%*
//!
//! mean ± sample standard deviation over the seeds; change against linux in per cent; * means differ
//! (Welch's t-test, p < 0.05)
//! ```

use pagetide::policy::{Digest, GroupPolicy, Plan, Visit};

/// Shares are counted in parts of so many.
const WHOLE: u64 = 256;
/// So many freed pages are evidence.
const ENOUGH: u64 = 256;
/// The most by which a priority rises.
const GENTLEST: u64 = 4;

/// What was seen of one group, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Whose it is: ids are used again.
    key: u64,
    refaults: u64,
    reclaimed: u64,
    /// Share of the freed pages that came back, in parts of [`WHOLE`], a decaying mean.
    share: u64,
}

impl Seen {
    /// Takes the counts as they are now; a share is computed when enough was freed since the last one.
    fn update(&mut self, refaults: u64, reclaimed: u64) {
        let freed = reclaimed.saturating_sub(self.reclaimed);
        if freed < ENOUGH {
            return;
        }
        let back = refaults.saturating_sub(self.refaults).min(freed);
        self.share = (3 * self.share + back * WHOLE / freed) / 4;
        self.refaults = refaults;
        self.reclaimed = reclaimed;
    }
}

/// The policy.
#[derive(Clone, Debug, Default)]
pub struct RefaultsLast {
    /// By group id.
    groups: Vec<Seen>,
    /// All groups together: sums of what was counted in the visits.
    all: Seen,
    refaults: u64,
    reclaimed: u64,
}

impl GroupPolicy for RefaultsLast {
    fn plan(&mut self, visit: &Visit<'_>, plan: &mut Plan) {
        let group = visit.group;
        let (refaults, reclaimed) = (group.refaults().iter().sum(), group.reclaimed());
        let at = group.id().idx();
        if self.groups.len() <= at {
            self.groups.resize(at + 1, Seen::default());
        }
        let seen = &mut self.groups[at];
        if seen.key != group.key() {
            *seen = Seen { key: group.key(), refaults, reclaimed, share: 0 };
        }
        let before = *seen;
        seen.update(refaults, reclaimed);
        if seen.reclaimed != before.reclaimed {
            self.refaults += seen.refaults.saturating_sub(before.refaults);
            self.reclaimed += seen.reclaimed - before.reclaimed;
            self.all.update(self.refaults, self.reclaimed);
        }
        let above = seen.share.saturating_sub(self.all.share);
        plan.priority += (above * 8 / WHOLE).min(GENTLEST) as i8;
    }

    fn digest(&self, digest: &mut Digest) {
        for Seen { key, refaults, reclaimed, share } in self.groups.iter().chain([&self.all]) {
            digest.write_all(&[*key, *refaults, *reclaimed, *share]);
        }
        digest.write_all(&[self.refaults, self.reclaimed]);
    }
}
