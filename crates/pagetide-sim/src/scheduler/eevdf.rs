//! The rules of EEVDF: "earliest eligible virtual deadline first".
//!
//! Linux 6.12 (since 6.6), kernel/sched/fair.c: `avg_vruntime`, `entity_eligible`, `pick_eevdf`,
//! `place_entity`, `update_deadline`, `update_entity_lag`. An entity is eligible while its virtual
//! run time is not above the average of its queue; the difference is its lag. Each entity asks for
//! a slice of 0.7 ms times the factor for CPUs, and its deadline is the virtual time at which it
//! has had the slice. The eligible entity with the earliest deadline runs. But an eligible entity
//! that runs keeps the CPU until its deadline (`RUN_TO_PARITY`). Deadlines are renewed at ticks and
//! wake-ups. So a woken task preempts at once if the running one has used up its slice, and else
//! waits for the next tick.
//!
//! A task that sleeps before its share is used up keeps the rest as its lag. One that has used more
//! stays as far ahead until the others have caught up.
//!
//! Differs from Linux: a sleeping task that is ahead does not count in the average (there it stays
//! on the queue, `DELAY_DEQUEUE`), and a change of a group's weight does not change its lag.
//!
//! Invariant: at least one waiting entity of a queue is eligible while none runs.

use super::queue::EntityId;
use super::{GroupId, Scheduler, TaskId, NICE_0_WEIGHT, ROOT, TICK_NS};
use pagetide_core::units::{Cpu, Nanos};

/// CPU time that an entity asks for, before the factor for CPUs (`sysctl_sched_base_slice`).
const BASE_SLICE_NS: Nanos = 700_000;

/// Sums over the entities of a queue.
struct QueueAverage {
    origin: i64,
    /// Vruntimes after `origin`, times weights.
    sum: i128,
    load: i128,
}

impl QueueAverage {
    fn vruntime(&self) -> i64 {
        let after = self.sum.div_euclid(self.load.max(1));
        self.origin.saturating_add(i64::try_from(after).unwrap_or(0))
    }

    /// Whether an entity with this vruntime has not had more than its share.
    fn permits(&self, vruntime: i64) -> bool {
        self.sum >= i128::from(vruntime - self.origin) * self.load
    }
}

impl Scheduler {
    fn virtual_slice(&self, weight: u64) -> i64 {
        (BASE_SLICE_NS * self.factor * NICE_0_WEIGHT / weight) as i64
    }

    /// The average of a queue on which the running entity has used `pending` ns that are not
    /// accounted yet.
    fn average(&self, cpu: Cpu, group: GroupId, pending: Nanos) -> QueueAverage {
        let queue = self.queue(cpu, group);
        let mut average = QueueAverage { origin: queue.min_vruntime, sum: 0, load: 0 };
        let waiting = queue.waiting.iter().map(|&(vruntime, _, who)| (vruntime, who));
        let running = queue.current.map(|who| (self.vruntime_now(cpu, who, pending), who));
        for (vruntime, who) in waiting.chain(running) {
            let weight = i128::from(self.entity(cpu, who).weight);
            average.sum += weight * i128::from(vruntime - average.origin);
            average.load += weight;
        }
        average
    }

    fn vruntime_now(&self, cpu: Cpu, who: EntityId, pending: Nanos) -> i64 {
        let is_current = self.queue(cpu, self.group_of(who)).current == Some(who);
        self.entity(cpu, who).vruntime_after(if is_current { pending } else { 0 })
    }

    /// Average virtual run time of a queue, to which positions on it are relative.
    pub(super) fn average_vruntime(&self, cpu: Cpu, group: GroupId) -> i64 {
        self.average(cpu, group, 0).vruntime()
    }

    /// The entity of a queue that should run (`pick_eevdf`).
    pub(super) fn pick_eevdf(&self, cpu: Cpu, group: GroupId, pending: Nanos) -> Option<EntityId> {
        let queue = self.queue(cpu, group);
        let average = self.average(cpu, group, pending);
        let is_eligible = |who| average.permits(self.vruntime_now(cpu, who, pending));
        if let Some((who, deadline)) = queue.runs_to {
            if self.entity(cpu, who).deadline == deadline && is_eligible(who) {
                return Some(who);
            }
        }
        let deadline = |who: EntityId| self.entity(cpu, who).deadline;
        let eligible = queue.waiting.iter().take_while(|place| average.permits(place.0));
        let waiting = eligible.min_by_key(|&&(_, sequence, who)| (deadline(who), sequence));
        let waiting = waiting.map(|place| place.2);
        match (waiting, queue.current.filter(|who| is_eligible(*who))) {
            (Some(waiting), Some(running)) if deadline(running) < deadline(waiting) => {
                Some(running)
            }
            (Some(waiting), _) => Some(waiting),
            (None, running) => running.or(queue.waiting.first().map(|place| place.2)),
        }
    }

