//! The readings of watchers: the values of the files that each program reads.
//!
//! Invariant: a reading has only values that the program's files have.

use super::rss_kb;
use crate::task::SimTask;
use crate::world::SimWorld;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::groups::page_counter::UNLIMITED;
use pagetide_core::stats::psi::Psi;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::{MemcgId, Nanos};
use pagetide_scenario::model::{EarlyoomWatcher, ROOT_GROUP};
use pagetide_watcher::earlyoom::{Earlyoom, EarlyoomReading, ProcessReading};
use pagetide_watcher::koordinator::KoordinatorReading;
use pagetide_watcher::kubelet::{GroupUse, KubeletReading, PodReading};
use pagetide_watcher::kubelet_rank::KubeletPod;
use pagetide_watcher::lmkd::{Lmkd, LmkdProcess, LmkdReading, ZoneMarks};
use pagetide_watcher::meminfo::MeminfoReading;
use pagetide_watcher::senpai::{SenpaiReading, SenpaiReclaimReading, NO_HIGH};
use pagetide_watcher::systemd_oomd::{OomdGroupReading, OomdPreference, OomdReading};

impl SimWorld {
    fn meminfo_reading(&self) -> MeminfoReading {
        MeminfoReading::parse(&self.machine.proc_meminfo())
    }

    /// Programs that exist now: by index of their first thread.
    pub(super) fn processes(&self) -> impl Iterator<Item = (usize, &SimTask)> {
        let programs = self.tasks[..self.setup.tasks.len()].iter().enumerate();
        programs.filter(|(_, task)| task.exists())
    }

    /// Whether a group of the setup is `above` or below it.
    pub(super) fn is_in_group(&self, group: Option<usize>, above: usize) -> bool {
        let parents = std::iter::successors(group, |&group| self.setup.groups[group].parent);
        parents.into_iter().any(|group| group == above)
    }

    fn nr_processes_in(&self, group: usize, but: Option<usize>) -> u64 {
        let all = self.processes().filter(|(id, _)| Some(*id) != but);
        all.filter(|(_, task)| self.is_in_group(task.group, group)).count() as u64
    }

    fn psi_of(&self, memcg: MemcgId, now: Nanos) -> Psi {
        let mut psi = self.machine.memcgs()[memcg].psi.clone();
        psi.flush(now);
        psi
    }

    fn bytes(&self, pages: u64) -> u64 {
        self.machine.page_size().bytes_of(pages)
    }

    /// `usage` and `inactive_file` of a group, as cAdvisor reads them.
    fn group_use(&self, memcg: MemcgId) -> GroupUse {
        let sizes = self.machine.memcg_lru_sizes(memcg);
        GroupUse {
            usage: self.bytes(self.machine.memcgs()[memcg].memory.usage),
            inactive_file: self.bytes(sizes.cold_file()),
        }
    }

    pub(super) fn kubelet_reading(
        &self,
        pods: &[KubeletPod],
        kubepods: Option<usize>,
        draw: u64,
    ) -> KubeletReading {
        let meminfo = self.meminfo_reading();
        let root = self.machine.memcg_lru_sizes(ROOT);
        let node = GroupUse {
            usage: meminfo.mem_total.saturating_sub(meminfo.mem_free) << 10,
            inactive_file: self.bytes(root.cold_file()),
        };
        let memcg = |group: usize| self.groups.memcgs[group];
        let kubepods = kubepods.and_then(memcg).and_then(|memcg| {
            let max = self.machine.memcgs()[memcg].memory.max;
            (max != UNLIMITED).then(|| (self.bytes(max), self.group_use(memcg)))
        });
        let pods = pods.iter().map(|pod| {
            let group = pod.group as usize;
            let used = memcg(group).map_or_else(GroupUse::default, |memcg| self.group_use(memcg));
            let ending = self.processes().filter(|(_, task)| task.is_ending);
            let ending = ending.filter(|(_, task)| self.is_in_group(task.group, group));
            let nr_processes = self.nr_processes_in(group, None);
            PodReading { used, nr_processes, nr_ending: ending.count() as u64 }
        });
        let pods = pods.collect();
        KubeletReading { capacity: meminfo.mem_total << 10, node, kubepods, pods, draw }
    }

    pub(super) fn oomd_reading(
        &self,
        id: usize,
        preferences: &[(usize, OomdPreference)],
        now: Nanos,
    ) -> OomdReading {
        let root = OomdGroupReading {
            group: ROOT_GROUP,
            full_avg10: self.psi_of(ROOT, now).averages.full()[0],
            nr_processes: 1,
            ..OomdGroupReading::default()
        };
        let groups = self.groups.iter().map(|(group, memcg)| {
            let it = &self.machine.memcgs()[memcg];
            let events = self.machine.memcg_events(memcg);
            let parent = self.setup.groups[group].parent;
            let preference = preferences.iter().find(|(of, _)| *of == group);
            OomdGroupReading {
                group: group as u32,
                parent: Some(parent.map_or(ROOT_GROUP, |parent| parent as u32)),
                full_avg10: self.psi_of(memcg, now).averages.full()[0],
                memory_current: self.bytes(it.memory.usage),
                swap_current: self.bytes(it.swap.usage),
                pgscan: events.get(Event::PgscanKswapd) + events.get(Event::PgscanDirect),
                kills_as_one: it.oom_group,
                nr_processes: self.nr_processes_in(group, Some(id)),
                preference: preference.map_or(OomdPreference::None, |(_, of)| *of),
            }
        });
        let groups = std::iter::once(root).chain(groups).collect();
        OomdReading { meminfo: self.meminfo_reading(), groups }
    }

