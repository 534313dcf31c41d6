//! Calls of the page-policy plug-in, if there is one.
//!
//! Linux has no such hook. The file that owns a decision passes its built-in answer. This file
//! gathers the facts, asks the plug-in, and corrects the answer. Without a plug-in nothing of this
//! runs. An access through a mapping never calls the plug-in.
//!
//! Invariant: only this file sets a page's plug-in mark. Others only clear or copy it.

use super::ScanControl;
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::page::{PageFlags, Place};
use crate::plugin::{
    ClonePagePolicy, GroupPlan, GroupViews, InitialList, ListSizes, PageVerdict, PageView,
    PolicyFault, Refault, ScanBalance, ScanPressure,
};
use crate::units::{Cpu, MemcgId, NodeId, Pfn};
use crate::vmstat::NodeStat;

#[derive(Clone, Copy, Default)]
struct PageFacts {
    /// Number of mappings through which the page was used; whether one of them is executable.
    references: (u32, bool),
    referenced: bool,
    refault: Option<Refault>,
}

impl<O: Owners> Manager<O> {
    /// Asks the plug-in about a page, and stores the mark that the plug-in gives it.
    fn ask_about<A>(
        &mut self,
        pfn: Pfn,
        found: PageFacts,
        ask: impl FnOnce(&mut dyn ClonePagePolicy, &mut PageView<'_>) -> A,
    ) -> Option<A> {
        let Manager { memcgs, nodes, mem, config, plugins, .. } = self;
        let plugin = plugins.pages.as_mut()?;
        let page = &mem.pages[pfn.idx()];
        let groups = GroupViews { memcgs, nodes, mem, config, node: page.node() };
        let memcg = if page.memcg.is_some() { page.memcg } else { ROOT };
        let mut view = PageView {
            mark: page.mark,
            frame: pfn,
            group: groups.view(memcg),
            is_file: page.is_file_lru(),
            is_active: page.has(PageFlags::ACTIVE),
            nr_pages: page.nr_pages(),
            mapcount: page.mapcount,
            nr_references: found.references.0,
            executable: found.references.1,
            referenced: found.referenced,
            dirty: page.has(PageFlags::DIRTY),
            workingset: page.has(PageFlags::WORKINGSET),
            refault: found.refault,
        };
        let answer = ask(&mut *plugin.policy, &mut view);
        let mark = view.mark;
        mem.pages[pfn.idx()].mark = mark;
        Some(answer)
    }

    /// Lets a plug-in choose the list of a new page.
    #[inline]
    pub(crate) fn place_new_page(&mut self, pfn: Pfn) {
        if self.plugins.pages.is_some() {
            self.place_by_plugin(pfn);
        }
    }

    #[cold]
    #[inline(never)]
    fn place_by_plugin(&mut self, pfn: Pfn) {
        let active = self.mem.pages[pfn.idx()].has(PageFlags::ACTIVE);
        if self.begins_active_by_plugin(pfn, None, active) {
            self.mem.pages[pfn.idx()].set(PageFlags::ACTIVE);
        } else {
            self.mem.pages[pfn.idx()].clear(PageFlags::ACTIVE);
        }
    }

    /// Whether a new page starts on the active list; without a plug-in, the built-in answer.
    #[inline]
    pub(crate) fn begins_active(
        &mut self,
        pfn: Pfn,
        refault: Option<Refault>,
        linux: bool,
    ) -> bool {
        if self.plugins.pages.is_none() {
            return linux;
        }
        self.begins_active_by_plugin(pfn, refault, linux)
    }

    #[cold]
    #[inline(never)]
    fn begins_active_by_plugin(&mut self, pfn: Pfn, refault: Option<Refault>, linux: bool) -> bool {
        let linux = if linux { InitialList::Active } else { InitialList::Inactive };
        let found = PageFacts { refault, ..PageFacts::default() };
        let start = self.ask_about(pfn, found, |plugin, page| plugin.on_new(page, linux));
        start.unwrap_or(linux) == InitialList::Active
    }

    /// A page was used by a system call, or through a mapping that is removed ([`crate::lru`]).
    #[cold]
    #[inline(never)]
    pub(crate) fn mark_accessed_by_plugin(&mut self, cpu: Cpu, pfn: Pfn) {
        let page = &self.mem.pages[pfn.idx()];
        let referenced = page.has(PageFlags::REFERENCED);
        let may_move = !page.has(PageFlags::ACTIVE) && page.place != Place::Unevictable;
        let linux = referenced && may_move;
        let found = PageFacts { referenced, ..PageFacts::default() };
        let activate = self.ask_about(pfn, found, |plugin, page| plugin.on_referenced(page, linux));
        let page = &mut self.mem.pages[pfn.idx()];
        if may_move && activate.unwrap_or(linux) {
            page.clear(PageFlags::REFERENCED);
            let (memcg, node) = (page.memcg, page.node());
            self.activate_page(cpu, pfn);
            self.workingset_age_nonresident(memcg, node, 1);
        } else {
            page.set(PageFlags::REFERENCED);
        }
    }

    /// The plugin's decision about a page at the end of its inactive list, and whether it spares the
    /// page.
    #[cold]
    #[inline(never)]
    pub(super) fn judge_by_plugin(
        &mut self,
        pfn: Pfn,
        references: (u32, bool),
        referenced: bool,
        linux: PageVerdict,
    ) -> (PageVerdict, bool) {
        let found = PageFacts { references, referenced, refault: None };
        let judged = self.ask_about(pfn, found, |plugin, page| plugin.judge(page, linux));
        let judged = judged.unwrap_or(linux);
        let goes = |judged| matches!(judged, PageVerdict::Reclaim | PageVerdict::ReclaimClean);
        let spared = goes(linux) && !goes(judged)
            || linux == PageVerdict::Reclaim && judged == PageVerdict::ReclaimClean;
        (judged, spared)
    }

    /// Whether a page at the end of its active list stays there.
    #[cold]
    #[inline(never)]
    pub(super) fn stays_by_plugin(
        &mut self,
        pfn: Pfn,
        references: (u32, bool),
        linux: bool,
    ) -> bool {
        let referenced = self.mem.pages[pfn.idx()].has(PageFlags::REFERENCED);
        let found = PageFacts { references, referenced, refault: None };
        let stays = self.ask_about(pfn, found, |plugin, page| plugin.stays_active(page, linux));
        stays.unwrap_or(linux)
    }

    /// Whether a group's inactive list is too short for its active list.
    #[inline]
    pub(crate) fn inactive_is_low(&self, memcg: MemcgId, node: NodeId, file: bool) -> bool {
        let (inactive, active) = if file {
            (NodeStat::NrInactiveFile, NodeStat::NrActiveFile)
        } else {
            (NodeStat::NrInactiveAnon, NodeStat::NrActiveAnon)
        };
        let inactive = self.lruvec_page_state(memcg, node, inactive);
        let active = self.lruvec_page_state(memcg, node, active);
        let linux = self.inactive_is_short(inactive, active);
        match &self.plugins.pages {
            None => linux,
            Some(plugin) => {
                let sizes = ListSizes { is_file: file, inactive, active };
                plugin.policy.inactive_is_low(&sizes, linux)
            }
        }
    }

    /// How page cache and anonymous memory share a group's pressure. The built-in answer replaces
    /// an impossible one. An answer that takes pressure from a kind spares it.
    #[cold]
    #[inline(never)]
    pub(super) fn balance_by_plugin(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
        plan: GroupPlan,
        linux: ScanBalance,
    ) -> ScanBalance {
        let may_swap = sc.may_swap && self.memcg_swap_left(memcg) > 0;
        if sc.overrules_plugins || !may_swap {
            return linux;
        }
        let swappiness = self.memcg_swappiness(memcg);
        let Manager { memcgs, nodes, mem, config, plugins, .. } = self;
        let Some(plugin) = &mut plugins.pages else { return linux };
        let pressure = ScanPressure {
            group: GroupViews { memcgs, nodes, mem, config, node }.view(memcg),
            priority: plan.priority,
            swappiness,
            anon_cost: sc.anon_cost,
            file_cost: sc.file_cost,
            cache_trim_mode: sc.cache_trim_mode,
            file_is_tiny: sc.file_is_tiny,
        };
        let balance = plugin.policy.balance(&pressure, linux);
        if balance == linux || balance.is_possible() {
            sc.plugin_spared |= balance.spares(linux);
            return balance;
        }
        plugins.note(PolicyFault::ImpossibleBalance);
        linux
    }
}
