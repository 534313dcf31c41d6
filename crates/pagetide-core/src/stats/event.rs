//! Events: the single steps of reclaim, which explain why a counter changed.
//!
//! Linux: include/trace/events/vmscan.h and oom.h. Events and their fields have the names of the
//! kernel's tracepoints. The kernel's tracepoints do not name the group; here the field `memcg`
//! does. docs/outputs.md lists the other differences.
//!
//! The log is off unless [`Kernel::record_events`] turns it on. A world empties it after each step
//! ([`Kernel::take_events`]) and adds time and thread to each event.
//!
//! Invariant: the core never reads the log, so recording changes no decision and no digest. While
//! the log is off, an event costs one branch.

use crate::frames::gfp::{Gfp, MigrateType};
#[cfg(doc)]
use crate::interface::kernel::Kernel;
#[cfg(doc)]
use crate::interface::manager::Manager;
use crate::interface::throttle::Throttle;
use crate::units::{MemcgId, NodeId, Order, Requester};
use alloc::vec::Vec;

/// The value of an event's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceField {
    /// A number >= 0; the field's name gives its unit.
    Number(u64),
    /// A scan priority: a pass looks at `list >> priority` pages.
    Priority(i8),
    /// A flag.
    Flag(bool),
    /// A name of the kernel.
    Name(&'static str),
    /// The flags of an allocation; [`Gfp`]'s `Display` prints the kernel's names.
    Gfp(Gfp),
    /// A group. It may have been removed since the event.
    Group(MemcgId),
    /// An address space.
    Mm(Requester),
}

macro_rules! fields_from {
    ($($from:ty => |$value:ident| $field:expr;)+) => {
        $(impl From<$from> for TraceField {
            fn from($value: $from) -> TraceField {
                $field
            }
        })+
    };
}

fields_from! {
    u8 => |number| TraceField::Number(number.into());
    u32 => |number| TraceField::Number(number.into());
    u64 => |number| TraceField::Number(number);
    NodeId => |node| TraceField::Number(node.0.into());
    i8 => |priority| TraceField::Priority(priority);
    bool => |flag| TraceField::Flag(flag);
    Gfp => |gfp| TraceField::Gfp(gfp);
    MemcgId => |memcg| TraceField::Group(memcg);
    Requester => |mm| TraceField::Mm(mm);
    &'static str => |name| TraceField::Name(name);
    MigrateType => |mt| TraceField::Number(mt as u64);
    Throttle => |reason| TraceField::Name(reason_name(reason));
}

/// The kernel's name for a throttle reason. If the reason has no such name: the function or control
/// file that throttles.
const fn reason_name(reason: Throttle) -> &'static str {
    match reason {
        Throttle::Writeback => "VMSCAN_THROTTLE_WRITEBACK",
        Throttle::Isolated => "VMSCAN_THROTTLE_ISOLATED",
        Throttle::NoProgress => "VMSCAN_THROTTLE_NOPROGRESS",
        Throttle::Congested => "VMSCAN_THROTTLE_CONGESTED",
        Throttle::CongestionWait => "congestion_wait",
        Throttle::Reserves => "pfmemalloc_wait",
        Throttle::Requests => "requests",
        Throttle::Dirty | Throttle::GroupDirty => "balance_dirty_pages",
        Throttle::MemoryHigh => "memory.high",
    }
}

