//! The differences of other kernels from Linux 6.1, with one field for each decision that differs.
//!
//! Linux has no such table. A policy ([`crate::config`]) names a kernel; the era lists how that
//! kernel differs. Code of the core reads the era, never the policy. An algorithm that differs as a
//! whole has its own file: `reclaim/{kswapd_2_6_37,kswapd_4_5,write_2_6_37,old_balance}.rs`,
//! `slowpath/old.rs`, `compaction/compaction_4_5.rs`.
//!
//! Every field names a behaviour that Linux 6.1 does *not* have: for Linux 6.1 each is false, or
//! the first variant. A comment gives the other kernel in parentheses: the name in the policy, such
//! as "4.5", or the release of the change if it is known.
//!
//! Invariant: a machine's era is [`Era::of`] its configuration. It is computed when the machine is
//! made and when a policy changes; the audit compares the two.

use crate::config::{
    BackgroundCompaction, CgroupVersion, CompactionCapture, CompactionPolicy, Config,
    DirectReclaimPolicy, FaultPolicy, GroupWalkPolicy, KswapdPolicy, LruPolicy,
    ShrinkPriorityPolicy,
};

/// When a task sleeps until a disk has less to write, because its reclaim makes little progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum CongestionNap {
    /// Never. The task sleeps for a tick if it meets the same pages again (Linux 6.1).
    #[default]
    Never,
    /// If a disk is congested and reclaim has met pages that show it (`wait_iff_congested`,
    /// 2.6.37).
    IfCongested,
    /// Always (`congestion_wait`, up to 2.6.35).
    Always,
}

