//! Kinds of slices and their names.

use pagetide_core::interface::throttle::Throttle;
use pagetide_sim::observe::{ActivitySlice, CallKind, WaitReason};

/// An activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceKind {
    /// Shown by the simulator.
    Of(ActivitySlice),
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

impl SliceKind {
    /// Whether the end of `other` ends this slice; details such as major or minor may differ.
    pub fn is_ended_by(self, other: SliceKind) -> bool {
        match (self, other) {
            (SliceKind::Of(this), SliceKind::Of(other)) => {
                std::mem::discriminant(&this) == std::mem::discriminant(&other)
            }
            (SliceKind::BalancePgdat, SliceKind::Of(ActivitySlice::Work)) => true,
            (this, other) => this == other,
        }
    }

    /// Whether a slice of `inner` in this one would be redundant.
    pub fn makes_redundant(self, inner: SliceKind) -> bool {
        inner == SliceKind::Of(ActivitySlice::Wait(WaitReason::Page))
            && matches!(
                self,
                SliceKind::Of(ActivitySlice::Call(
                    CallKind::Fault { major: true } | CallKind::Read
                ))
            )
    }

    /// Whether this is a fault that became a major one after its start.
    pub fn became_major(self, at_end: SliceKind) -> bool {
        self == SliceKind::Of(ActivitySlice::Call(CallKind::Fault { major: false }))
            && at_end == SliceKind::Of(ActivitySlice::Call(CallKind::Fault { major: true }))
    }

    pub fn name(self) -> &'static str {
        match self {
            SliceKind::BalancePgdat => "balance_pgdat",
            SliceKind::DirectReclaim => "direct reclaim",
            SliceKind::MemcgReclaim => "memcg reclaim",
            SliceKind::SoftLimitReclaim => "soft limit reclaim",
            SliceKind::ShrinkSlab => "shrink slab",
            SliceKind::Of(ActivitySlice::Call(CallKind::Fault { major: false })) => "page fault",
            SliceKind::Of(ActivitySlice::Call(CallKind::Fault { major: true })) => "major fault",
            SliceKind::Of(ActivitySlice::Call(CallKind::Read)) => "read",
            SliceKind::Of(ActivitySlice::Call(CallKind::Write)) => "write",
            SliceKind::Of(ActivitySlice::Call(CallKind::KernelMemory)) => "kernel memory",
            SliceKind::Of(ActivitySlice::Call(CallKind::ControlFile)) => "control file",
            SliceKind::Of(ActivitySlice::DirectCompaction) => "direct compaction",
            SliceKind::Of(ActivitySlice::Request { .. }) => "request",
            SliceKind::Of(ActivitySlice::Work) => "work",
            SliceKind::Of(ActivitySlice::Wait(WaitReason::Page)) => "wait for a page",
            SliceKind::Of(ActivitySlice::Wait(WaitReason::Disk)) => "wait for the disk",
            SliceKind::Of(ActivitySlice::Wait(WaitReason::Throttled(
                Throttle::Dirty | Throttle::GroupDirty,
            ))) => "balance_dirty_pages",
            SliceKind::Of(ActivitySlice::Wait(WaitReason::Throttled(_))) => "throttled",
        }
    }
}