macro_rules! trace_events {
    ($($(#[$doc:meta])* $variant:ident = $name:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })+) => {
        /// An event, with the numbers of its tracepoint.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TraceEvent {
            $($(#[$doc])* $variant { $($(#[$field_doc])* $field: $type,)* },)+
        }

        impl TraceEvent {
            /// Names of all events.
            pub const NAMES: &'static [&'static str] = &[$($name,)+];

            /// Name of the tracepoint.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(TraceEvent::$variant { .. } => $name,)+
                }
            }

            /// Calls `show` for every field and its name, in the order of the documentation.
            pub fn each_field(&self, mut show: impl FnMut(&'static str, TraceField)) {
                match *self {
                    $(TraceEvent::$variant { $($field,)* } => {
                        $(show(stringify!($field), $field.into());)*
                    })+
                }
            }
        }
    };
}

trace_events! {
    /// An allocation wakes kswapd.
    MmVmscanWakeupKswapd = "mm_vmscan_wakeup_kswapd" {
        /// The node.
        nid: NodeId,
        /// Highest zone to balance.
        zid: u8,
        /// Order wanted.
        order: Order,
    }
    /// kswapd starts to balance.
    MmVmscanKswapdWake = "mm_vmscan_kswapd_wake" {
        /// The node.
        nid: NodeId,
        /// Highest zone to balance.
        zid: u8,
        /// Order wanted.
        order: Order,
    }
    /// kswapd goes to full sleep. (Naps of 100 ms are not recorded.)
    MmVmscanKswapdSleep = "mm_vmscan_kswapd_sleep" {
        /// The node.
        nid: NodeId,
    }
    /// A task starts direct reclaim, because the machine is short of memory.
    MmVmscanDirectReclaimBegin = "mm_vmscan_direct_reclaim_begin" {
        /// Order wanted.
        order: Order,
        /// Flags of the allocation.
        gfp_flags: Gfp,
    }
    /// Direct reclaim ends.
    MmVmscanDirectReclaimEnd = "mm_vmscan_direct_reclaim_end" {
        /// Pages freed.
        nr_reclaimed: u64,
    }
    /// A task starts to reclaim from a group and its descendants. It does so for the group's limit,
    /// for `memory.high`, or for a write to `memory.reclaim`.
    MmVmscanMemcgReclaimBegin = "mm_vmscan_memcg_reclaim_begin" {
        /// The group.
        memcg: MemcgId,
        /// Order wanted.
        order: Order,
        /// Flags of the allocation.
        gfp_flags: Gfp,
    }
    /// Reclaim from a group ends.
    MmVmscanMemcgReclaimEnd = "mm_vmscan_memcg_reclaim_end" {
        /// The group.
        memcg: MemcgId,
        /// Pages freed.
        nr_reclaimed: u64,
    }
    /// The soft-limit stage starts to scan a group.
    MmVmscanMemcgSoftlimitReclaimBegin = "mm_vmscan_memcg_softlimit_reclaim_begin" {
        /// The group to scan.
        memcg: MemcgId,
        /// The group that was taken from the soft-limit tree: the scanned group or one of its
        /// ancestors.
        top: MemcgId,
        /// Pages by which `top` was over its soft limit when it was taken from the tree.
        excess: u64,
        /// Order wanted.
        order: Order,
        /// Flags of the allocation.
        gfp_flags: Gfp,
    }
    /// The soft-limit stage ends its scan of a group.
    MmVmscanMemcgSoftlimitReclaimEnd = "mm_vmscan_memcg_softlimit_reclaim_end" {
        /// The group that was scanned.
        memcg: MemcgId,
        /// Pages freed.
        nr_reclaimed: u64,
    }
    /// A batch of an inactive list was scanned.
    MmVmscanLruShrinkInactive = "mm_vmscan_lru_shrink_inactive" {
        /// The node.
        nid: NodeId,
        /// The group of the list.
        memcg: MemcgId,
        /// Pages scanned, including pages in zones too high for the request.
        nr_scanned: u32,
        /// Pages taken off the list.
        nr_taken: u32,
        /// Pages freed.
        nr_reclaimed: u32,
        /// File pages that were dirty or under writeback.
        nr_dirty: u32,
        /// Pages under writeback.
        nr_writeback: u32,
        /// Pages under writeback that reclaim had met before.
        nr_congested: u32,
        /// Pages under writeback that kswapd met a second time, while all pages at the tail of the
        /// node's lists are under writeback; they make kswapd wait.
        nr_immediate: u32,
        /// Pages moved to the active list.
        nr_activate: u32,
        /// Pages kept because of one reference.
        nr_ref_keep: u32,
        /// Priority of the scan of this group, which a policy may have changed.
        priority: i8,
        /// Page cache (true) or anonymous memory (false).
        file: bool,
    }
    /// A batch of an active list was scanned.
    MmVmscanLruShrinkActive = "mm_vmscan_lru_shrink_active" {
        /// The node.
        nid: NodeId,
        /// The group of the list.
        memcg: MemcgId,
        /// Pages taken off the list.
        nr_taken: u32,
        /// Pages that stay active.
        nr_active: u32,
        /// Pages moved to the inactive list.
        nr_deactivated: u32,
        /// Pages found referenced.
        nr_referenced: u32,
        /// Priority of the scan of this group, which a policy may have changed.
        priority: i8,
        /// Page cache (true) or anonymous memory (false).
        file: bool,
    }
    /// A request takes a free block of another migrate type (0 unmovable, 1 movable, 2
    /// reclaimable).
    MmPageAllocExtfrag = "mm_page_alloc_extfrag" {
        /// First frame of the free block.
        pfn: u64,
        /// Order wanted.
        alloc_order: Order,
        /// Order of the free block.
        fallback_order: Order,
        /// Order of a pageblock.
        pageblock_order: Order,
        /// Type wanted.
        alloc_migratetype: MigrateType,
        /// Type of the free block.
        fallback_migratetype: MigrateType,
        /// The block is smaller than a pageblock, so the pageblock now has mixed types.
        fragmenting: bool,
        /// The whole pageblock now has the wanted type.
        change_ownership: bool,
    }
    /// A fallback raises the watermarks of its zone for a while.
    BoostWatermark = "boost_watermark" {
        /// The node.
        nid: NodeId,
        /// The zone.
        zid: u8,
        /// Pages by which the watermarks are raised now.
        watermark_boost: u64,
    }
    /// Compaction of a zone starts.
    MmCompactionBegin = "mm_compaction_begin" {
        /// First frame of the zone.
        zone_start: u64,
        /// Position of the scanner for pages to move.
        migrate_pfn: u64,
        /// Position of the scanner for free pages.
        free_pfn: u64,
        /// One past the last frame of the zone.
        zone_end: u64,
        /// Whether the run waits for locked pages.
        sync: bool,
    }
    /// Compaction of a zone ends.
    MmCompactionEnd = "mm_compaction_end" {
        /// First frame of the zone.
        zone_start: u64,
        /// Position of the scanner for pages to move.
        migrate_pfn: u64,
        /// Position of the scanner for free pages.
        free_pfn: u64,
        /// One past the last frame of the zone.
        zone_end: u64,
        /// Whether the run waits for locked pages.
        sync: bool,
        /// Result of the run.
        status: &'static str,
    }
    /// A writer has dirtied more than its share and pauses.
    BalanceDirtyPages = "balance_dirty_pages" {
        /// Number of pages, dirty or under writeback, at which every writer is stopped.
        limit: u64,
        /// Target for the number of pages that are dirty or under writeback.
        setpoint: u64,
        /// Pages that are dirty or under writeback.
        dirty: u64,
        /// Rate of one writer at the setpoint, in kB/s.
        dirty_ratelimit: u64,
        /// Rate of this writer now, in kB/s.
        task_ratelimit: u64,
        /// Pages dirtied since the last pause.
        dirtied: u64,
        /// Length of the pause in milliseconds.
        pause: u64,
    }
    /// A shrinker starts on a group that has objects for it.
    MmShrinkSlabStart = "mm_shrink_slab_start" {
        /// The shrinker's scan function.
        shrink: &'static str,
        /// The node.
        nid: NodeId,
        /// The group of the objects.
        memcg: MemcgId,
        /// Objects deferred by earlier calls.
        nr_objects_to_shrink: u64,
        /// Freeable objects, scaled by `vm.vfs_cache_pressure`.
        cache_items: u64,
        /// Objects that this call adds for its priority.
        delta: u64,
        /// Objects to scan now.
        total_scan: u64,
        /// Priority of the reclaim; 0 for `vm.drop_caches`.
        priority: i8,
    }
    /// A shrinker ends its work on a group.
    MmShrinkSlabEnd = "mm_shrink_slab_end" {
        /// The shrinker's scan function.
        shrink: &'static str,
        /// The node.
        nid: NodeId,
        /// The group.
        memcg: MemcgId,
        /// Objects deferred when the call started.
        unused_scan: u64,
        /// Objects deferred now.
        new_scan: u64,
        /// Objects freed.
        retval: u64,
        /// Objects that remained to be scanned.
        total_scan: u64,
    }
    /// A reclaimer goes to sleep.
    MmVmscanThrottled = "mm_vmscan_throttled" {
        /// The node.
        nid: NodeId,
        /// Longest sleep in microseconds.
        usec_timeout: u64,
        /// Reason of the sleep.
        reason: Throttle,
    }
    /// The out-of-memory killer has chosen a victim.
    MarkVictim = "mark_victim" {
        /// The victim.
        victim: Requester,
        /// The victim's group.
        memcg: MemcgId,
        /// The group that ran out of memory; the root: the machine.
        oom_memcg: MemcgId,
    }
}

/// The events since the log was last emptied.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    enabled: bool,
    buffer: Vec<TraceEvent>,
    /// Priority of the scan of the current group. A group policy may choose a different priority
    /// for a group than the reclaimer's. It is kept here because the functions that shrink lists do
    /// not get it.
    pub priority: i8,
}

