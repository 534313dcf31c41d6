//! Queues of runnable tasks and groups, ordered by virtual run time.
//!
//! Linux 6.1, kernel/sched/fair.c: `struct cfs_rq` and `struct sched_entity`; `enqueue_task_fair`,
//! `dequeue_task_fair`, `set_next_entity`, `put_prev_entity`. Each CPU has one queue for itself
//! (that of [`ROOT`]) and one for each group. On a CPU a group with runnable tasks is one entity of
//! its parent's queue.
//!
//! Invariant: `load` is the sum of the weights of all entities of the queue, including the running
//! one. A group is on its parent's queue exactly while its own queue has a task and is not
//! throttled. `nr_tasks` counts the tasks of the queue and of descendant groups, except throttled
//! ones.

use super::average::LoadClock;
use super::balance::Balancing;
use super::{GroupId, SchedState, Scheduler, TaskId, LATENCY_NS, NICE_0_WEIGHT, ROOT};
use pagetide_core::config::SchedulerPolicy;
use pagetide_core::units::{Cpu, Nanos};
use std::collections::BTreeSet;

/// Limit of the absolute value of a vruntime, so that differences of two do not overflow. Costs in
/// a scenario may be as large as a second, and an exit may pay one for each page.
const VRUNTIME_MAX: i64 = i64::MAX / 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntityId {
    Task(TaskId),
    /// The tasks of a group on this CPU.
    Group(GroupId),
}

/// Weight and vruntime, which determine the position on a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct SchedEntity {
    pub(super) weight: u64,
    /// CPU time over weight, in nanoseconds of a task with nice 0.
    pub(super) vruntime: i64,
    /// Remainder of the divisions.
    pub(super) remainder: u64,
    /// Order among equal vruntimes.
    pub(super) sequence: u64,
    /// Virtual time at which it has had its slice (EEVDF).
    pub(super) deadline: i64,
    /// Lag with which it left its queue (EEVDF).
    pub(super) lag: i64,
}

impl SchedEntity {
    pub(super) fn new(weight: u64) -> SchedEntity {
        SchedEntity { weight, ..SchedEntity::default() }
    }

    pub(super) fn charge(&mut self, ran_ns: Nanos) {
        let scaled = u128::from(ran_ns) * u128::from(NICE_0_WEIGHT) + u128::from(self.remainder);
        let weight = u128::from(self.weight);
        let charged = i64::try_from(scaled / weight).unwrap_or(i64::MAX);
        self.vruntime = self.vruntime.saturating_add(charged).min(VRUNTIME_MAX);
        self.remainder = (scaled % weight) as u64;
    }

    /// Moves the entity in virtual time. At the limit (after 50 days of CPU time of the lightest
    /// task, 70 years with nice 0) all are equal and run in turn.
    pub(super) fn shift(&mut self, by: i64) {
        let shifted = |at: i64| at.saturating_add(by).clamp(-VRUNTIME_MAX, VRUNTIME_MAX);
        self.vruntime = shifted(self.vruntime);
        self.deadline = shifted(self.deadline);
    }

    /// Its vruntime including CPU time that is not charged yet.
    pub(super) fn vruntime_after(&self, ran_ns: Nanos) -> i64 {
        let scaled = u128::from(ran_ns) * u128::from(NICE_0_WEIGHT) / u128::from(self.weight);
        self.vruntime.saturating_add(i64::try_from(scaled).unwrap_or(i64::MAX)).min(VRUNTIME_MAX)
    }
}

/// Position in a queue: by vruntime, then first come, first served.
type QueuePosition = (i64, u64, EntityId);

