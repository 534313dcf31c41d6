//! The differences of other kernels from Linux 6.1: one field for each place in today's code that asks.
//!
//! Linux has no such thing. A policy ([`crate::config`]) names a kernel; an era lists the differences
//! of that kernel. Today's files ask the era, never the policy. An algorithm that differs as a whole is
//! a function in a file of its own: `reclaim/{kswapd_2_6_37,kswapd_4_5,write_2_6_37,old_balance}.rs`,
//! `slowpath/old.rs`, `compaction/compaction_4_5.rs`.
//!
//! Every field names a behaviour that Linux 6.1 does *not* have: for Linux 6.1 each is false, or the
//! first of its variants. "4.5" and the like stand for the kernel that the policy describes; where the
//! release of the change is known, it is named.
//!
//! Invariant: a machine's era is [`Era::of`] its configuration. It is computed when the machine is made
//! and when a policy is set; the audit compares.

use crate::config::{
    BackgroundCompaction, CgroupVersion, CompactionCapture, CompactionPolicy, Config,
    DirectReclaimPolicy, FaultPolicy, GroupWalkPolicy, KswapdPolicy, LruPolicy,
    ShrinkPriorityPolicy,
};

/// When a task that reclaims with little success sleeps until a disk has less to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum CongestionNap {
    /// Never. It sleeps for a tick where the same pages come round again (Linux 6.1).
    #[default]
    Never,
    /// If a disk is congested and the lists have shown it (`wait_iff_congested`, 2.6.37).
    IfCongested,
    /// Always (`congestion_wait`, up to 2.6.35).
    Always,
}

