//! Slab objects of files, pipes and negative dentries.
//!
//! Linux: the objects that open, unlink, pipe2, close and stat allocate and free, measured on 6.1
//! (docs/fidelity.md, "Kernel objects"). One system call allocates and frees several objects, and
//! each allocation may reclaim. So the task performs a call as a list of steps.
//!
//! Differs from Linux: the first lookup in a directory reads nothing. A table of more than 1024
//! open files, which is not a slab object, uses no memory. The open files of a process are its
//! pipes only.
//!
//! Invariant: an object of a file or pipe is in `file_objects` exactly while it is in use. Files
//! outlive their task; pipes are closed with it.

use crate::task::{ObjectKey, ObjectStep, ObjectType};
use crate::world::SimWorld;
use pagetide_core::config::KmemAccounting;
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::Machine;
use pagetide_core::process::ProcessCall;
use pagetide_core::slab::cached::CachedKind;
use pagetide_core::slab::{CacheSpec, SlabError};
use pagetide_core::units::{CacheId, Cpu, Nanos};
use pagetide_scenario::costs::Price;
use pagetide_scenario::op::Op;

/// Slab caches for files and pipes: name, object size in bytes, accounted, reclaimable.
const CACHES: [(&str, u32, bool, bool); 6] = [
    ("dentry", 192, true, true),
    ("inode_cache", 640, true, true),
    ("shmem_inode_cache", 784, true, false),
    ("filp", 256, true, false),
    ("lsm_inode_cache", 32, false, false),
    ("lsm_file_cache", 24, false, false),
];

/// The machine's slab caches for files and pipes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileCaches {
    dentry: ObjectType,
    inode: ObjectType,
    shmem_inode: ObjectType,
    filp: ObjectType,
    lsm_inode: ObjectType,
    lsm_file: ObjectType,
    /// `pipe_inode_info`.
    pipe: ObjectType,
    /// Ring of 16 buffers.
    pipe_ring: ObjectType,
    /// Objects of a table of open files, by its size ([`TABLE_SIZES`]).
    tables: [[ObjectType; TABLE_PARTS]; TABLE_SIZES.len()],
}

/// Sizes of a table of open files after the 64 entries that a process has initially. A full table
/// grows to the next size (Linux `alloc_fdtable`).
const TABLE_SIZES: [u32; 4] = [128, 256, 512, 1024];
/// Objects of a table: the table itself, its pointers, its bitmaps.
const TABLE_PARTS: usize = 3;
/// kmalloc caches of these objects, by table size: 56 bytes; 8 bytes an entry; 2 bits an entry and
/// one for 64.
const TABLES: [[&str; TABLE_PARTS]; TABLE_SIZES.len()] =
    [["64", "1k", "64"], ["64", "2k", "96"], ["64", "4k", "192"], ["64", "8k", "512"]];
/// Entries in the initial table, which is part of a process.
const PLACES_AT_FIRST: u32 = 64;
/// `ObjectKey::number` of a table of the first size; larger tables have the numbers below it.
const TABLE_NUMBER: u32 = u32::MAX;

impl FileCaches {
    /// Finds or creates the caches.
    pub fn new(machine: &mut Machine) -> Result<FileCaches, SlabError> {
        let mut parts = [ObjectType { cache: CacheId::NONE, account: false }; CACHES.len()];
        for (part, (name, object_size, account, reclaimable)) in parts.iter_mut().zip(CACHES) {
            // An object mix may have created the cache; it accounts each object by itself.
            let cache = match machine.find_cache(name) {
                Some(found) => found,
                None => machine.create_cache(CacheSpec {
                    name: name.into(),
                    object_size,
                    reclaimable,
                    account,
                })?,
            };
            *part = ObjectType { cache, account };
        }
        let [dentry, inode, shmem_inode, filp, lsm_inode, lsm_file] = parts;
        // Without kmem accounting, the kernel has no separate kmalloc caches for accounted objects.
        let prefix = match machine.config.kmem_accounting {
            KmemAccounting::On => "kmalloc-cg-",
            KmemAccounting::Off => "kmalloc-",
        };
        let kmalloc = |size: &str| {
            let cache = machine.find_cache(&format!("{prefix}{size}"));
            let cache = cache.ok_or(SlabError::UnknownCache)?;
            Ok::<_, SlabError>(ObjectType { cache, account: true })
        };
        let (pipe, pipe_ring) = (kmalloc("192")?, kmalloc("1k")?);
        let mut tables = [[pipe; TABLE_PARTS]; TABLE_SIZES.len()];
        for (table, sizes) in tables.iter_mut().zip(TABLES) {
            for (part, size) in table.iter_mut().zip(sizes) {
                *part = kmalloc(size)?;
            }
        }
        Ok(FileCaches {
            dentry,
            inode,
            shmem_inode,
            filp,
            lsm_inode,
            lsm_file,
            pipe,
            pipe_ring,
            tables,
        })
    }

    /// Objects of a file on tmpfs; the first two ([`OPEN_PARTS`]) exist only while it is open.
    fn file(&self) -> [ObjectType; 5] {
        [self.filp, self.lsm_file, self.dentry, self.shmem_inode, self.lsm_inode]
    }