/// The differences from Linux 6.1. [`Era::default`] is Linux 6.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Era {
    // ---- kswapd ----
    /// kswapd balances zone by zone (4.5). Linux 6.1 (since 4.8): the whole node, with one goal.
    pub kswapd_by_zone: bool,
    /// A node is balanced when all its zones are (2.6.37). Linux 6.1: when one zone is.
    pub kswapd_wants_every_zone: bool,
    /// A round of kswapd has no goal: after 32 freed pages it starts again at the lowest scan
    /// priority (2.6.37). Linux 6.1: the goal is the sum of the high watermarks, and the priority
    /// keeps rising until the goal is met.
    pub kswapd_restarts: bool,
    /// kswapd compacts at the end of its rounds (up to 4.5). Linux 6.1: kcompactd does.
    pub kswapd_compacts: bool,
    /// There is no kcompactd (up to 4.5). Linux 6.1: one per node.
    pub no_kcompactd: bool,
    /// kcompactd is woken when kswapd goes to full sleep (the patch of March 2016). Linux 6.1
    /// (since 4.6): before kswapd's short nap.
    pub kcompactd_after_nap: bool,
    /// A request that cannot compact for itself wakes no daemon if the node is balanced (2.6.37,
    /// 4.5). Linux 6.1: it wakes kcompactd.
    pub wakers_spare_kcompactd: bool,

    // ---- reclaim ----
    /// kswapd writes any dirty file page and skips pages under writeback (2.6.37). Linux 6.1 (since
    /// 3.2): kswapd writes only pages that it meets a second time, on a node where all pages at the
    /// tail of the lists are dirty.
    pub kswapd_writes_files: bool,
    /// A task in direct reclaim writes file pages, too (2.6.37, 2.6.35). Linux 6.1 (since 3.2): it
    /// never does.
    pub tasks_write_files: bool,
    /// When a task sleeps because its reclaim frees little.
    pub congestion_nap: CongestionNap,
    /// If direct reclaim has freed pages but the task then finds no free block, pages on per-CPU
    /// lists stay there (up to 2.6.35). Linux 6.1: the lists are drained.
    pub leaves_cpu_lists: bool,
    /// A task that must continue to reclaim does so before it checks the free lists (up to 4.6).
    /// Linux 6.1: it checks the free lists first.
    pub reclaims_again_at_once: bool,
    /// Tasks in direct reclaim share one walk over the groups and leave it when they have enough
    /// (since 6.8). Linux 6.1: each task visits every group.
    pub shares_walks: bool,
    /// If reclaim for a group meets a page under writeback a second time, it waits for the write,
    /// because nothing else slows down the group's writers (cgroup version 1; Linux
    /// `writeback_throttling_sane`). Version 2 throttles the writers.
    pub group_reclaim_awaits_writes: bool,
    /// Groups have no dirty limits of their own, and all files of a device share one writeback
    /// (cgroup version 1). Version 2: each group is a dirty domain.
    pub no_group_writeback: bool,
    /// A swap slot is charged to a group only while its page is not in memory, because memory and
    /// swap share a counter (cgroup version 1; Linux `do_memsw_account`). Version 2: a slot is
    /// charged while it is in use.
    pub counts_memory_and_swap: bool,
    /// Reclaim for read-ahead may enter file systems, so it also frees dentries and inodes (up to
    /// 5.7). Linux 6.1: it may not.
    pub readahead_enters_fs: bool,
    /// The soft-limit stage works zone by zone (2.6.37). Linux 6.1: once per node.
    pub soft_limits_by_zone: bool,
    /// A group's shrink priority is applied before its protection is computed (the patch posted in
    /// 2019). Linux 6.1 has no shrink priority. All other variants of the policy compute the
    /// protection first.
    pub gates_before_protection: bool,

    // ---- ageing ----
    /// New and swapped-in anonymous pages start active, and one reference activates (up to 5.8).
    /// Linux 6.1: they start inactive, and the second reference activates.
    pub activates_new_anon: bool,
    /// Each group's own lists decide whether its active pages are deactivated (5.4). Linux 6.1: the
    /// lists of the target group decide, once per pass.
    pub ages_by_own_lists: bool,
    /// The rate of rotated pages decides how page cache and anonymous memory share the pressure (up
    /// to 5.7). Linux 6.1: the cost of reclaim decides.
    pub balances_by_rotation: bool,
    /// A huge page is split before it is swapped out (up to 4.12). Linux 6.1: it is swapped out in
    /// one piece if adjacent slots are free.
    pub splits_before_swap: bool,
    /// Evicted anonymous pages leave no shadow (up to 5.8). Linux 6.1: they do.
    pub forgets_anon: bool,
    /// Evicted pages of files leave no shadow (up to 3.14). Linux 6.1: they do.
    pub forgets_files: bool,
    /// References through mappings with advice random do not count (since 6.3). Linux 6.1: only
    /// references through mappings with advice sequential do not count.
    pub forgets_random: bool,
    /// A fault that drops its lock and is retried counts once (since 6.4). Linux 6.1: each attempt
    /// counts.
    pub counts_faults_once: bool,

    // ---- blocks of high order ----
    /// A light compaction precedes every reclaim (4.5). Linux 6.1: only the first one, and only for
    /// costly orders and for blocks that are not movable.
    pub compacts_before_every_reclaim: bool,
    /// After a reclaim that freed pages the allocation starts over; one more compaction ends it
    /// (4.5). Linux 6.1: compaction follows reclaim, at rising priorities.
    pub starts_over_after_reclaim: bool,
    /// A fault tries once for a huge page and does not wake kswapd (4.5). Linux 6.1: it tries the
    /// local node first, and `thp_defrag` decides which daemons are woken.
    pub asks_once_for_huge: bool,
    /// Reclaim for a block ends when it has freed the pages that compaction needs (up to 5.3).
    /// Linux 6.1: when a zone has them.
    pub reclaims_to_gap: bool,
    /// The low watermark decides whether compaction is worthwhile and whether it has succeeded, for
    /// all orders alike (4.5). Linux 6.1: the request's watermark and the result of the run decide.
    pub compacts_to_low_mark: bool,
    /// The scanners go frame by frame, obey skip bits of whole blocks, and start at the zone's ends
    /// (4.5). Linux 6.1 (since 5.1): they search the free lists, stride and set skip bits early.
    pub scans_linearly: bool,
    /// A run may end in the middle of a pageblock (4.5). Linux 6.1: it finishes the block.
    pub leaves_blocks_unfinished: bool,
    /// Pages move in the order of isolation (4.5). Linux 6.1: the most recently isolated first.
    pub migrates_oldest_first: bool,
    /// A run that may wait a little takes pages under writeback (4.5). Linux 6.1: only a fully
    /// synchronous run takes them.
    pub light_runs_take_writeback: bool,
    /// An asynchronous run leaves dirty file-system blocks on their lists (until 5.0: block devices
    /// had no `migratepage`). Linux 6.1: it isolates them, and fails if the journal holds them.
    pub leaves_dirty_metadata: bool,
    /// Any task may take the block that a compacting task has made (up to 5.0, or switched off).
    /// Linux 6.1: the compacting task captures the block.
    pub no_capture: bool,
    /// An allocation that found compaction deferred in every zone is not a stall (4.5). Linux 6.1:
    /// it counts as a stall and checks the free lists.
    pub deferred_is_no_stall: bool,
    /// kcompactd ignores skip bits and drains no per-CPU list (4.5). Linux 6.1: it obeys skip bits,
    /// and drains after a failure.
    pub kcompactd_is_plain: bool,
    /// kcompactd compacts on request only (up to 5.8). Linux 6.1: also when memory is fragmented.
    pub no_proactive_compaction: bool,
}

