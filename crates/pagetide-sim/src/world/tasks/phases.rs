//! Phases of tasks: their begin, their end, and the report of their counters.
//!
//! A task of a comparison with a kernel reports between two phases, which takes CPU time. Levels are
//! read in the middle of the report; the times of the phase end before it.
//!
//! Invariant: while a task reports, `reporting` has the phase, and the task does nothing else.

use crate::task::{difference, snapshot, PhaseReport, PhaseRun, PhaseTimes};
use crate::world::results::slabs::SlabLevels;
use crate::world::SimWorld;
use pagetide_core::units::Nanos;
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::model;

impl SimWorld {
    pub(crate) fn begin_phase(&mut self, id: usize, phase: u32, elapsed: Nanos) {
        let vmstat = snapshot(&self.machine.mem.vmstat);
        let times = self.times_of(id, self.now, elapsed);
        let work = self.cpus.meter.of_task(id);
        let groups = self.group_counts();
        let program_ns = self.setup.machine.program_times.of(id, phase as usize);
        let task = &mut self.tasks[id];
        // A fit of costs has an equation for each run.
        if work.is_none() {
            task.forget_earlier_run(phase);
        }
        task.program_ns = program_ns;
        task.paced = None;
        task.until_base = None;
        task.file_call = None;
        task.phases.push(PhaseRun {
            phase,
            began: self.now + elapsed,
            usage: task.usage.clone(),
            vmstat,
            groups,
            times,
            work,
            ..PhaseRun::default()
        });
    }

    /// Ends a phase, or begins its report.
    pub(crate) fn leave_phase(&mut self, id: usize, phase: u32, elapsed: Nanos) {
        self.tasks[id].program_ns = 0;
        // Reporting takes time; levels are read in the middle of it.
        if self.report_ns() > 0 {
            let cpu_ns = self.cpu_of(id) + elapsed;
            let (ended, user_ns) = (self.now + elapsed, self.tasks[id].usage.user_ns);
            self.tasks[id].reporting = Some(PhaseReport { phase, ended, cpu_ns, user_ns });
            self.tasks[id].compute_left = self.report_ns() / 2;
        } else {
            self.end_phase(id, phase, elapsed);
        }
    }

    /// The first half of a report is over: reads the levels, and goes on with the second half.
    pub(crate) fn finish_report(&mut self, id: usize, report: PhaseReport, elapsed: Nanos) {
        let run = self.tasks[id].phases.last();
        let (cpu_ns, user_ns) = run.map_or((0, 0), |run| (run.times.cpu_ns, run.usage.user_ns));
        self.end_phase(id, report.phase, elapsed);
        if let Some(run) = self.tasks[id].phases.last_mut() {
            run.ended = Some(report.ended);
            run.times.cpu_ns = report.cpu_ns.saturating_sub(cpu_ns);
            run.usage.user_ns = report.user_ns.saturating_sub(user_ns);
        }
        self.tasks[id].compute_left = self.report_ns() / 2;
    }

    /// Time that a task needs to report the counters of a phase.
    fn report_ns(&self) -> Nanos {
        self.setup.machine.call_times.report.unwrap_or(0)
    }

    /// CPU time of a program's threads before this time slice.
    fn cpu_of(&self, id: usize) -> Nanos {
        self.threads_of(id).map(|thread| self.tasks[thread].cpu_ns).sum()
    }

    /// CPU times so far, with `elapsed` in this time slice, and the pressure at a time.
    fn times_of(&mut self, id: usize, at: Nanos, elapsed: Nanos) -> PhaseTimes {
        self.machine.psi_flush(at);
        let psi = self.machine.psi();
        PhaseTimes {
            cpu_ns: self.cpu_of(id) + elapsed,
            kswapd_ns: self.daemons.times.kswapd_cpu(),
            flusher_ns: self.daemons.times.flusher_cpu(),
            some_ns: psi.some_ns,
            full_ns: psi.full_ns,
        }
    }

    /// Ends a phase at `elapsed` after the start of this time slice.
    pub(crate) fn end_phase(&mut self, id: usize, phase: u32, elapsed: Nanos) {
        let now = self.now + elapsed;
        self.gather_threads(id);
        let times = self.times_of(id, now, elapsed);
        let work = self.cpus.meter.of_task(id);
        let mut extra = self.residency(id, phase);
        extra.extend(crate::task::compressed_levels(&self.machine));
        let (levels, zones) = (self.machine.levels(), self.machine.free_blocks_of_zones());
        let slabs = SlabLevels::of(&self.machine, &self.setup);
        let groups = self.group_counts();
        let vmstat = &self.machine.mem.vmstat;
        let task = &mut self.tasks[id];
        let usage = task.usage.clone();
        if let Some(run) = task.phases.iter_mut().rev().find(|run| run.phase == phase) {
            // A killed task may have started the phase later in a time slice that has not ended.
            run.ended = Some(now.max(run.began));
            run.usage = usage.since(&run.usage);
            run.vmstat = difference(vmstat, &run.vmstat);
            run.times = times.since(run.times);
            if let (Some(work), Some(before)) = (work, &mut run.work) {
                for (before, now) in before.iter_mut().flatten().zip(work.iter().flatten()) {
                    *before = now - *before;
                }
            }
            (run.levels, run.zones) = (levels, zones);
            run.slabs = slabs;
            run.extra = extra;
            let before = std::mem::replace(&mut run.groups, groups);
            run.groups.iter_mut().for_each(|group| group.since(&before));
        }
    }

    /// Extra metrics of a phase: resident pages of the hot and cold parts of a working set, or of a
    /// locked or advised region (with errno).
    pub(crate) fn residency(&self, id: usize, phase: u32) -> Vec<crate::task::PhaseLevel> {
        let workload = &self.setup.tasks[id].phases[phase as usize].workload;
        let set = match workload {
            model::Workload::WorkingSet(set) => set,
            model::Workload::Lock(model::Lock { part, .. }) => {
                return self.resident(id, &part.region).into_iter().collect();
            }
            model::Workload::Advise(model::AdviseWorkload { part, .. }) => {
                let errno = (declared::ERRNO, self.tasks[id].errno as u64);
                return self.resident(id, &part.region).into_iter().chain([errno]).collect();
            }
            _ => return Vec::new(),
        };
        let task = &self.tasks[id];
        let hot_percent = u64::from(set.hot_page_percent);
        let mut found = Vec::new();
        let mut count = |metrics: [&'static MetricDecl; 2], region: &str, pages: u64| {
            let Some(number) = task.program.region_number(region) else { return };
            let Some(&vma) = task.regions.get(number as usize) else { return };
            let hot = pages * hot_percent / 100;
            let mut resident = [0u64; 2];
            for index in 0..pages {
                let page = pagetide_scenario::workload::scatter(index, pages);
                if self.machine.is_in_core(vma, page) {
                    resident[usize::from(index >= hot)] += 1;
                }
            }
            found.extend(metrics.into_iter().zip(resident));
        };
        if let Some((region, pages)) = &set.anon {
            count([declared::ANON_HOT, declared::ANON_COLD], region, *pages);
        }
        if let Some((_, region, pages, _)) = &set.file {
            count([declared::FILE_HOT, declared::FILE_COLD], region, *pages);
        }
        found
    }
}
