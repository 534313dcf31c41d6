//! The differences of other kernels from Linux 6.1, with one field for each decision that differs.
//!
//! Linux has no such table. A policy ([`crate::config`]) names a kernel; the era lists how that
//! kernel differs. Code of the core reads the era, never the policy. An algorithm that differs as a
//! whole has its own file: `reclaim/{kswapd_by_zone,write_2_6_37}.rs`,
//! `ageing/two_lists/rotation_balance.rs`, `frames/slowpath/old.rs`,
//! `compaction/compaction_4_5.rs`.
//!
//! A field is `name: type = when it differs;`. It names a behaviour that Linux 6.1 does *not* have:
//! for Linux 6.1 each is false, or the first variant. A comment gives the other kernel in
//! parentheses: the name in the policy, such as "4.5", or the release of the change if it is known.
//!
//! Invariant: a machine's era is [`Era::of`] its configuration. It is computed when the machine is
//! made and when a policy changes; the audit compares the two.

use super::*;

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

macro_rules! era {
    (
        of $config:ident { $($common:stmt;)* }
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $differs:expr;)*
    ) => {
        /// The differences from Linux 6.1. [`Era::default`] is Linux 6.1.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub(crate) struct Era {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl Era {
            pub(crate) fn of($config: &Config) -> Era {
                $($common)*
                Era { $($field: $differs,)* }
            }

            /// Each field, and whether it is not as in Linux 6.1.
            #[cfg(test)]
            fn differences(&self) -> impl Iterator<Item = (&'static str, bool)> {
                let linux = Era::default();
                [$((stringify!($field), self.$field != linux.$field)),*].into_iter()
            }
        }
    };
}

