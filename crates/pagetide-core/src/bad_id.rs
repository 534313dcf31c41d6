//! Ids that name nothing, as an error value.
//!
//! Linux: EBADF, ESRCH, EFAULT, EINVAL, one for each kind of caller. Ids are indices into tables; a
//! call with a wrong id gets an error that names the id, and changes nothing.
//!
//! Invariant: no public function of a manager indexes a table with an id that it did not check.

use crate::manager::Manager;
use crate::owners::Owners;
use crate::slab::Object;
use crate::units::{Asker, CacheId, Cpu, FileId, MemcgId, NodeId, Pfn, VmaId};
use core::fmt;

/// An id that names nothing, or nothing any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadId {
    /// No address space, or one that has ended.
    Mm(Asker),
    /// No mapping, or one that is gone.
    Vma(VmaId),
    /// The mapping has no such page.
    Page(VmaId),
    /// No file, or one that was removed.
    File(FileId),
    /// No group, or one that was removed.
    Memcg(MemcgId),
    /// No cache of slabs.
    Cache(CacheId),
    /// Not an object in use.
    Object(Object),
    /// No frame of this machine, or none of the kind that is meant.
    Frame(Pfn),
    /// No such node.
    Node(NodeId),
    /// No such CPU.
    Cpu(Cpu),
}

const _: () = assert!(size_of::<BadId>() <= 12, "a call's outcome has room for it");

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadId::Mm(id) => write!(f, "no address space {id:?}"),
            BadId::Vma(id) => write!(f, "no mapping {id:?}"),
            BadId::Page(id) => write!(f, "{id:?} has no such page"),
            BadId::File(id) => write!(f, "no file {id:?}"),
            BadId::Memcg(id) => write!(f, "no group {id:?}"),
            BadId::Cache(id) => write!(f, "no cache {id:?}"),
            BadId::Object(object) => write!(f, "no object {object:?}"),
            BadId::Frame(pfn) => write!(f, "no such frame as {pfn:?}"),
            BadId::Node(id) => write!(f, "no node {id:?}"),
            BadId::Cpu(cpu) => write!(f, "no CPU {cpu:?}"),
        }
    }
}

impl core::error::Error for BadId {}

impl<O: Owners> Manager<O> {
    /// Whether the machine has such a CPU.
    #[inline]
    pub(crate) fn has_cpu(&self, cpu: Cpu) -> bool {
        cpu.idx() < self.stocks.len()
    }

    /// Whether the machine has such a node.
    #[inline]
    pub(crate) fn has_node(&self, node: NodeId) -> bool {
        node.idx() < self.nodes.len()
    }

    pub(crate) fn check_cpu(&self, cpu: Cpu) -> Result<(), BadId> {
        if self.has_cpu(cpu) {
            Ok(())
        } else {
            Err(BadId::Cpu(cpu))
        }
    }
}