impl EventLog {
    /// An empty log, on or off.
    pub(crate) fn new(enabled: bool) -> EventLog {
        EventLog { enabled, ..EventLog::default() }
    }

    /// Moves the recorded events to the end of `events`.
    #[inline]
    pub(crate) fn take(&mut self, events: &mut Vec<TraceEvent>) {
        events.append(&mut self.buffer);
    }

    /// Records an event if the log is on.
    #[inline]
    pub fn record(&mut self, event: TraceEvent) {
        if self.enabled {
            self.push(event);
        }
    }

    #[cold]
    #[inline(never)]
    fn push(&mut self, event: TraceEvent) {
        self.buffer.push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_by_name_and_in_order() {
        let event = TraceEvent::MmVmscanKswapdWake { nid: NodeId(1), zid: 2, order: 3 };
        let mut fields = Vec::new();
        event.each_field(|name, value| fields.push((name, value)));
        let number = TraceField::Number;
        assert_eq!(event.name(), "mm_vmscan_kswapd_wake");
        assert_eq!(fields, [("nid", number(1)), ("zid", number(2)), ("order", number(3))]);
    }

    #[test]
    fn a_log_that_is_off_stays_empty() {
        let mut log = EventLog::default();
        let event = TraceEvent::MmVmscanKswapdSleep { nid: NodeId(0) };
        log.record(event);
        assert!(log.buffer.is_empty() && log.buffer.capacity() == 0);
        log.enabled = true;
        log.record(event);
        assert_eq!(log.buffer, [event]);
    }
}