/// The answers. [`Era::default`] is Linux 6.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Era {
    // ---- kswapd ----
    /// kswapd balances zone after zone, each up to its own mark (4.5). Linux 6.1 (since 4.8): the
    /// node, with one goal.
    pub kswapd_by_zone: bool,
    /// A node is balanced when each of its zones is (2.6.37). Linux 6.1: when one is.
    pub kswapd_wants_every_zone: bool,
    /// A round of kswapd has no goal, and the descent starts again after 32 freed pages (2.6.37).
    /// Linux 6.1: the goal is the sum of the high marks, and the descent goes on.
    pub kswapd_restarts: bool,
    /// kswapd compacts at the end of its rounds (up to 4.5). Linux 6.1: kcompactd does.
    pub kswapd_compacts: bool,
    /// There is no kcompactd (up to 4.5). Linux 6.1: one a node.
    pub no_kcompactd: bool,
    /// kcompactd is woken when kswapd goes to sleep for good (the patch of March 2016). Linux 6.1
    /// (since 4.6): before kswapd's nap.
    pub kcompactd_after_nap: bool,
    /// A request that cannot compact for itself, on a balanced node, wakes nobody (2.6.37, 4.5). Linux
    /// 6.1: it wakes kcompactd.
    pub wakers_spare_kcompactd: bool,

    // ---- reclaim ----
    /// kswapd writes any dirty file page it meets, and passes over pages under writeback (2.6.37).
    /// Linux 6.1 (since 3.2): it writes only pages met twice, on a node whose tail is all dirty.
    pub kswapd_writes_files: bool,
    /// The same of a task that reclaims for itself (2.6.37, 2.6.35). Linux 6.1 (since 3.2): it writes no
    /// file page.
    pub tasks_write_files: bool,
    /// Sleep of a task whose reclaim frees little.
    pub congestion_nap: CongestionNap,
    /// Pages just freed stay on per-CPU lists while their reclaimer finds none (up to 2.6.35). Linux
    /// 6.1: the lists are drained.
    pub leaves_cpu_lists: bool,
    /// A task that must go on reclaims again before it looks at the free lists (up to 4.6). Linux 6.1:
    /// it looks first.
    pub reclaims_again_at_once: bool,
    /// Tasks share their walk over the groups and leave it when they have enough (since 6.8). Linux
    /// 6.1: each visits every group.
    pub shares_walks: bool,
    /// Reclaim for a group waits for the write of a page that it meets twice: nothing else slows the
    /// group's writers down (cgroup version 1; Linux `writeback_throttling_sane`). Version 2 slows them.
    pub group_reclaim_awaits_writes: bool,
    /// A group pays for a swap slot only while the slot's page is out of memory, for memory and swap have one counter
    /// (cgroup version 1; Linux `do_memsw_account`). Version 2: as long as the slot is in use.
    pub counts_memory_and_swap: bool,
    /// The soft-limit stage goes zone by zone (2.6.37). Linux 6.1: once a node.
    pub soft_limits_by_zone: bool,
    /// A group's shrink priority is heeded before its protection is computed (the posted patch of
    /// 2019). Linux 6.1 has no shrink priority; all other forms compute the protection first.
    pub gates_before_protection: bool,

    // ---- ageing ----
    /// Anonymous pages that are new, back from swap, or referenced once count as in use (up to 5.8).
    /// Linux 6.1: they begin inactive, and the second reference activates.
    pub activates_new_anon: bool,
    /// Whether active lists are challenged is asked of each group's own lists (5.4). Linux 6.1: once a
    /// pass, of the lists of the group that reclaim is about.
    pub ages_by_own_lists: bool,
    /// Page cache and anonymous memory share pressure by what was found in use (up to 5.7). Linux 6.1:
    /// by what reclaiming them has cost.
    pub balances_by_rotation: bool,
    /// Evicted anonymous pages leave no shadow (up to 5.8). Linux 6.1: they do.
    pub forgets_anon: bool,
    /// Evicted pages of files leave no shadow (up to 3.14). Linux 6.1: they do.
    pub forgets_files: bool,
    /// References of mappings with advice random do not count (since 6.3). Linux 6.1: only those of mappings
    /// with advice sequential do not.
    pub forgets_random: bool,
    /// A fault that has dropped the lock and is tried again counts once (since 6.4). Linux 6.1: each attempt.
    pub counts_faults_once: bool,

    // ---- blocks of high order ----
    /// A light compaction precedes every reclaim (4.5). Linux 6.1: for costly orders and for the
    /// kernel's own blocks, once.
    pub compacts_before_every_reclaim: bool,
    /// An allocation whose reclaim has freed something starts over; one more compaction ends it (4.5).
    /// Linux 6.1: compaction follows reclaim, at rising priorities.
    pub starts_over_after_reclaim: bool,
    /// A fault asks for a huge page once, and leaves kswapd asleep (4.5). Linux 6.1: first near by, and
    /// `thp_defrag` says who is woken.
    pub asks_once_for_huge: bool,
    /// Reclaim for a block ends when it has freed what compaction needs (up to 5.3). Linux 6.1: when a
    /// zone has it.
    pub reclaims_to_gap: bool,
    /// Whether compaction is worth while, and whether it has succeeded, is judged by the low mark, for
    /// each order alike (4.5). Linux 6.1: by the request's mark, and by what the run says.
    pub compacts_to_low_mark: bool,
    /// The scanners go frame by frame, heed skip bits of whole blocks, and begin at the zone's ends (4.5).
    /// Linux 6.1 (since 5.1): they search the free lists for a place, take strides, mark blocks early.
    pub scans_linearly: bool,
    /// A run may end in the middle of a pageblock (4.5). Linux 6.1: the block is finished.
    pub leaves_blocks_unfinished: bool,
    /// Pages are moved in the order in which they were isolated (4.5). Linux 6.1: the newest first.
    pub migrates_oldest_first: bool,
    /// A run that may wait a little takes pages under writeback (4.5). Linux 6.1: only one that may wait
    /// for all.
    pub light_runs_take_writeback: bool,
    /// A run that may not wait leaves the file system's dirty blocks on their lists (until 5.0: block devices had
    /// no `migratepage`). Linux 6.1: it takes them, and fails if the journal holds them.
    pub leaves_dirty_metadata: bool,
    /// The block that a task has made is anybody's (up to 5.0, or switched off). Linux 6.1: the task
    /// takes it from under the scanner.
    pub no_capture: bool,
    /// An allocation that found compaction deferred in every zone has not tried (4.5). Linux 6.1: it counts
    /// as a stall, and looks at the free lists.
    pub deferred_is_no_stall: bool,
    /// kcompactd scans whatever the skip bits say, and drains no per-CPU list (4.5). Linux 6.1: it heeds
    /// them, and drains after a failure.
    pub kcompactd_is_plain: bool,
    /// kcompactd compacts on request only (up to 5.8). Linux 6.1: also when memory is fragmented.
    pub no_proactive_compaction: bool,
}

impl Era {
    /// What the policies of a configuration stand for.
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
            counts_memory_and_swap: config.cgroup == CgroupVersion::V1,
            soft_limits_by_zone: kswapd_2_6_37,
            gates_before_protection: config.shrink_priority == ShrinkPriorityPolicy::Posted,

            activates_new_anon: old_lru,
            ages_by_own_lists: old_lru,
            balances_by_rotation: old_lru,
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
    use crate::node::NodeSpec;
    use crate::process::Machine;

    #[test]
    fn the_default_configuration_is_linux_6_1_of_which_nothing_is_otherwise() {
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
        assert!(machine.audit().is_err(), "the era is another configuration's");
    }
}
