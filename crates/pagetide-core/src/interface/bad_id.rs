//! Invalid ids, as an error value.
//!
//! Linux: EBADF, ESRCH, EFAULT, EINVAL, one for each kind of caller. Ids are indices into tables; a
//! call with a wrong id gets an error that names the id, and changes nothing.
//!
//! Invariant: no public function of a manager indexes a table with an unchecked id.

use crate::frames::page_alloc::Memory;
use crate::groups::Groups;
use crate::slab::object::Object;
use crate::units::{CacheId, Cpu, FileId, MemcgId, NodeId, Pfn, Requester, VmaId};
use core::fmt;

/// An id that names nothing, or something that no longer exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadId {
    /// No such address space, or it has ended.
    Mm(Requester),
    /// No such mapping, or it was unmapped.
    Vma(VmaId),
    /// The mapping has no such page.
    Page(VmaId),
    /// No such file, or it was removed.
    File(FileId),
    /// No such group, or it was removed.
    Memcg(MemcgId),
    /// No such slab cache.
    Cache(CacheId),
    /// Not an object in use.
    Object(Object),
    /// No such frame, or a frame of another kind.
    Frame(Pfn),
    /// No such node.
    Node(NodeId),
    /// No such CPU.
    Cpu(Cpu),
}

const _: () = assert!(size_of::<BadId>() <= 12, "Outcome must stay small");

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

impl Groups {
    #[inline]
    pub(crate) fn has_cpu(&self, cpu: Cpu) -> bool {
        cpu.idx() < self.stocks.len()
    }

    pub(crate) fn check_cpu(&self, cpu: Cpu) -> Result<(), BadId> {
        if self.has_cpu(cpu) {
            Ok(())
        } else {
            Err(BadId::Cpu(cpu))
        }
    }
}

impl Memory {
    #[inline]
    pub(crate) fn has_node(&self, node: NodeId) -> bool {
        node.idx() < self.pgdat.len()
    }
}