era! {
    of config {
        let kswapd_2_6_37 = config.kswapd == KswapdPolicy::Linux2637;
        let kswapd_3_3 = config.kswapd == KswapdPolicy::Linux33;
        let lists_by_zone = config.kswapd != KswapdPolicy::Linux61;
        let background = config.background_compaction;
        let throttles_5_16 = config.direct_reclaim == DirectReclaimPolicy::Linux61;
        let old_direct = !throttles_5_16 && config.direct_reclaim != DirectReclaimPolicy::Linux59;
        let lru_3_3 = matches!(config.lru, LruPolicy::Linux33 | LruPolicy::Linux2637);
        let lru_4_5 = lru_3_3 || config.lru == LruPolicy::Linux45;
        let lru_5_4 = lru_4_5 || config.lru == LruPolicy::Linux54;
        let lru_5_8 = lru_5_4 || config.lru == LruPolicy::Linux58;
        let generations = config.lru == LruPolicy::Mglru
            && config.lru_gen_enabled & 1 != 0
            && !lists_by_zone;
        let lru_mglru = config.lru == LruPolicy::Mglru;
        let mglru_6_12 = config.mglru == MglruRules::Linux612;
        let lru_6_12 = config.lru == LruPolicy::Linux612 || lru_mglru && mglru_6_12;
        let compaction_4_5 = config.compaction == CompactionPolicy::Linux45;
    }

    // ---- kswapd ----
    /// Each zone has lists of its own; kswapd and tasks reclaim zone by zone (up to 4.7). Linux
    /// 6.1: a node has one set of lists, and kswapd has one goal for it.
    lists_by_zone: bool = lists_by_zone;
    /// A node is balanced when all its zones are, at any order; a zone is scanned up to eight times
    /// its high watermark (2.6.37). Up to 4.7: for blocks a quarter of the node is enough, and the
    /// gap is small. Linux 6.1: one zone is enough.
    kswapd_wants_every_zone: bool = kswapd_2_6_37;
    /// A scan by kswapd has no goal; after 32 freed pages kswapd starts again at the first scan
    /// priority (2.6.37, 3.3). Linux 6.1: the goal is the sum of the high watermarks, and the
    /// priority keeps falling until the goal is met.
    kswapd_restarts: bool = kswapd_2_6_37 || kswapd_3_3;
    /// kswapd compacts at the end of its rounds (up to 4.5). Linux 6.1: kcompactd does.
    kswapd_compacts: bool = background == BackgroundCompaction::Kswapd;
    /// There is no kcompactd (up to 4.5). Linux 6.1: one per node.
    no_kcompactd: bool = match background {
        BackgroundCompaction::KcompactdEarly | BackgroundCompaction::Kcompactd => false,
        BackgroundCompaction::Kswapd | BackgroundCompaction::Off => true,
    };
    /// kcompactd is woken when kswapd goes to full sleep (the patch of March 2016). Linux 6.1
    /// (since 4.6): before kswapd's short nap.
    kcompactd_after_nap: bool = background != BackgroundCompaction::KcompactdEarly;
    /// A request that cannot compact for itself wakes no daemon if the node is balanced (up to
    /// 4.7). Linux 6.1: it wakes kcompactd.
    wakers_spare_kcompactd: bool = lists_by_zone;

    // ---- reclaim ----
    /// kswapd writes any dirty file page and skips pages under writeback (2.6.37). Linux 6.1 (since
    /// 3.2): kswapd writes only pages that it meets a second time, on a node where all pages at the
    /// tail of the lists are dirty.
    kswapd_writes_files: bool = kswapd_2_6_37;
    /// A task in direct reclaim writes file pages, too (2.6.37, 2.6.35). Linux 6.1 (since 3.2): it
    /// never does.
    tasks_write_files: bool = old_direct && config.direct_reclaim != DirectReclaimPolicy::Linux33;
    /// Below priority 10 kswapd writes any dirty file page (3.2 to 3.10). Linux 6.1: see
    /// `kswapd_writes_files`.
    kswapd_writes_files_late: bool = kswapd_3_3;
    /// When a task sleeps because its reclaim frees little.
    congestion_nap: CongestionNap = match config.direct_reclaim {
        DirectReclaimPolicy::Linux61 | DirectReclaimPolicy::Linux59 => CongestionNap::Never,
        DirectReclaimPolicy::Linux33 | DirectReclaimPolicy::Linux2637 => CongestionNap::IfCongested,
        DirectReclaimPolicy::Linux2635 => CongestionNap::Always,
    };
    /// A task does not sleep although it freed next to nothing down to priority 1 (up to 5.15).
    /// Linux 6.1: it sleeps for a tick.
    hurries_without_progress: bool = !throttles_5_16;
    /// If direct reclaim has freed pages but the task then finds no free block, pages on per-CPU
    /// lists stay there (up to 2.6.35). Linux 6.1: the lists are drained.
    leaves_cpu_lists: bool = config.direct_reclaim == DirectReclaimPolicy::Linux2635;
    /// A task that must continue to reclaim does so before it checks the free lists (up to 4.6).
    /// Linux 6.1: it checks the free lists first.
    reclaims_again_at_once: bool = old_direct || lists_by_zone;
    /// No task waits for kswapd to refill the reserves (up to 3.5). Linux 6.1: a task waits while
    /// they are below half of the min watermarks.
    reserves_unguarded: bool = old_direct;
    /// A scan ends as soon as it has freed enough, except at the first priority (up to 3.9). Linux
    /// 6.1: the other kind is still scanned to the same share.
    scans_until_enough: bool = lru_3_3;
    /// Reclaim for a group scans 32 pages of a list that is too small for the priority, times the
    /// share of the kind (3.3). Linux 6.1: none.
    forces_small_scans: bool = config.lru == LruPolicy::Linux33;
    /// Reclaim for a group that has nothing to scan at the priority scans up to 32 pages of each
    /// list, times the share of the kind (3.10 to 4.11). Linux 6.1: nothing.
    forces_idle_scans: bool = config.lru == LruPolicy::Linux45;
    /// Pages of a list that are too few for a batch of 32 are saved for a later scan (up to
    /// 2.6.39). Linux 6.1: they are scanned as a smaller batch.
    saves_scans: bool = config.lru == LruPolicy::Linux2637;
    /// Tasks in direct reclaim share one walk over the groups and leave it when they have enough
    /// (since 6.8). Linux 6.1: each task visits every group.
    shares_walks: bool = config.group_walk == GroupWalkPolicy::Shared;
    /// If reclaim for a group meets a page under writeback a second time, it waits for the write,
    /// because nothing else slows down the group's writers (cgroup version 1; Linux
    /// `writeback_throttling_sane`). Version 2 throttles the writers.
    group_reclaim_awaits_writes: bool = config.cgroup == CgroupVersion::V1;
    /// Groups have no dirty limits of their own, and all files of a device share one writeback
    /// (cgroup version 1). Version 2: each group is a dirty domain.
    no_group_writeback: bool = config.cgroup == CgroupVersion::V1;
    /// A swap slot is charged to a group only while its page is not in memory, because memory and
    /// swap share a counter (cgroup version 1; Linux `do_memsw_account`). Version 2: a slot is
    /// charged while it is in use.
    counts_memory_and_swap: bool = config.cgroup == CgroupVersion::V1;
    /// A dirty page that reclaim may not write, and a page under writeback, stay on the inactive
    /// list (up to 4.10). Linux 6.1: they are activated, out of the way.
    keeps_unwritten: bool = lru_4_5;
    /// Reclaim for read-ahead may enter file systems, so it also frees dentries and inodes (up to
    /// 5.7). Linux 6.1: it may not.
    readahead_enters_fs: bool = lru_5_4;
    /// Only kswapd has a soft-limit stage, and it does not count the pages that this frees
    /// (2.6.37). Linux 6.1: direct reclaim has one, too, and the pages count.
    soft_limits_only_in_kswapd: bool = kswapd_2_6_37;
    /// A group's shrink priority is applied before its protection is computed (the patch posted in
    /// 2019). Linux 6.1 has no shrink priority. All other variants of the policy compute the
    /// protection first.
    gates_before_protection: bool = config.shrink_priority == ShrinkPriorityPolicy::Posted;

    /// Requests are spread over the zones of a node in proportion to the distance of their
    /// watermarks (3.12 to 4.7). Linux 6.1: the highest zone comes first.
    spreads_over_zones: bool = config.kswapd == KswapdPolicy::Linux45;

    // ---- ageing ----
    /// New anonymous pages start active, and one reference activates (up to 5.8). Linux 6.1: they
    /// start inactive, and the second reference activates.
    activates_new_anon: bool = lru_5_8;
    /// Swap read-ahead takes neighbours in the swap area (up to 4.13). Linux 6.1: neighbours in the
    /// address space, unless an area is on a rotating disk.
    swaps_in_by_slot: bool = config.swap_readahead != SwapReadaheadPolicy::Linux61;
    /// Swap read-ahead takes what is in use around the slot in its cluster, however few hits there
    /// were (up to 3.13). Linux 6.1: recent hits decide how much.
    swaps_in_whole_clusters: bool = config.swap_readahead == SwapReadaheadPolicy::Linux33;
    /// A swapped-in page is activated when it is mapped (4.8 to 5.8). Linux 6.1, and before 4.8:
    /// it starts inactive.
    activates_swapped_in: bool = lru_5_8 && !lru_4_5;
    /// Pages are ordered by generation (`lru_gen.enabled`). Linux 6.1, as Debian configures it: by
    /// the two lists.
    generations: bool = generations;
    /// Reclaimers age a group when they evict from it, and kswapd begins at a priority that suits
    /// the shortage (since 6.3). Linux 6.1: kswapd ages all groups before a round.
    ages_in_eviction: bool = generations && mglru_6_12;
    /// Global reclaim visits groups by generation, too, also if pages are not (since 6.3). Linux
    /// 6.1: it walks over the tree of groups.
    lists_groups: bool =
        lru_mglru && mglru_6_12 && config.mglru_memcg_lru == MglruMemcgLru::On;
    /// Eviction takes pages that are dirty or being written, and wakes the flusher for them (6.12.117
    /// of Debian, by a backport of 2026). Linux 6.1, and 6.12 at first: it moves them to the next
    /// generation.
    evicts_unwritten: bool = generations && mglru_6_12;
    /// Eviction that looks around without an open walk over page tables moves every used page it
    /// finds at once, and a walk stays open for the groups that follow (since 6.3). Linux 6.1: it
    /// moves them only if they are few, and each group has its own walk.
    activates_neighbours: bool = generations && mglru_6_12;
    /// A page that returns counts as a refault, however old it is; it counts as activated if its
    /// generation is recent (since 6.7). Linux 6.1: it counts only if its generation is recent.
    counts_old_refaults: bool = generations && mglru_6_12;
    /// Eviction looks at the entries around a used one (`lru_gen_look_around`).
    looks_around: bool = generations && config.mglru_look_around == MglruLookAround::On;
    /// Ageing walks over page tables.
    walks_tables: bool = generations
        && config.mglru_page_table_walks == MglruPageTableWalks::On
        && config.lru_gen_enabled & 2 != 0;
    /// Walks read only tables that were worth it before.
    filters_tables: bool = generations && config.mglru_bloom_filter == MglruBloomFilter::On;
    /// Walks see in the upper table whether a table was used.
    reads_table_use: bool = generations && config.lru_gen_enabled & 4 != 0;
    /// Refaults protect tiers of pages.
    protects_tiers: bool = generations && config.mglru_tiers == MglruTiers::On;
    /// Each group's own lists decide whether its active pages are deactivated (up to 5.7). Linux
    /// 6.1: the lists of the target group decide, once per pass.
    ages_by_own_lists: bool = lru_5_4;
    /// A file's active pages are deactivated while they are more than its inactive ones (up to
    /// 4.6). Linux 6.1: the wanted ratio depends on their number, as for anonymous memory.
    halves_file_lists: bool = lru_4_5;
    /// Refaults do not make reclaim deactivate active pages (up to 4.11). Linux 6.1: they do.
    ages_without_refaults: bool = lru_4_5;
    /// Page cache is not preferred while there is enough cold page cache, all lists are scanned at
    /// priority 0 only in their shares, and each share is larger by one (up to 3.9). Linux 6.1: it
    /// is preferred.
    keeps_cold_cache: bool = lru_3_3;
    /// The rate of rotated pages decides how page cache and anonymous memory share the pressure (up
    /// to 5.7). Linux 6.1: the cost of reclaim decides.
    balances_by_rotation: bool = lru_5_4;
    /// A huge page is split before it is swapped out (up to 4.12). Linux 6.1: it is swapped out in
    /// one piece if adjacent slots are free.
    splits_before_swap: bool = compaction_4_5 || lru_4_5;
    /// zswap writes pages of all groups in turn, until its pool is below its threshold, and a page
    /// that is read leaves the pool (since 6.8). Linux 6.1: one page for each store that finds the
    /// pool full, and the pool keeps the page.
    zswap_by_group: bool = config.zswap == ZswapPolicy::Linux612;
    /// A page of zeroes is not written: a bitmap of its area records it. zswap has no pages filled
    /// with one word (6.12). Linux 6.1: zram and zswap store it without memory.
    records_zero_pages: bool = config.zero_pages == ZeroPagesPolicy::Linux612;
    /// Evicted anonymous pages leave no shadow (up to 5.8). Linux 6.1: they do.
    forgets_anon: bool = lru_5_8;
    /// Evicted pages of files leave no shadow (up to 3.14). Linux 6.1: they do.
    forgets_files: bool = lru_3_3;
    /// References through mappings with advice random do not count (since 6.3). Linux 6.1: only
    /// references through mappings with advice sequential do not count.
    forgets_random: bool = lru_6_12;
    /// Shadows of swap are freed like those of files (6.12). Linux 6.1: they are kept.
    shrinks_swap_shadows: bool = lru_6_12;
    /// An area on a disk takes memory for the tree of its swap cache and for requests (6.12). Linux
    /// 6.1 does the same, but without the refills of 6.7 it hardly matters, so it is left out.
    swap_takes_memory: bool = lru_6_12;
    /// A write to `memory.reclaim` reclaims a quarter of what is left at a time (since 6.9). Linux
    /// 6.1: all of it.
    reclaims_in_quarters: bool = lru_6_12;
    /// Pages gather in batches of 31 before they reach a list (since 6.9). Linux 6.1: of 15.
    gathers_31_pages: bool = lru_6_12;
    /// A fault that drops its lock and is retried counts once (since 6.4). Linux 6.1: each attempt
    /// counts.
    counts_faults_once: bool = config.faults == FaultPolicy::Linux612;

    /// A fault keeps its lock while it starts a read (up to 5.0). Linux 6.1: it drops the lock, and
    /// is retried.
    reads_under_lock: bool = config.faults == FaultPolicy::Linux50;
    /// Pages that reclaim for a group frees count in `pgsteal_*` of the machine (up to 3.4). Linux
    /// 6.1: they do not, and neither do pages scanned.
    counts_all_steals: bool = lru_3_3;

    // ---- blocks of high order ----
    /// A light compaction precedes every reclaim (4.5). Linux 6.1: only the first one, and only for
    /// costly orders and for blocks that are not movable.
    compacts_before_every_reclaim: bool = compaction_4_5;
    /// After a reclaim that freed pages the allocation starts over; one more compaction ends it
    /// (4.5). Linux 6.1: compaction follows reclaim, at rising priorities.
    starts_over_after_reclaim: bool = compaction_4_5;
    /// A fault tries once for a huge page and does not wake kswapd (4.5). Linux 6.1: it tries the
    /// local node first, and `thp_defrag` decides which daemons are woken.
    asks_once_for_huge: bool = compaction_4_5;
    /// Reclaim for a block ends when it has freed the pages that compaction needs (up to 5.3).
    /// Linux 6.1: when a zone has them.
    reclaims_to_gap: bool = compaction_4_5;
    /// The low watermark decides whether compaction is worthwhile and whether it has succeeded, for
    /// all orders alike (4.5). Linux 6.1: the request's watermark and the result of the run decide.
    compacts_to_low_mark: bool = compaction_4_5;
    /// The scanners go frame by frame, obey skip bits of whole blocks, and start at the zone's ends
    /// (4.5). Linux 6.1 (since 5.1): they search the free lists, stride and set skip bits early.
    scans_linearly: bool = compaction_4_5;
    /// A run may end in the middle of a pageblock (4.5). Linux 6.1: it finishes the block.
    leaves_blocks_unfinished: bool = compaction_4_5;
    /// Pages move in the order of isolation (4.5). Linux 6.1: the most recently isolated first.
    migrates_oldest_first: bool = compaction_4_5;
    /// A run that may wait a little takes pages under writeback (4.5). Linux 6.1: only a fully
    /// synchronous run takes them.
    light_runs_take_writeback: bool = compaction_4_5;
    /// An asynchronous run leaves dirty file-system blocks on their lists (until 5.0: block devices
    /// had no `migratepage`). Linux 6.1: it isolates them, and fails if the journal holds them.
    leaves_dirty_metadata: bool = compaction_4_5;
    /// Any task may take the block that a compacting task has made (up to 5.0, or switched off).
    /// Linux 6.1: the compacting task captures the block.
    no_capture: bool = compaction_4_5 || config.compaction_capture == CompactionCapture::Off;
    /// An allocation that found compaction deferred in every zone is not a stall (4.5). Linux 6.1:
    /// it counts as a stall and checks the free lists.
    deferred_is_no_stall: bool = compaction_4_5;
    /// kcompactd ignores skip bits and drains no per-CPU list (4.5). Linux 6.1: it obeys skip bits,
    /// and drains after a failure.
    kcompactd_is_plain: bool = compaction_4_5;
    /// kcompactd compacts on request only (up to 5.8). Linux 6.1: also when memory is fragmented.
    no_proactive_compaction: bool = config.compaction != CompactionPolicy::Linux61;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::node::NodeSpec;
    use crate::process::Machine;
    use alloc::collections::BTreeMap;

    #[test]
    fn the_default_configuration_is_linux_6_1() {
        assert_eq!(Era::of(&Config::default()), Era::default());
    }

    #[test]
    fn a_policy_that_is_set_changes_the_era_and_one_that_is_written_past_it_is_found() {
        let node = NodeSpec::x86_64(8 << 20, 0, 0);
        let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
        let mut differs: BTreeMap<_, _> = machine.era.differences().collect();
        for policy in Policy::ALL {
            // These matter only with generations.
            let needs_generations = policy.name().starts_with("mglru");
            for &choice in policy.variants().iter().chain([&policy.default_variant()]) {
                if needs_generations {
                    machine.choose(LruPolicy::Mglru).unwrap().discard();
                }
                machine.choose(choice).unwrap().discard();
                machine.audit().unwrap();
                for (field, differs_here) in machine.era.differences() {
                    differs.entry(field).and_modify(|differs| *differs |= differs_here);
                }
            }
            if needs_generations {
                machine.choose(LruPolicy::default()).unwrap().discard();
            }
            assert_eq!(machine.era, Era::default(), "{}", policy.name());
        }
        assert!(differs.values().all(|differs| *differs), "no policy decides one: {differs:?}");
        machine.config.lru = LruPolicy::Linux54;
        assert!(machine.audit().is_err(), "the era does not follow from the configuration");
    }
}