#[derive(Clone, Debug, Default)]
pub(super) struct CfsQueue {
    pub(super) current: Option<EntityId>,
    pub(super) waiting: BTreeSet<QueuePosition>,
    pub(super) load: u64,
    pub(super) nr_tasks: usize,
    pub(super) min_vruntime: i64,
    /// A woken entity that should run next, unless that is too unfair (`cfs_rq->next`).
    pub(super) next_buddy: Option<EntityId>,
    /// An entity that yielded (`cfs_rq->skip`).
    pub(super) skip_buddy: Option<EntityId>,
    /// The entity picked last, and its deadline then: it may run until it gets another one (EEVDF).
    pub(super) runs_to: Option<(EntityId, i64)>,
    pub(super) load_sum: u64,
    pub(super) up_to: LoadClock,
    /// The group as an entity of its parent's queue.
    pub(super) entity: SchedEntity,
    pub(super) is_on_parent: bool,
    /// When a task of the group was last picked, and when the group was last put back.
    pub(super) picked_at: Nanos,
    pub(super) put_at: Nanos,
    /// Rest of the CPU's slice of the group's quota (`runtime_remaining`).
    pub(super) runtime_left: i64,
    pub(super) throttled_since: Option<Nanos>,
}

impl CfsQueue {
    pub(super) fn new(weight: u64) -> CfsQueue {
        let entity = SchedEntity::new(weight);
        CfsQueue { entity, put_at: Nanos::MAX, ..CfsQueue::default() }
    }