    /// Sets the position of an entity that joins a queue (`place_entity`).
    pub(super) fn place_by_lag(
        &mut self,
        cpu: Cpu,
        group: GroupId,
        who: EntityId,
        now: Nanos,
        is_new: bool,
    ) {
        let pending = now.saturating_sub(self.rq(cpu).accounted_until);
        let average = self.average(cpu, group, pending);
        let middle = average.vruntime();
        let slice = self.virtual_slice(self.entity(cpu, who).weight);
        let entity = self.entity_mut(cpu, who);
        let lag = std::mem::take(&mut entity.lag);
        if lag < 0 && entity.vruntime > middle {
            // The others have not caught up yet.
            return;
        }
        entity.vruntime = middle;
        if lag > 0 && average.load > 0 {
            // With the entity the average moves towards it.
            let load = average.load + i128::from(entity.weight);
            let lag = i128::from(lag) * load / average.load;
            entity.vruntime = middle.saturating_sub(i64::try_from(lag).unwrap_or(i64::MAX));
        }
        let slice = if is_new { slice / 2 } else { slice };
        entity.deadline = entity.vruntime.saturating_add(slice);
    }

    /// Notes the lag of an entity that leaves its queue (`update_entity_lag`).
    pub(super) fn note_lag(&mut self, cpu: Cpu, group: GroupId, who: EntityId) {
        let middle = self.average_vruntime(cpu, group);
        let entity = self.entity(cpu, who);
        let longest = (2 * BASE_SLICE_NS * self.factor).max(TICK_NS);
        let limit = (longest * NICE_0_WEIGHT / entity.weight) as i64;
        let lag = middle.saturating_sub(entity.vruntime).clamp(-limit, limit);
        self.entity_mut(cpu, who).lag = lag;
    }

    /// Gives the running task and its groups new deadlines where they have reached theirs
    /// (`update_deadline`). `before`: an earlier time, in ns of CPU time before the accounted one.
    /// Returns whether an entity of such a queue waits that is not `woken`.
    fn renew_deadlines(
        &mut self,
        cpu: Cpu,
        before: Nanos,
        pending: Nanos,
        woken: Option<EntityId>,
    ) -> bool {
        let Some(task) = self.rq(cpu).current else { return false };
        let (mut who, mut waits) = (EntityId::Task(task), false);
        loop {
            let group = self.group_of(who);
            let weight = self.entity(cpu, who).weight;
            let since = (before * NICE_0_WEIGHT / weight) as i64;
            let vruntime = self.vruntime_now(cpu, who, pending) - since;
            if vruntime >= self.entity(cpu, who).deadline {
                let slice = self.virtual_slice(weight);
                self.entity_mut(cpu, who).deadline = vruntime.saturating_add(slice);
                let mut waiting = self.queue(cpu, group).waiting.iter();
                waits |= waiting.any(|place| Some(place.2) != woken);
            }
            if group == ROOT {
                return waits;
            }
            who = EntityId::Group(group);
        }
    }

    /// A tick found the running task on the CPU, `late` ns before the accounted time.
    pub(super) fn tick_eevdf(&mut self, cpu: Cpu, late: Nanos) {
        if self.renew_deadlines(cpu, late, 0, None) {
            self.rq_mut(cpu).needs_resched = true;
        }
    }

    /// The running task may leave its CPU.
    pub(super) fn leave_eevdf(&mut self, cpu: Cpu) {
        self.renew_deadlines(cpu, 0, 0, None);
    }

    /// Whether a woken entity takes over from the running one of its queue, or another one that has
    /// waited for the end of the slice.
    pub(super) fn preempts_eevdf(
        &mut self,
        cpu: Cpu,
        group: GroupId,
        woken: EntityId,
        now: Nanos,
    ) -> bool {
        let pending = now.saturating_sub(self.rq(cpu).accounted_until);
        let is_used_up = self.renew_deadlines(cpu, 0, pending, Some(woken));
        is_used_up || self.pick_eevdf(cpu, group, pending) == Some(woken)
    }

    /// A task yields: it gives up the rest of its slice, if it is eligible (`yield_task_fair`).
    pub(super) fn yield_eevdf(&mut self, cpu: Cpu, task: TaskId) {
        if self.rq(cpu).nr_running() == 1 {
            return;
        }
        self.renew_deadlines(cpu, 0, 0, None);
        let (who, group) = (EntityId::Task(task), self.task(task).group);
        let is_eligible = self.average(cpu, group, 0).permits(self.entity(cpu, who).vruntime);
        if is_eligible {
            let entity = self.entity_mut(cpu, who);
            entity.vruntime = entity.deadline;
            self.renew_deadlines(cpu, 0, 0, None);
        }
    }

    /// Another entity runs now: a group that was put back may not go on with its last one.
    pub(super) fn end_protection(&mut self, cpu: Cpu, put_back: EntityId) {
        let mut who = put_back;
        while let EntityId::Group(group) = who {
            let Some((below, _)) = self.queue_mut(cpu, group).runs_to.take() else { return };
            who = below;
        }
    }
}
