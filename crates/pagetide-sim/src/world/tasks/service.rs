//! Threads that serve requests: each takes one, or waits until it is called.
//!
//! Invariant: an idle thread of a service sleeps.

use super::requests::Service;
use crate::observe::{ActivitySlice, ObservationKind};
use crate::task::Blocked;
use crate::world::{SimWorld, SliceEnd, WorldEvent, WorldThread};
use pagetide_core::units::Nanos;
use pagetide_scenario::metric::Owner;
use pagetide_scenario::record::timeline::ServiceRow;

impl SimWorld {
    /// All threads of a program, the leader first.
    pub(crate) fn threads_of(&self, leader: usize) -> impl Iterator<Item = usize> {
        std::iter::once(leader).chain(self.tasks[leader].helpers.clone())
    }

    /// Moves the usage of the additional threads of a program to its leader.
    pub(crate) fn gather_threads(&mut self, leader: usize) {
        for id in self.tasks[leader].helpers.clone() {
            let both = self.tasks.get_disjoint_mut([leader, id]);
            let [leader, helper] = both.expect("a helper is another task");
            leader.absorb(helper);
        }
    }

    /// Ends the service of a stopped task: counts its unfinished requests. Those that have exceeded
    /// the deadline also count as late, so that a stall at the end of a run is visible.
    pub(crate) fn count_unfinished(&mut self, leader: usize) {
        if self.tasks[leader].service.as_ref().is_some_and(|service| !service.is_closed) {
            self.note_overload(leader);
        }
        let Some(service) = self.tasks[leader].service.take() else { return };
        let threads: Vec<usize> = self.threads_of(leader).collect();
        let serving = threads.iter().filter_map(|&id| self.tasks[id].serving.take());
        let mut arrived: Vec<Nanos> = serving.collect();
        arrived.extend(service.waiting.iter().map(|request| service.began + request.at_ns));
        let now = self.now;
        let deadline = service.arrivals.deadline_ns();
        let is_late =
            |at: &&Nanos| deadline.is_some_and(|deadline| now.saturating_sub(**at) > deadline);
        let late = arrived.iter().filter(is_late).count() as u64;
        if let Some(served) = self.tasks[leader].served_now() {
            served.late += late;
            served.unfinished += arrived.len() as u64;
        }
    }

    /// Notes that the service could not keep up with its requests until now.
    fn note_overload(&mut self, leader: usize) {
        let task = &self.tasks[leader];
        let results = task.phases.last().and_then(|run| run.served.as_deref());
        let (Some(service), Some(results)) = (&task.service, results) else { return };
        if let Some((lost, arrived)) = service.overload(results, self.now) {
            let name = Owner::new(&task.name).family().name;
            let percent = (100 * lost).div_ceil(arrived);
            self.results.note(format!(
                "task `{name}` is overloaded: {percent} % of its requests were dropped or still wait, \
                 so the latencies of the others depend on its queue and on the length of the run"
            ));
        }
    }

    /// True if a thread sleeps until a request or the next service needs it.
    pub(crate) fn waits_for_requests(&self, id: usize) -> bool {
        let leader = self.tasks[id].leader;
        match &self.tasks[leader].service {
            Some(service) => id != leader || service.idle.iter().any(|(_, idle)| *idle == id),
            None => id != leader,
        }
    }

    /// Ends a thread's request, if it has one, and takes the next. `None`: the thread continues.
    pub(crate) fn serve(&mut self, id: usize, elapsed: Nanos) -> Option<SliceEnd> {
        let leader = self.tasks[id].leader;
        let now = self.now + elapsed;
        if self.tasks[leader].service.is_none() {
            debug_assert_eq!(id, leader, "a thread outlives its service");
            self.begin_service(leader, now);
        }
        let arrived = self.tasks[id].serving.take();
        if let Some(arrived) = arrived {
            let over = ObservationKind::Ended(ActivitySlice::Request { arrived });
            self.observing.show(WorldThread::Task(id), now, over);
            self.request_done(leader, arrived, now);
        }
        let was_called = std::mem::take(&mut self.tasks[id].is_called);
        let service = self.tasks[leader].service.as_mut()?;
        service.busy -= u32::from(arrived.is_some());
        service.called -= u32::from(was_called);
        if let Some(request) = service.waiting.pop_front() {
            service.busy += 1;
            let arrived = service.began + request.at_ns;
            let task = &mut self.tasks[id];
            task.program.serve(&request);
            task.serving = Some(arrived);
            self.show_began(WorldThread::Task(id), now, ActivitySlice::Request { arrived });
            return None;
        }
        if id == leader && service.is_over() && service.latest() <= now {
            self.tasks[leader].service = None;
            self.tasks[leader].program.end_load();
            return None;
        }
        service.idle.retain(|(_, thread)| *thread != id);
        service.idle.push((now, id));
        self.tasks[id].blocked = Blocked::Sleeping;
        self.end_load_if_over(leader);
        Some(SliceEnd::Block)
    }

