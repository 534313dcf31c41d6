//! Kinds of slices and their names.

use pagetide_core::effect::Throttle;
use pagetide_sim::observe::{CallKind, Slice, Wait};

/// An activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Shown by the simulator.
    Of(Slice),
    /// kswapd from `mm_vmscan_kswapd_wake` to its next sleep.
    BalancePgdat,
    /// `mm_vmscan_direct_reclaim_begin` to `_end`.
    DirectReclaim,
    /// `mm_vmscan_memcg_reclaim_begin` to `_end`.
    MemcgReclaim,
    /// `mm_vmscan_memcg_softlimit_reclaim_begin` to `_end`.
    SoftLimitReclaim,
    /// `mm_shrink_slab_start` to `_end`.
    ShrinkSlab,
}

impl Stage {
    /// Whether the end of `other` ends this slice; details such as major or minor may differ.
    pub fn is_ended_by(self, other: Stage) -> bool {
        match (self, other) {
            (Stage::Of(this), Stage::Of(other)) => {
                std::mem::discriminant(&this) == std::mem::discriminant(&other)
            }
            (Stage::BalancePgdat, Stage::Of(Slice::Work)) => true,
            (this, other) => this == other,
        }
    }

    /// Whether a slice of `inner` in this one would be redundant.
    pub fn tells(self, inner: Stage) -> bool {
        inner == Stage::Of(Slice::Wait(Wait::Page))
            && matches!(
                self,
                Stage::Of(Slice::Call(CallKind::Fault { major: true } | CallKind::Read))
            )
    }

    /// Whether this is a fault that became a major one after its start.
    pub fn became_major(self, at_end: Stage) -> bool {
        self == Stage::Of(Slice::Call(CallKind::Fault { major: false }))
            && at_end == Stage::Of(Slice::Call(CallKind::Fault { major: true }))
    }

    pub fn name(self) -> &'static str {
        match self {
            Stage::BalancePgdat => "balance_pgdat",
            Stage::DirectReclaim => "direct reclaim",
            Stage::MemcgReclaim => "memcg reclaim",
            Stage::SoftLimitReclaim => "soft limit reclaim",
            Stage::ShrinkSlab => "shrink slab",
            Stage::Of(Slice::Call(CallKind::Fault { major: false })) => "page fault",
            Stage::Of(Slice::Call(CallKind::Fault { major: true })) => "major fault",
            Stage::Of(Slice::Call(CallKind::Read)) => "read",
            Stage::Of(Slice::Call(CallKind::Write)) => "write",
            Stage::Of(Slice::Call(CallKind::KernelMemory)) => "kernel memory",
            Stage::Of(Slice::Call(CallKind::ControlFile)) => "control file",
            Stage::Of(Slice::DirectCompaction) => "direct compaction",
            Stage::Of(Slice::Request { .. }) => "request",
            Stage::Of(Slice::Work) => "work",
            Stage::Of(Slice::Wait(Wait::Page)) => "wait for a page",
            Stage::Of(Slice::Wait(Wait::Disk)) => "wait for the disk",
            Stage::Of(Slice::Wait(Wait::Throttled(Throttle::Dirty))) => "balance_dirty_pages",
            Stage::Of(Slice::Wait(Wait::Throttled(_))) => "throttled",
        }
    }
}
