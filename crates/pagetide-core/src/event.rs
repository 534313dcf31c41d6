//! Events: the single steps of reclaim, for a user who wants to know why a counter changed.
//!
//! Linux: include/trace/events/vmscan.h and oom.h. An event has its tracepoint's name, and its fields
//! their names. A tracepoint of the kernel does not say which group it is about; here `memcg` does.
//! docs/events.md lists the other differences.
//!
//! The log is off unless [`Manager::record_events`] turns it on; then it grows until
//! [`Manager::take_events`] empties it, which a world does after each step: an event has neither its
//! time nor its thread, and the world adds both.
//!
//! Invariant: nothing in the core reads the log, so recording changes no decision and no digest. While
//! it is off, an event costs one branch.

use crate::effect::Throttle;
use crate::gfp::{Gfp, MigrateType};
use crate::units::{Asker, MemcgId, NodeId, Order};
use alloc::vec::Vec;

/// The value of a field, for whoever prints events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A number that is not negative; the field's name says of what.
    Number(u64),
    /// A scan priority: a pass looks at `list >> priority` pages.
    Priority(i8),
    /// Yes or no.
    Flag(bool),
    /// A name of the kernel's.
    Name(&'static str),
    /// What an allocation may do; [`Gfp`]'s `Display` has the kernel's names.
    Gfp(Gfp),
    /// A group. It may have been removed since.
    Group(MemcgId),
    /// An address space.
    Mm(Asker),
}

macro_rules! fields_from {
    ($($from:ty => |$value:ident| $field:expr;)+) => {
        $(impl From<$from> for Field {
            fn from($value: $from) -> Field {
                $field
            }
        })+
    };
}

fields_from! {
    u8 => |number| Field::Number(number.into());
    u32 => |number| Field::Number(number.into());
    u64 => |number| Field::Number(number);
    NodeId => |node| Field::Number(node.0.into());
    i8 => |priority| Field::Priority(priority);
    bool => |flag| Field::Flag(flag);
    Gfp => |gfp| Field::Gfp(gfp);
    MemcgId => |memcg| Field::Group(memcg);
    Asker => |mm| Field::Mm(mm);
    &'static str => |name| Field::Name(name);
    MigrateType => |mt| Field::Number(mt as u64);
    Throttle => |reason| Field::Name(reason_name(reason));
}

/// A reason as the kernel prints it; the one of 2.6.37 by the name of its function.
const fn reason_name(reason: Throttle) -> &'static str {
    match reason {
        Throttle::Writeback => "VMSCAN_THROTTLE_WRITEBACK",
        Throttle::Isolated => "VMSCAN_THROTTLE_ISOLATED",
        Throttle::NoProgress => "VMSCAN_THROTTLE_NOPROGRESS",
        Throttle::Congested => "VMSCAN_THROTTLE_CONGESTED",
        Throttle::CongestionWait => "congestion_wait",
        Throttle::Reserves => "pfmemalloc_wait",
        Throttle::Requests => "requests",
        Throttle::Dirty => "balance_dirty_pages",
        Throttle::MemoryHigh => "memory.high",
    }
}

