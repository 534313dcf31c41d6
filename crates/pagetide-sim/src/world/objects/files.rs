//! Slab objects of files, pipes and negative dentries, and their caches.
//!
//! Differs from Linux: the first lookup in a directory reads nothing. A table of more than 1024
//! open files, which is not a slab object, uses no memory. The open files of a process are its
//! pipes only.
//!
//! Invariant: a call allocates an object at most once.

use pagetide_core::config::KmemAccounting;
use pagetide_core::process::Machine;
use pagetide_core::slab::{CacheSpec, SlabError};
use pagetide_core::units::{CacheId, Nanos};
use pagetide_scenario::op::Op;
use std::collections::VecDeque;

/// Key of a slab object of a file or a pipe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectKey {
    /// True for a pipe, false for a file.
    pub is_pipe: bool,
    /// Number of the file, slot of the pipe.
    pub number: u32,
    /// Index of the object in the file or pipe.
    pub part: u8,
}

/// Type of a slab object of a file or a pipe.
#[derive(Clone, Copy, Debug)]
pub struct ObjectType {
    pub cache: CacheId,
    /// The kernel charges it to the task's group.
    pub account: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum ObjectStep {
    Alloc(ObjectKey, ObjectType),
    Free(ObjectKey),
    /// Leaves the object to the kernel as a cached dentry.
    Keep(ObjectKey),
}

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
    pub fn new(machine: &mut Machine) -> Result<FileCaches, SlabError> {
        let mut parts = [ObjectType { cache: CacheId::NONE, account: false }; CACHES.len()];
        for (part, (name, object_size, account, reclaimable)) in parts.iter_mut().zip(CACHES) {
            // An object mix may have created the cache; it accounts each object by itself.
            let cache = match machine.slabs.find_cache(name) {
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
            let cache = machine.slabs.find_cache(&format!("{prefix}{size}"));
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

    fn pipe(&self) -> [ObjectType; 9] {
        let (file, lsm) = (self.filp, self.lsm_file);
        [self.inode, self.lsm_inode, self.pipe, self.pipe_ring, self.dentry, file, lsm, file, lsm]
    }

    /// Adds the steps of a system call on a file or a pipe.
    pub fn push_steps(&self, op: Op, table: &mut FdTable, steps: &mut VecDeque<ObjectStep>) {
        let key = |is_pipe, number, part: usize| ObjectKey { is_pipe, number, part: part as u8 };
        match op {
            Op::MakeName { name, missing: true } => {
                let key = key(false, name, 0);
                steps.push_back(ObjectStep::Alloc(key, self.dentry));
                steps.push_back(ObjectStep::Keep(key));
            }
            Op::MakeName { name, missing: false } => {
                for (part, cache) in self.file().into_iter().enumerate() {
                    steps.push_back(ObjectStep::Alloc(key(false, name, part), cache));
                }
                for part in (0..OPEN_PARTS).rev() {
                    steps.push_back(ObjectStep::Free(key(false, name, part)));
                }
            }
            Op::RemoveName { name } => {
                for part in OPEN_PARTS..self.file().len() {
                    steps.push_back(ObjectStep::Free(key(false, name, part)));
                }
            }
            Op::OpenPipe { slot } => {
                for (part, cache) in self.pipe().into_iter().enumerate() {
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
                        new.iter().flat_map(|&at| self.tables[at].iter().enumerate())
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
                for part in (0..self.pipe().len()).rev() {
                    steps.push_back(ObjectStep::Free(key(true, slot, part)));
                }
            }
            _ => unreachable!("not an operation on names or pipes"),
        }
    }
}

/// Number of objects of a file that close() frees.
pub(super) const OPEN_PARTS: usize = 2;
/// Objects freed after a grace period. Of a file: all except `lsm_file_cache`. Of a pipe:
/// `lsm_inode_cache` and the open files; its dentry and inode cannot be found by path.
const LATE_OF_FILES: [bool; 5] = [true, false, true, true, true];
const LATE_OF_PIPES: [bool; 9] = [false, true, false, false, false, true, false, true, false];

/// True if an object is freed after a grace period. A table of open files waits only if a larger
/// one replaces it.
pub(super) fn is_late(key: ObjectKey) -> bool {
    let part = usize::from(key.part);
    match key.is_pipe {
        true if is_table(key) => true,
        true => LATE_OF_PIPES[part],
        false => LATE_OF_FILES[part],
    }
}

pub(super) fn is_table(key: ObjectKey) -> bool {
    key.is_pipe && key.number > TABLE_NUMBER - TABLE_SIZES.len() as u32
}

/// A call whose time was measured, whose mean cost the model subtracts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileCallCost {
    pub kind: usize,
    pub calls: u64,
    /// CPU time of the task after `rest_of_call` charged the call.
    pub since_ns: Nanos,
}

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
