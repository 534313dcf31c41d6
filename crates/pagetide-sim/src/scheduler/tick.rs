//! Accounting of the running task, preemption at ticks, and the choice of the next task.
//!
//! Linux 6.1, kernel/sched/fair.c: `update_curr`, `check_preempt_tick`, `sched_slice`,
//! `pick_next_entity`. A task and its groups are charged together, and each is compared with its
//! own siblings.
//!
//! Invariant: the chosen task and all its groups wait on queues of the CPU.

use super::queue::EntityId;
use super::{next_tick, GroupId, Scheduler, TaskId, MIN_GRANULARITY_NS, NR_LATENCY, ROOT, TICK_NS};
use pagetide_core::config::SchedulerPolicy;
use pagetide_core::units::{Cpu, Nanos};

impl Scheduler {
    /// Charges the running task for `ran_ns` of CPU time.
    pub fn account(&mut self, cpu: Cpu, task: TaskId, ran_ns: Nanos) {
        assert_eq!(self.rq(cpu).current, Some(task), "{cpu:?} runs another task");
        let charged = self.task_mut(task);
        charged.stats.exec_ns += ran_ns;
        charged.entity.charge(ran_ns);
        let group = charged.group;
        let rq = self.rq_mut(cpu);
        let (from, until) = (rq.accounted_until, rq.accounted_until + ran_ns);
        rq.accounted_until = until;
        self.task_mut(task).ran_until = until;
        self.update_min_vruntime(cpu, group);
        let tick = (until >= next_tick(from)).then_some(until);
        self.account_groups(cpu, group, ran_ns, tick);
        if tick.is_some() && self.rules == SchedulerPolicy::Linux612 {
            self.tick_eevdf(cpu, until % TICK_NS);
        }
    }

    /// Charges the groups of the running task. `tick`: a tick has passed.
    fn account_groups(&mut self, cpu: Cpu, mut group: GroupId, ran_ns: Nanos, tick: Option<Nanos>) {
        if group == ROOT {
            return;
        }
        if self.use_quota(cpu, group, ran_ns, tick) {
            self.rq_mut(cpu).needs_resched = true;
        }
        while group != ROOT {
            if let Some(until) = tick {
                self.catch_up(cpu, group, until);
                self.update_share(cpu, group, until);
            }
            self.entity_mut(cpu, EntityId::Group(group)).charge(ran_ns);
            group = self.groups[group as usize].parent;
            self.update_min_vruntime(cpu, group);
        }
    }

    /// True if the CPU should call [`pick_next`](Self::pick_next): a woken task preempts, or at the
    /// last tick the slice was used up or another task too far behind. A tick is evaluated by the
    /// first call after it, on the queue at that time.
    pub fn should_resched(&self, cpu: Cpu, now: Nanos) -> bool {
        let rq = self.rq(cpu);
        let Some(current) = rq.current else {
            return !rq.is_idle();
        };
        if rq.needs_resched {
            return true;
        }
        if rq.nr_running() == 1 || self.rules == SchedulerPolicy::Linux612 {
            return false;
        }
        let tick = now / TICK_NS * TICK_NS;
        if tick <= rq.picked_at {
            return false;
        }
        let (mut who, mut picked_at) = (EntityId::Task(current), rq.picked_at);
        loop {
            let group = self.group_of(who);
            if self.is_over_slice(cpu, group, who, tick - picked_at) {
                return true;
            }
            if group == ROOT {
                return false;
            }
            who = EntityId::Group(group);
            picked_at = self.queue(cpu, group).picked_at;
        }
    }

    /// True if an entity has used up its slice, or another one of its queue is too far behind
    /// (`check_preempt_tick`).
    fn is_over_slice(&self, cpu: Cpu, group: GroupId, who: EntityId, ran_ns: Nanos) -> bool {
        let queue = self.queue(cpu, group);
        let Some(&(first_vruntime, ..)) = queue.waiting.first() else {
            return false;
        };
        let entity = self.entity(cpu, who);
        let slice_ns = self.slice(cpu, group, entity.weight, queue.load, 0);
        if ran_ns > slice_ns {
            return true;
        }
        let behind_ns = entity.vruntime - first_vruntime;
        ran_ns >= MIN_GRANULARITY_NS * self.factor && behind_ns > slice_ns as i64
    }

    /// Slice in wall time of an entity with `weight` on a group's queue of `load`, if the CPU had
    /// `more` additional tasks (`sched_slice`).
    pub(super) fn slice(
        &self,
        cpu: Cpu,
        mut group: GroupId,
        weight: u64,
        load: u64,
        more: usize,
    ) -> Nanos {
        let rq = self.rq(cpu);
        let shares = ((rq.nr_running() + more) as u64).max(NR_LATENCY);
        let granularity_ns = MIN_GRANULARITY_NS * self.factor;
        let mut slice_ns = shares * granularity_ns * weight / load;
        while group != ROOT {
            let parent = self.groups[group as usize].parent;
            let (own, load) = (self.queue(cpu, group), self.queue(cpu, parent).load);
            let load = if own.is_on_parent { load } else { load + own.entity.weight };
            slice_ns = slice_ns * own.entity.weight / load;
            group = parent;
        }
        slice_ns.max(granularity_ns)
    }

    /// Chooses the task that should run, and makes it and its groups the current entities of their
    /// queues (`pick_next_task_fair`).
    pub(super) fn choose_down(&mut self, cpu: Cpu, now: Nanos) -> Option<TaskId> {
        let mut group = ROOT;
        loop {
            let who = self.choose(cpu, group)?;
            self.set_next(cpu, group, who, now);
            match who {
                EntityId::Task(task) => return Some(task),
                EntityId::Group(below) => group = below,
            }
        }
    }

    /// The entity of a queue that should run (`pick_next_entity`).
    fn choose(&self, cpu: Cpu, group: GroupId) -> Option<EntityId> {
        if self.rules == SchedulerPolicy::Linux612 {
            return self.pick_eevdf(cpu, group, 0);
        }
        let queue = self.queue(cpu, group);
        let mut places = queue.waiting.iter();
        let &(left_vruntime, _, left) = places.next()?;
        let mut chosen = left;
        if queue.skip_buddy == Some(left) {
            // Skip the task that yielded, unless it is far behind the second.
            if let Some(&(second_vruntime, _, second)) = places.next() {
                if !self.is_far_behind(cpu, left, second_vruntime) {
                    chosen = second;
                }
            }
        }
        if let Some(buddy) = queue.next_buddy {
            let buddy_vruntime = self.entity(cpu, buddy).vruntime;
            debug_assert!(buddy_vruntime >= left_vruntime);
            if !self.is_far_behind(cpu, left, buddy_vruntime) {
                chosen = buddy;
            }
        }
        Some(chosen)
    }
}