impl Era {
    pub(crate) fn of(config: &Config) -> Era {
        let kswapd_2_6_37 = config.kswapd == KswapdPolicy::Linux2637;
        let old_direct = config.direct_reclaim != DirectReclaimPolicy::Linux61;
        let old_lru = match config.lru {
            LruPolicy::Linux61 | LruPolicy::Linux612 => false,
            LruPolicy::Linux54 | LruPolicy::Linux33 => true,
        };
        let compaction_4_5 = config.compaction == CompactionPolicy::Linux45;
        let background = config.background_compaction;
        Era {
            kswapd_by_zone: config.kswapd == KswapdPolicy::Linux45,
            kswapd_wants_every_zone: kswapd_2_6_37,
            kswapd_restarts: kswapd_2_6_37,
            kswapd_compacts: background == BackgroundCompaction::Kswapd,
            no_kcompactd: match background {
                BackgroundCompaction::KcompactdEarly | BackgroundCompaction::Kcompactd => false,
                BackgroundCompaction::Kswapd | BackgroundCompaction::Off => true,
            },
            kcompactd_after_nap: background != BackgroundCompaction::KcompactdEarly,
            wakers_spare_kcompactd: config.kswapd != KswapdPolicy::Linux61,

            kswapd_writes_files: kswapd_2_6_37,
            tasks_write_files: old_direct,
            congestion_nap: match config.direct_reclaim {
                DirectReclaimPolicy::Linux61 => CongestionNap::Never,
                DirectReclaimPolicy::Linux2637 => CongestionNap::IfCongested,
                DirectReclaimPolicy::Linux2635 => CongestionNap::Always,
            },
            leaves_cpu_lists: config.direct_reclaim == DirectReclaimPolicy::Linux2635,
            reclaims_again_at_once: old_direct,
            shares_walks: config.group_walk == GroupWalkPolicy::Shared,
            group_reclaim_awaits_writes: config.cgroup == CgroupVersion::V1,
            no_group_writeback: config.cgroup == CgroupVersion::V1,
            counts_memory_and_swap: config.cgroup == CgroupVersion::V1,
            readahead_enters_fs: old_lru,
            soft_limits_by_zone: kswapd_2_6_37,
            gates_before_protection: config.shrink_priority == ShrinkPriorityPolicy::Posted,

            activates_new_anon: old_lru,
            ages_by_own_lists: old_lru,
            balances_by_rotation: old_lru,
            splits_before_swap: compaction_4_5 || config.lru == LruPolicy::Linux33,
            forgets_anon: old_lru,
            forgets_files: config.lru == LruPolicy::Linux33,
            forgets_random: config.lru == LruPolicy::Linux612,
            counts_faults_once: config.faults == FaultPolicy::Linux612,

            compacts_before_every_reclaim: compaction_4_5,
            starts_over_after_reclaim: compaction_4_5,
            asks_once_for_huge: compaction_4_5,
            reclaims_to_gap: compaction_4_5,
            compacts_to_low_mark: compaction_4_5,
            scans_linearly: compaction_4_5,
            leaves_blocks_unfinished: compaction_4_5,
            migrates_oldest_first: compaction_4_5,
            light_runs_take_writeback: compaction_4_5,
            leaves_dirty_metadata: compaction_4_5,
            no_capture: compaction_4_5 || config.compaction_capture == CompactionCapture::Off,
            deferred_is_no_stall: compaction_4_5,
            kcompactd_is_plain: compaction_4_5,
            no_proactive_compaction: compaction_4_5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::node::NodeSpec;
    use crate::process::Machine;

    #[test]
    fn the_default_configuration_is_linux_6_1() {
        assert_eq!(Era::of(&Config::default()), Era::default());
    }

    #[test]
    fn a_policy_that_is_set_changes_the_era_and_one_that_is_written_past_it_is_found() {
        let node = NodeSpec::x86_64(8 << 20, 0, 0);
        let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
        for (policy, value) in [
            ("kswapd", "linux-2.6.37"),
            ("kswapd", "linux-4.5"),
            ("direct_reclaim", "linux-2.6.37"),
            ("direct_reclaim", "linux-2.6.35"),
            ("lru", "linux-5.4"),
            ("lru", "linux-3.3"),
            ("lru", "linux-6.12"),
            ("faults", "linux-6.12"),
            ("background_compaction", "kcompactd"),
            ("background_compaction", "kswapd"),
            ("compaction_capture", "off"),
            ("compaction", "linux-4.5"),
            ("group_walk", "shared"),
            ("cgroup", "v1"),
            ("shrink_priority", "posted"),
        ] {
            let before = machine.era;
            machine.set_policy(policy, value).unwrap().discard();
            assert_ne!(machine.era, before, "{policy} = {value} changes nothing");
            machine.audit().unwrap();
        }
        machine.config.lru = LruPolicy::Linux61;
        assert!(machine.audit().is_err(), "the era does not follow from the configuration");
    }
}
