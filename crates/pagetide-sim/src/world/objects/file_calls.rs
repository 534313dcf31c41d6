//! System calls of tasks on files and pipes, as steps that allocate and free slab objects.
//!
//! Linux: the objects that open, unlink, pipe2, close and stat allocate and free, measured on 6.1
//! (docs/fidelity.md, "Kernel objects"). One system call allocates and frees several objects, and
//! each allocation may reclaim. So the task performs a call as a list of steps.
//!
//! Invariant: an object of a file or pipe is in `file_objects` exactly while it is in use. Files
//! outlive their task; pipes are closed with it.

use super::files::{is_late, is_table, ObjectStep, ObjectType, OPEN_PARTS};
use crate::world::SimWorld;
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::ProcessCall;
use pagetide_core::slab::cached::CachedKind;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::op::Op;

impl SimWorld {
    /// Starts a system call on a file or a pipe: queues its steps. Returns its CPU time.
    pub(crate) fn begin_file_call(&mut self, id: usize, op: Op) -> Nanos {
        let times = &self.setup.machine.call_times;
        let (missing, file, pipe) = ((0, times.missing), (1, times.file), (2, times.pipe));
        // A new file is opened and closed; a pipe has two ends to close.
        let (calls, (kind, known)) = match op {
            Op::MakeName { missing: true, .. } => (1, missing),
            Op::MakeName { .. } => (2, file),
            Op::RemoveName { .. } => (1, file),
            Op::ClosePipe { .. } => (2, pipe),
            _ => (1, pipe),
        };
        let ns = match known {
            Some(ns) => self.objects.rest_of_call(&mut self.tasks[id], kind, calls, ns),
            None => self.cpus.meter.charge(Price::Syscall, calls),
        };
        self.spend_in_kernel(id, ns);
        if let Some(caches) = self.objects.file_caches {
            let task = &mut self.tasks[id];
            caches.push_steps(op, &mut task.open_files, &mut task.steps);
        }
        ns
    }

    /// Performs a step of a system call on a file or pipe. Returns its CPU time.
    pub(crate) fn object_step(
        &mut self,
        id: usize,
        step: ObjectStep,
        cpu: Cpu,
        elapsed: Nanos,
    ) -> Nanos {
        match step {
            ObjectStep::Alloc(key, ObjectType { cache, account }) => {
                let ns = self.cpus.meter.charge(Price::Object, 1);
                self.spend_in_kernel(id, ns);
                let task = &mut self.tasks[id];
                task.step_of = Some(key);
                let memcg = self.machine.mm_memcg(task.mm).expect("every task has one");
                match self.machine.kmem_cache_alloc(cache, memcg, account, cpu) {
                    Some(object) => self.file_object_allocated(id, Outcome::Object(object)),
                    None => {
                        let node = self.machine.mem.cpu_node(cpu);
                        let call =
                            ProcessCall::kmem_alloc(task.mm, node, cache, account, Gfp::KERNEL);
                        // Any operation on files or pipes will do: `step_of` has the key.
                        self.begin_call(id, call, Op::OpenPipe { slot: key.number }, elapsed + ns);
                    }
                }
                ns
            }
            ObjectStep::Free(key) => {
                let Some(object) = self.tasks[id].file_objects.remove(&key) else { return 0 };
                match is_late(key) {
                    true => self.free_after_grace(object, cpu),
                    false => self.free_object_now(object, cpu),
                }
                let work = self.take_work();
                let cost = work + self.cpus.meter.charge(Price::Object, 1);
                self.spend_in_kernel(id, cost)
            }
            ObjectStep::Keep(key) => {
                if let Some(object) = self.tasks[id].file_objects.remove(&key) {
                    let kept = self.machine.cache_object(object, None, CachedKind::Dentry);
                    assert!(kept.is_ok(), "{object:?} was in use: {kept:?}");
                }
                0
            }
        }
    }

    /// Ends the allocation of a step. If it failed, the system call fails and frees the objects it
    /// has allocated.
    pub(crate) fn file_object_allocated(&mut self, id: usize, outcome: Outcome) {
        let task = &mut self.tasks[id];
        let Some(key) = task.step_of.take() else { return };
        task.usage.objects_asked += 1;
        if let Outcome::Object(object) = outcome {
            task.usage.objects_got += 1;
            let before = task.file_objects.insert(key, object);
            assert!(before.is_none(), "{key:?} is made once");
        } else {
            task.undo_file_call(key);
        }
    }

    /// Closes the pipes of a task that exits. Its files stay.
    pub(crate) fn close_all_pipes(&mut self, id: usize, cpu: Cpu) {
        // Complete a system call in progress: perform its frees, undo its allocations.
        let task = &mut self.tasks[id];
        let unmade = task.step_of.take().or_else(|| {
            task.steps.iter().find_map(|step| match step {
                ObjectStep::Alloc(key, _) => Some(*key),
                ObjectStep::Free(_) | ObjectStep::Keep(_) => None,
            })
        });
        if let Some(key) = unmade {
            task.undo_file_call(key);
        }
        while let Some(step) = self.tasks[id].steps.pop_front() {
            self.object_step(id, step, cpu, 0);
        }
        for (key, object) in std::mem::take(&mut self.tasks[id].file_objects) {
            // An open file is closed too.
            if key.is_pipe || usize::from(key.part) < OPEN_PARTS {
                match is_late(key) && !is_table(key) {
                    true => self.free_after_grace(object, cpu),
                    false => self.free_object_now(object, cpu),
                }
            }
        }
    }
}