    pub(super) fn earlyoom_reading(
        &self,
        own: usize,
        of: &EarlyoomWatcher,
        earlyoom: &Earlyoom,
    ) -> EarlyoomReading {
        let mut processes = Vec::new();
        if earlyoom.reads_processes() {
            processes.extend(self.processes().filter(|(id, _)| *id != own).map(|(id, task)| {
                ProcessReading {
                    pid: self.pid_of(id),
                    rss_kb: rss_kb(&self.machine, task),
                    oom_score: self.machine.oom_score(task.mm),
                    oom_score_adj: self.setup.tasks[id].settings.oom_score_adj,
                    preference: of.preference(&task.name),
                }
            }));
        }
        let victim_lives = earlyoom.victim().is_some_and(|pid| self.process_of(pid).is_some());
        EarlyoomReading { meminfo: self.meminfo_reading(), processes, victim_lives }
    }

    /// The number of a task's process; each life of the task has another.
    fn pid_of(&self, id: usize) -> u32 {
        (id as u64 + self.tasks[id].restarts * self.tasks.len() as u64) as u32
    }

    /// The task of a process that has not ended.
    pub(super) fn process_of(&self, pid: u32) -> Option<usize> {
        let id = pid as usize % self.tasks.len();
        (self.tasks[id].exists() && self.pid_of(id) == pid).then_some(id)
    }

    pub(super) fn lmkd_reading(&self, own: usize, lmkd: &Lmkd, now: Nanos) -> LmkdReading {
        let psi = self.psi_of(ROOT, now);
        let vmstat = &self.machine.mem.vmstat;
        let zones = self.machine.mem.nodes.iter().flat_map(|node| node.populated_zones());
        let marks = zones.fold(ZoneMarks::default(), |sum, zone| {
            let protection = zone.lowmem_reserve.iter().max().copied().unwrap_or(0);
            ZoneMarks {
                min: sum.min + protection + zone.watermark_min,
                low: sum.low + protection + zone.watermark_low,
                high: sum.high + protection + zone.watermark_high,
            }
        });
        let processes =
            self.processes().filter(|(id, _)| *id != own).map(|(id, task)| LmkdProcess {
                pid: self.pid_of(id),
                oom_score_adj: self.setup.tasks[id].settings.oom_score_adj,
                rss_kb: rss_kb(&self.machine, task),
            });
        LmkdReading {
            some_ns: psi.some_ns,
            full_ns: psi.full_ns,
            meminfo: self.meminfo_reading(),
            page_kb: self.machine.page_size().kbytes_of(1),
            file_lru: self.machine.memcg_lru_sizes(ROOT).file(),
            workingset_refault_file: vmstat.get(Event::WorkingsetRefaultFile),
            pgscan_kswapd: vmstat.get(Event::PgscanKswapd),
            pgscan_direct: vmstat.get(Event::PgscanDirect),
            marks,
            processes: processes.collect(),
            victim_lives: lmkd.victim().is_some_and(|pid| self.process_of(pid).is_some()),
        }
    }

    pub(super) fn senpai_reading(&self, group: usize, now: Nanos) -> SenpaiReading {
        let Some(memcg) = self.groups.memcgs[group] else { return SenpaiReading::default() };
        let it = &self.machine.memcgs()[memcg];
        SenpaiReading {
            total_us: self.psi_of(memcg, now).some_ns / 1000,
            high: if it.memory.high == UNLIMITED { NO_HIGH } else { self.bytes(it.memory.high) },
            current: self.bytes(it.memory.usage),
        }
    }

    pub(super) fn senpai_reclaim_reading(&self, group: usize, now: Nanos) -> SenpaiReclaimReading {
        let Some(memcg) = self.groups.memcgs[group] else {
            return SenpaiReclaimReading::default();
        };
        let it = &self.machine.memcgs()[memcg];
        let sizes = self.machine.memcg_lru_sizes(memcg);
        let [some_avg10, some_avg60, _] = self.psi_of(memcg, now).averages.some();
        let free = u64::from(self.machine.swap().free());
        let own_free = it.swap.max.saturating_sub(it.swap.usage);
        let may_swap = self.machine.memcg_swappiness(memcg) > 0;
        SenpaiReclaimReading {
            some_avg10,
            some_avg60,
            current: self.bytes(it.memory.usage),
            min: self.bytes(it.memory.min),
            file: self.bytes(sizes.file()),
            anon: self.bytes(sizes.anon()),
            swap_free: if may_swap { self.bytes(free.min(own_free)) } else { 0 },
        }
    }

    pub(super) fn koordinator_reading(&self, group: usize) -> KoordinatorReading {
        let Some(memcg) = self.groups.memcgs[group] else { return KoordinatorReading::default() };
        let it = &self.machine.memcgs()[memcg];
        let max = Some(it.memory.max).filter(|max| *max != UNLIMITED);
        KoordinatorReading {
            current: self.bytes(it.memory.usage),
            max: max.map(|max| self.bytes(max)),
        }
    }
}