    /// Starts the load. All threads wait for the first request.
    fn begin_service(&mut self, leader: usize, now: Nanos) {
        let arrivals = self.tasks[leader].program.arrivals();
        let arrivals = arrivals.expect("a program that serves has arrivals");
        let helpers = self.tasks[leader].helpers.clone();
        let helpers = helpers.take(arrivals.threads() as usize - 1);
        let mut idle = Vec::with_capacity(arrivals.threads() as usize);
        for (thread, id) in helpers.enumerate() {
            let program = self.tasks[leader].program.thread(thread as u32 + 1);
            let regions = self.tasks[leader].regions.clone();
            let task = &mut self.tasks[id];
            task.program = program;
            task.regions = regions;
            task.began.get_or_insert(now);
            idle.push((now, id));
        }
        self.tasks[leader].service = Some(Box::new(Service::new(arrivals, now, idle)));
        if let Some(run) = self.tasks[leader].phases.last_mut() {
            run.served = Some(Box::default());
        }
        self.await_arrival(leader);
    }

    /// Schedules the arrival of the next request, or the end of the load.
    fn await_arrival(&mut self, leader: usize) {
        let Some(service) = &self.tasks[leader].service else { return };
        let at = match (service.next_at, service.arrivals.duration_ns()) {
            (Some(at), _) => at,
            // The load lasts for its duration, even if no more requests arrive.
            (None, Some(duration)) if service.arrivals.is_out_of_time() => duration,
            (None, _) => 0,
        };
        let at = service.began.saturating_add(at).max(self.now);
        self.queue.push(at, WorldEvent::Arrival(leader));
    }

    /// A request arrives, or the load ends.
    pub(crate) fn arrival_event(&mut self, leader: usize) {
        let Some(service) = &mut self.tasks[leader].service else { return };
        let Some(at) = service.next_at else {
            service.is_closed = true;
            self.note_overload(leader);
            self.end_load_if_over(leader);
            return;
        };
        let idle = service.idle.iter().enumerate().min_by_key(|(_, idle)| **idle);
        let idle = idle.map(|(place, _)| place);
        // A busy thread may have taken the request that a called thread was woken for.
        let nr_waiting = (service.waiting.len() as u32).saturating_sub(service.called);
        let called = if idle.is_some() || nr_waiting < service.arrivals.queue() {
            let request = service.arrivals.admit(at);
            service.waiting.push_back(request);
            let called = idle.map(|place| service.idle.swap_remove(place).1);
            if called.is_some() && service.idle.is_empty() {
                service.all_busy_since = self.now;
            }
            called
        } else {
            if let Some(served) = self.tasks[leader].served_now() {
                served.dropped += 1;
            }
            self.results.note_requests(leader, ServiceRow { dropped: 1, ..ServiceRow::default() });
            None
        };
        if let (Some(id), Some(service)) = (called, &mut self.tasks[leader].service) {
            service.called += 1;
            self.tasks[id].is_called = true;
            self.wake_sleeper(id);
        }
        if let Some(service) = &mut self.tasks[leader].service {
            service.next_at = service.arrivals.next_at();
        }
        self.await_arrival(leader);
    }

    /// Ends a voluntary sleep of a task.
    pub(crate) fn wake_sleeper(&mut self, id: usize) {
        let thread = WorldThread::Task(id);
        self.waits.cancel_timer(thread, &mut self.queue);
        self.tasks[id].blocked = Blocked::No;
        self.wake(thread);
    }

    fn request_done(&mut self, leader: usize, arrived: Nanos, now: Nanos) {
        let latency = now.saturating_sub(arrived);
        let service = self.tasks[leader].service.as_ref();
        let deadline = service.and_then(|service| service.arrivals.deadline_ns());
        let is_late = deadline.is_some_and(|deadline| latency > deadline);
        if let Some(served) = self.tasks[leader].served_now() {
            served.latency.record(latency);
            served.late += u64::from(is_late);
        }
        self.results.note_requests(leader, ServiceRow::served(latency, is_late));
    }

    /// If nothing remains to be served, makes the leader wake and end the phase.
    fn end_load_if_over(&mut self, leader: usize) {
        // A leader that must exit has been woken for that.
        if self.tasks[leader].blocked != Blocked::Sleeping {
            return;
        }
        let Some(service) = &mut self.tasks[leader].service else { return };
        if !service.is_over() {
            return;
        }
        // The last request may end later than now, in a time slice that has not ended.
        let at = service.latest().max(self.now);
        if let Some(place) = service.idle.iter().position(|(_, thread)| *thread == leader) {
            service.idle.swap_remove(place);
            self.waits.set_timer(WorldThread::Task(leader), at, &mut self.queue);
        }
    }
}