    pub(super) fn catch_up(&mut self, now: Nanos) {
        if let Some(passed) = self.up_to.advance(now) {
            self.load_sum = passed.grow(self.load_sum, self.load);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct CpuRunQueue {
    /// By group; the first is the root's.
    pub(super) queues: Vec<CfsQueue>,
    pub(super) current: Option<TaskId>,
    /// Tasks that wait or run, unordered.
    pub(super) tasks: Vec<TaskId>,
    /// Time at which the running task was picked.
    pub(super) picked_at: Nanos,
    /// Time up to which the running task is accounted.
    pub(super) accounted_until: Nanos,
    pub(super) needs_resched: bool,
    pub(super) up_to: LoadClock,
    /// Decaying sum of the number of tasks (`runnable_sum`).
    pub(super) runnable_sum: u64,
    /// Decaying sum of the busy time (`util_sum`).
    pub(super) busy_sum: u64,
    pub(super) balancing: Balancing,
}

impl CpuRunQueue {
    pub(super) fn nr_running(&self) -> usize {
        self.queues[ROOT as usize].nr_tasks
    }

    pub(super) fn is_idle(&self) -> bool {
        self.nr_running() == 0
    }
}

impl Scheduler {
    pub(super) fn entity(&self, cpu: Cpu, who: EntityId) -> &SchedEntity {
        match who {
            EntityId::Task(task) => &self.task(task).entity,
            EntityId::Group(group) => &self.queue(cpu, group).entity,
        }
    }

    pub(super) fn entity_mut(&mut self, cpu: Cpu, who: EntityId) -> &mut SchedEntity {
        match who {
            EntityId::Task(task) => &mut self.task_mut(task).entity,
            EntityId::Group(group) => &mut self.queue_mut(cpu, group).entity,
        }
    }

    pub(super) fn group_of(&self, who: EntityId) -> GroupId {
        match who {
            EntityId::Task(task) => self.task(task).group,
            EntityId::Group(group) => self.groups[group as usize].parent,
        }
    }

    fn insert(&mut self, cpu: Cpu, group: GroupId, who: EntityId) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let entity = self.entity_mut(cpu, who);
        entity.sequence = sequence;
        let place = (entity.vruntime, sequence, who);
        let is_new = self.queue_mut(cpu, group).waiting.insert(place);
        assert!(is_new, "{who:?} waits once");
    }

    fn remove(&mut self, cpu: Cpu, group: GroupId, who: EntityId) {
        let entity = self.entity(cpu, who);
        let place = (entity.vruntime, entity.sequence, who);
        let was_there = self.queue_mut(cpu, group).waiting.remove(&place);
        assert!(was_there, "{who:?} waits on this queue");
    }

    fn join(&mut self, cpu: Cpu, group: GroupId, who: EntityId) {
        self.queue_mut(cpu, group).load += self.entity(cpu, who).weight;
        self.insert(cpu, group, who);
    }

    /// Removes a waiting or running entity from a queue.
    fn leave(&mut self, cpu: Cpu, group: GroupId, who: EntityId) {
        if self.rules == SchedulerPolicy::Linux612 {
            self.note_lag(cpu, group, who);
        }
        if self.queue(cpu, group).current == Some(who) {
            self.queue_mut(cpu, group).current = None;
        } else {
            self.remove(cpu, group, who);
        }
        let weight = self.entity(cpu, who).weight;
        let queue = self.queue_mut(cpu, group);
        queue.load -= weight;
        queue.next_buddy = queue.next_buddy.filter(|buddy| *buddy != who);
        queue.skip_buddy = queue.skip_buddy.filter(|buddy| *buddy != who);
        queue.runs_to = queue.runs_to.filter(|(running, _)| *running != who);
    }

    pub(super) fn enqueue(&mut self, task: TaskId, now: Nanos) {
        let (cpu, group) = (self.task(task).cpu, self.task(task).group);
        self.catch_up_task(task, now);
        self.catch_up(cpu, group, now);
        self.task_mut(task).state = SchedState::Queued;
        self.changed.push(task);
        self.touch_list(task);
        self.rq_mut(cpu).tasks.push(task);
        let was_empty = self.queue(cpu, group).is_empty();
        self.join(cpu, group, EntityId::Task(task));
        if was_empty {
            self.begin_to_use_quota(cpu, group, now);
        }
        self.add_runnable(cpu, group, 1, now);
    }

    /// Adds `nr` runnable tasks to the counts of a group and its ancestors, and puts them on their
    /// parents' queues.
    pub(super) fn add_runnable(&mut self, cpu: Cpu, mut group: GroupId, nr: usize, now: Nanos) {
        loop {
            let queue = self.queue_mut(cpu, group);
            queue.nr_tasks += nr;
            if group == ROOT || queue.throttled_since.is_some() {
                return;
            }
            group = self.join_parent(cpu, group, now);
        }
    }

    /// Puts a group with tasks on its parent's queue, and returns the parent.
    fn join_parent(&mut self, cpu: Cpu, group: GroupId, now: Nanos) -> GroupId {
        let parent = self.groups[group as usize].parent;
        self.update_share(cpu, group, now);
        if !self.queue(cpu, group).is_on_parent {
            // Place it like a waking task.
            match self.rules {
                SchedulerPolicy::Linux61 => {
                    let placed = self.queue(cpu, parent).min_vruntime - self.sleeper_credit();
                    let entity = &mut self.queue_mut(cpu, group).entity;
                    entity.vruntime = entity.vruntime.max(placed);
                }
                SchedulerPolicy::Linux612 => {
                    self.place_by_lag(cpu, parent, EntityId::Group(group), now, false);
                }
            }
            let was_empty = self.queue(cpu, parent).is_empty();
            self.queue_mut(cpu, group).is_on_parent = true;
            self.join(cpu, parent, EntityId::Group(group));
            if was_empty {
                self.begin_to_use_quota(cpu, parent, now);
            }
        }
        parent
    }

    /// Removes a task from its queue or CPU, to sleep or to move.
    pub(super) fn dequeue(&mut self, task: TaskId, now: Nanos) {
        let (cpu, group) = (self.task(task).cpu, self.task(task).group);
        self.catch_up_task(task, now);
        self.catch_up(cpu, group, now);
        self.task_mut(task).state = SchedState::Asleep;
        self.changed.push(task);
        let tasks = &mut self.rq_mut(cpu).tasks;
        let at = tasks.iter().position(|it| *it == task).expect("an awake task is on a CPU");
        tasks.swap_remove(at);
        self.leave(cpu, group, EntityId::Task(task));
        self.sub_runnable(cpu, group, 1, now);
    }

    /// Subtracts `nr` tasks that are no longer runnable from the counts of a group and its
    /// ancestors.
    pub(super) fn sub_runnable(&mut self, cpu: Cpu, mut group: GroupId, nr: usize, now: Nanos) {
        loop {
            let queue = self.queue_mut(cpu, group);
            queue.nr_tasks -= nr;
            if group == ROOT || queue.throttled_since.is_some() {
                return;
            }
            group = self.leave_parent(cpu, group, now);
        }
    }

    fn leave_parent(&mut self, cpu: Cpu, group: GroupId, now: Nanos) -> GroupId {
        let parent = self.groups[group as usize].parent;
        if self.queue(cpu, group).is_empty() {
            self.take_from_parent(cpu, group);
            self.give_back_quota(cpu, group, now);
        } else {
            self.update_share(cpu, group, now);
        }
        parent
    }

    /// Removes a group from its parent's queue, if it is on it.
    pub(super) fn take_from_parent(&mut self, cpu: Cpu, group: GroupId) {
        if std::mem::take(&mut self.queue_mut(cpu, group).is_on_parent) {
            let parent = self.groups[group as usize].parent;
            self.leave(cpu, parent, EntityId::Group(group));
        }
    }

    /// Puts the running task and its groups back on their queues, except those already dequeued.
    pub(super) fn put_previous(&mut self, cpu: Cpu, now: Nanos) {
        let mut group = ROOT;
        while let Some(who) = self.queue_mut(cpu, group).current.take() {
            self.insert(cpu, group, who);
            match who {
                EntityId::Task(task) => {
                    self.task_mut(task).state = SchedState::Queued;
                    self.changed.push(task);
                    return;
                }
                EntityId::Group(below) => {
                    self.queue_mut(cpu, below).put_at = now;
                    group = below;
                }
            }
        }
    }

    /// Makes an entity the current one of its queue.
    pub(super) fn set_next(&mut self, cpu: Cpu, group: GroupId, who: EntityId, now: Nanos) {
        self.remove(cpu, group, who);
        let deadline = self.entity(cpu, who).deadline;
        let before = self.queue_mut(cpu, group).runs_to.replace((who, deadline));
        if let Some((before, _)) = before.filter(|(before, _)| *before != who) {
            self.end_protection(cpu, before);
        }
        let queue = self.queue_mut(cpu, group);
        queue.current = Some(who);
        queue.skip_buddy = None;
        queue.next_buddy = queue.next_buddy.filter(|buddy| *buddy != who);
        if let EntityId::Group(below) = who {
            let below = self.queue_mut(cpu, below);
            // A group that is put back and picked at the same time has not left the CPU.
            if below.put_at != now {
                below.picked_at = now;
            }
        }
    }

    pub(super) fn update_min_vruntime(&mut self, cpu: Cpu, group: GroupId) {
        let queue = self.queue(cpu, group);
        let running = queue.current.map(|current| self.entity(cpu, current).vruntime);
        let first = queue.waiting.first().map(|place| place.0);
        if let Some(least) = running.into_iter().chain(first).min() {
            let queue = self.queue_mut(cpu, group);
            queue.min_vruntime = queue.min_vruntime.max(least);
        }
    }

    /// Longest lag at which a waking task is placed: half a period (`GENTLE_FAIR_SLEEPERS`).
    pub(super) fn sleeper_credit(&self) -> i64 {
        (LATENCY_NS * self.factor / 2) as i64
    }

    /// Moves a task to the recent end of its CPU's list (`cfs_tasks`).
    pub(super) fn touch_list(&mut self, task: TaskId) {
        let sequence = self.next_list;
        self.next_list += 1;
        self.task_mut(task).listed = sequence;
    }
}