macro_rules! trace_events {
    ($($(#[$doc:meta])* $variant:ident = $name:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })+) => {
        /// Something that happened, with the numbers of its tracepoint.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TraceEvent {
            $($(#[$doc])* $variant { $($(#[$field_doc])* $field: $type,)* },)+
        }

        impl TraceEvent {
            /// Names of all events there are.
            pub const NAMES: &'static [&'static str] = &[$($name,)+];

            /// Name of the tracepoint.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(TraceEvent::$variant { .. } => $name,)+
                }
            }

            /// Shows every field, with its name, in the order of the documentation.
            pub fn each_field(&self, mut show: impl FnMut(&'static str, Field)) {
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
        /// Highest zone that helps.
        zid: u8,
        /// Order wanted.
        order: Order,
    }
    /// kswapd begins to balance.
    MmVmscanKswapdWake = "mm_vmscan_kswapd_wake" {
        /// The node.
        nid: NodeId,
        /// Highest zone that helps.
        zid: u8,
        /// Order wanted.
        order: Order,
    }
    /// kswapd goes to sleep until it is woken; its naps of 100 ms are not reported.
    MmVmscanKswapdSleep = "mm_vmscan_kswapd_sleep" {
        /// The node.
        nid: NodeId,
    }
    /// A task begins to reclaim for its own allocation, because the machine is short.
    MmVmscanDirectReclaimBegin = "mm_vmscan_direct_reclaim_begin" {
        /// Order wanted.
        order: Order,
        /// What the allocation may do.
        gfp_flags: Gfp,
    }
    /// ... and ends.
    MmVmscanDirectReclaimEnd = "mm_vmscan_direct_reclaim_end" {
        /// Pages freed.
        nr_reclaimed: u64,
    }
    /// A task begins to reclaim from a group and those below it, for the group's own limit,
    /// `memory.high`, or a write to its `memory.reclaim`.
    MmVmscanMemcgReclaimBegin = "mm_vmscan_memcg_reclaim_begin" {
        /// The group.
        memcg: MemcgId,
        /// Order wanted.
        order: Order,
        /// What the allocation may do.
        gfp_flags: Gfp,
    }
    /// ... and ends.
    MmVmscanMemcgReclaimEnd = "mm_vmscan_memcg_reclaim_end" {
        /// The group.
        memcg: MemcgId,
        /// Pages freed.
        nr_reclaimed: u64,
    }
    /// The stage of the soft-limit trees begins to scan a group.
    MmVmscanMemcgSoftlimitReclaimBegin = "mm_vmscan_memcg_softlimit_reclaim_begin" {
        /// The group that is scanned.
        memcg: MemcgId,
        /// The group on top of the tree, whose excess is the reason: that group, or one above it.
        top: MemcgId,
        /// Pages by which `top` was over its soft limit when it came to be worked on.
        excess: u64,
        /// Order wanted.
        order: Order,
        /// What the allocation may do.
        gfp_flags: Gfp,
    }
    /// ... and ends.
    MmVmscanMemcgSoftlimitReclaimEnd = "mm_vmscan_memcg_softlimit_reclaim_end" {
        /// The group that was scanned.
        memcg: MemcgId,
        /// Pages freed.
        nr_reclaimed: u64,
    }
    /// A batch of an inactive list was judged.
    MmVmscanLruShrinkInactive = "mm_vmscan_lru_shrink_inactive" {
        /// The node.
        nid: NodeId,
        /// The group whose list it is.
        memcg: MemcgId,
        /// Pages looked at, those of too high zones included.
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
        /// ... on a node that is all writeback, which makes kswapd wait.
        nr_immediate: u32,
        /// Pages moved to the active list.
        nr_activate: u32,
        /// Pages kept for one reference.
        nr_ref_keep: u32,
        /// Priority of the scan of this group, which a policy may have changed.
        priority: i8,
        /// Page cache, or else anonymous memory.
        file: bool,
    }
    /// A batch of an active list was judged.
    MmVmscanLruShrinkActive = "mm_vmscan_lru_shrink_active" {
        /// The node.
        nid: NodeId,
        /// The group whose list it is.
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
        /// Page cache, or else anonymous memory.
        file: bool,
    }
    /// A request takes pages of a pageblock of another migrate type (0 unmovable, 1 movable, 2 reclaimable).
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
        /// The block is smaller than a pageblock, so that kinds mix in it.
        fragmenting: bool,
        /// The pageblock is of the type wanted now.
        change_ownership: bool,
    }
    /// Such a mix raises the watermarks of its zone for a while.
    BoostWatermark = "boost_watermark" {
        /// The node.
        nid: NodeId,
        /// The zone.
        zid: u8,
        /// Pages by which they are raised now.
        watermark_boost: u64,
    }
    /// Compaction of a zone begins.
    MmCompactionBegin = "mm_compaction_begin" {
        /// First frame of the zone.
        zone_start: u64,
        /// Where the scanner for pages to move begins.
        migrate_pfn: u64,
        /// Where the scanner for free pages begins.
        free_pfn: u64,
        /// One past the last frame of the zone.
        zone_end: u64,
        /// It waits for pages that are locked.
        sync: bool,
    }
    /// ... and ends.
    MmCompactionEnd = "mm_compaction_end" {
        /// First frame of the zone.
        zone_start: u64,
        /// Where the scanner for pages to move has come to.
        migrate_pfn: u64,
        /// Where the scanner for free pages has come to.
        free_pfn: u64,
        /// One past the last frame of the zone.
        zone_end: u64,
        /// It waits for pages that are locked.
        sync: bool,
        /// What has come of it.
        status: &'static str,
    }
    /// A task that writes has dirtied more than its share, and pauses.
    BalanceDirtyPages = "balance_dirty_pages" {
        /// Pages that may be dirty or under writeback before every writer stops.
        limit: u64,
        /// Pages around which writers are held.
        setpoint: u64,
        /// Pages that are dirty or under writeback.
        dirty: u64,
        /// What one writer may dirty at the setpoint, in kB a second.
        dirty_ratelimit: u64,
        /// What it may dirty now.
        task_ratelimit: u64,
        /// Pages dirtied since the last pause.
        dirtied: u64,
        /// Length of the pause in milliseconds.
        pause: u64,
    }
    /// A shrinker of kept objects begins with a group, which has some.
    MmShrinkSlabStart = "mm_shrink_slab_start" {
        /// The function that looks at objects.
        shrink: &'static str,
        /// The node.
        nid: NodeId,
        /// The group whose objects they are.
        memcg: MemcgId,
        /// Objects put off by earlier calls.
        nr_objects_to_shrink: u64,
        /// Objects that could be freed, as `vm.vfs_cache_pressure` makes them.
        cache_items: u64,
        /// Objects that this call adds for its priority.
        delta: u64,
        /// Objects to be looked at now.
        total_scan: u64,
        /// Priority of the reclaim; 0 for `vm.drop_caches`.
        priority: i8,
    }
    /// ... and ends.
    MmShrinkSlabEnd = "mm_shrink_slab_end" {
        /// The function that looks at objects.
        shrink: &'static str,
        /// The node.
        nid: NodeId,
        /// The group.
        memcg: MemcgId,
        /// Objects put off when it began.
        unused_scan: u64,
        /// Objects put off now.
        new_scan: u64,
        /// Objects freed.
        retval: u64,
        /// Objects that were to be looked at now and were not.
        total_scan: u64,
    }
    /// A reclaimer is put to sleep.
    MmVmscanThrottled = "mm_vmscan_throttled" {
        /// The node.
        nid: NodeId,
        /// It sleeps no longer than so many microseconds.
        usec_timeout: u64,
        /// Why.
        reason: Throttle,
    }
    /// The out-of-memory killer has chosen.
    MarkVictim = "mark_victim" {
        /// The victim.
        victim: Asker,
        /// Its group.
        memcg: MemcgId,
        /// The group that ran out of memory; the root: the machine did.
        oom_memcg: MemcgId,
    }
}

/// The events since somebody took them.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    enabled: bool,
    buffer: Vec<TraceEvent>,
    /// Priority at which the group at hand is scanned. Its plan may differ from the reclaimer's own,
    /// and is not known where lists are shrunk.
    pub priority: i8,
}

impl EventLog {
    /// An empty log, on or off.
    pub(crate) fn new(enabled: bool) -> EventLog {
        EventLog { enabled, ..EventLog::default() }
    }

    /// Moves what was recorded to the end of `events`.
    #[inline]
    pub(crate) fn take(&mut self, events: &mut Vec<TraceEvent>) {
        events.append(&mut self.buffer);
    }

    /// Notes an event, if anybody wants to know.
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
        let number = Field::Number;
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