    /// Objects of a pipe with both ends open.
    fn pipe(&self) -> [ObjectType; 9] {
        let [filp, lsm_file] = [self.filp, self.lsm_file];
        let ends = [filp, lsm_file, filp, lsm_file];
        [
            self.inode,
            self.lsm_inode,
            self.pipe,
            self.pipe_ring,
            self.dentry,
            ends[0],
            ends[1],
            ends[2],
            ends[3],
        ]
    }
}

/// Number of objects of a file that close() frees.
const OPEN_PARTS: usize = 2;
/// Objects freed after a grace period. Of a file: all except `lsm_file_cache`. Of a pipe:
/// `lsm_inode_cache` and the open files; its dentry and inode cannot be found by path.
const LATE_OF_FILES: [bool; 5] = [true, false, true, true, true];
const LATE_OF_PIPES: [bool; 9] = [false, true, false, false, false, true, false, true, false];

/// True if an object is freed after a grace period. A table of open files waits only if a larger
/// one replaces it.
fn is_late(key: ObjectKey) -> bool {
    let part = usize::from(key.part);
    match key.is_pipe {
        true if is_table(key) => true,
        true => LATE_OF_PIPES[part],
        false => LATE_OF_FILES[part],
    }
}

fn is_table(key: ObjectKey) -> bool {
    key.is_pipe && key.number > TABLE_NUMBER - TABLE_SIZES.len() as u32
}

/// A call whose time was measured, for [`SimWorld::rest_of_call`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileCallCost {
    kind: usize,
    calls: u64,
    /// CPU time of the task after `rest_of_call` charged the call.
    since_ns: Nanos,
}

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
            Some(ns) => self.rest_of_call(id, kind, calls, ns),
            None => self.cpus.meter.charge(Price::Syscall, calls),
        };
        self.spend_in_kernel(id, ns);
        let Some(caches) = self.thing_caches else { return ns };
        let task = &mut self.tasks[id];
        let (steps, table) = (&mut task.steps, &mut task.open_files);
        let key = |is_pipe, number, part: usize| ObjectKey { is_pipe, number, part: part as u8 };
        match op {
            Op::MakeName { name, missing: true } => {
                let key = key(false, name, 0);
                steps.push_back(ObjectStep::Alloc(key, caches.dentry));
                steps.push_back(ObjectStep::Keep(key));
            }
            Op::MakeName { name, missing: false } => {
                for (part, cache) in caches.file().into_iter().enumerate() {
                    steps.push_back(ObjectStep::Alloc(key(false, name, part), cache));
                }
                for part in (0..OPEN_PARTS).rev() {
                    steps.push_back(ObjectStep::Free(key(false, name, part)));
                }
            }
            Op::RemoveName { name } => {
                for part in OPEN_PARTS..caches.file().len() {
                    steps.push_back(ObjectStep::Free(key(false, name, part)));
                }
            }
            Op::OpenPipe { slot } => {
                for (part, cache) in caches.pipe().into_iter().enumerate() {
                    steps.push_back(ObjectStep::Alloc(key(true, slot, part), cache));
                }
                for _end in 0..2 {
                    table.open += 1;
                    if table.open <= table.places {
                        continue;
                    }
                    table.places *= 2;
                    let nth = |places| TABLE_SIZES.iter().position(|&size| size == places);
                    let (new, old) = (nth(table.places), nth(table.places / 2));
                    for (part, &cache) in
                        new.iter().flat_map(|&at| caches.tables[at].iter().enumerate())
                    {
                        let number = TABLE_NUMBER - new.unwrap_or(0) as u32;
                        steps.push_back(ObjectStep::Alloc(key(true, number, part), cache));
                    }
                    for part in old.iter().flat_map(|_| 0..TABLE_PARTS) {
                        let number = TABLE_NUMBER - old.unwrap_or(0) as u32;
                        steps.push_back(ObjectStep::Free(key(true, number, part)));
                    }
                }
            }
            Op::ClosePipe { slot } => {
                table.open = table.open.saturating_sub(2);
                for part in (0..caches.pipe().len()).rev() {
                    steps.push_back(ObjectStep::Free(key(true, slot, part)));
                }
            }
            _ => unreachable!("not an operation on names or pipes"),
        }
        ns
    }

    /// The part of a measured time that the model does not account for otherwise: the time is the
    /// mean CPU time of such a call, so it contains the program's own time, the slabs and the
    /// reclaim, which have costs of their own. Their mean in the calls so far is subtracted.
    fn rest_of_call(&mut self, id: usize, kind: usize, calls: u64, mean_ns: Nanos) -> Nanos {
        let task = &mut self.tasks[id];
        let spent_ns = task.usage.system_ns + task.usage.user_ns;
        if let Some(last) = task.file_call.take() {
            let (sum_ns, nr) = &mut self.costs_of_calls[last.kind];
            *sum_ns += spent_ns.saturating_sub(last.since_ns);
            *nr += last.calls;
        }
        let (sum_ns, nr) = self.costs_of_calls[kind];
        let ns = calls * mean_ns.saturating_sub(sum_ns.checked_div(nr).unwrap_or(0));
        task.file_call = Some(FileCallCost { kind, calls, since_ns: spent_ns + ns });
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

/// A process's table of open files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FdTable {
    open: u32,
    places: u32,
}

impl Default for FdTable {
    fn default() -> FdTable {
        FdTable { open: 0, places: PLACES_AT_FIRST }
    }
}
