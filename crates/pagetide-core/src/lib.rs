//! Pagetide's memory manager: the Linux reclaim design as a deterministic state machine.
//!
//! The core does no I/O, reads no clock, starts no thread and touches no page bytes. A *world*
//! (the simulator, a page pool) tells it what happened and carries out what it asks for:
//!
//! ```
//! use pagetide_core::call::{Call, Outcome};
//! use pagetide_core::config::Config;
//! use pagetide_core::effect::Step;
//! use pagetide_core::machine::{Machine, Touch};
//! use pagetide_core::node::NodeSpec;
//! use pagetide_core::page_table::{Advice, Backing};
//! use pagetide_core::units::{Cpu, NodeId};
//!
//! let node = NodeSpec::x86_64(64 << 20, 0, 0);
//! let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
//! let mm = machine.create_mm(Machine::ROOT);
//! let heap = machine.mmap(mm, Backing::Anon, 16, Advice::Normal, false);
//!
//! assert_eq!(machine.touch(heap, 3, true), Touch::Fault);
//! let mut fault = Call::fault(mm, NodeId(0), heap, 3, true);
//! let (step, effects) = machine.step(&mut fault, Cpu(0), 0);
//! assert_eq!(step, Step::Done(Outcome::Minor));
//! assert!(effects.is_empty(), "memory was free: nothing to do for the world");
//! effects.discard();
//! assert_eq!(machine.touch(heap, 3, true), Touch::Hit);
//! machine.audit().unwrap();
//! ```
//!
//! Reading order: `units`, `page_size`, `page`, `list`; then `buddy`, `pcp`, `watermark`, `page_alloc`; then
//! `page_table`, `page_cache`, `lruvec`, `page_counter`, `memcg`, `charge`, `machine`; then `call`,
//! `fault`, `filemap`; then
//! `reclaim`, `workingset`, `swap`, `writeback`; last `control`, `proc`, `event`, `audit`. What other
//! kernels do otherwise: `era`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod audit;
pub mod boot;
pub mod buddy;
pub mod call;
mod charge;
pub mod compaction;
pub mod config;
pub mod control;
pub mod digest;
pub mod effect;
mod era;
pub mod event;
pub mod fallback;
pub mod fault;
pub mod filemap;
pub mod gfp;
mod huge_memory;
pub mod kernel_block;
pub mod khugepaged;
pub mod list;
pub mod lru;
pub mod lruvec;
pub mod machine;
pub mod memcg;
mod memory_high;
pub mod node;
pub mod oom;
pub mod page;
pub mod page_alloc;
pub mod page_alloc_audit;
pub mod page_cache;
pub mod page_counter;
pub mod page_size;
pub mod page_table;
pub mod pcp;
pub mod proc;
pub mod psi;
pub mod readahead;
pub mod reclaim;
pub mod slab;
pub mod slowpath;
pub mod state_digest;
pub mod swap;
pub mod tree_nodes;
pub mod units;
pub mod vmstat;
pub mod watermark;
pub mod work;
pub mod workingset;
pub mod writeback;
mod zap;
pub mod zone;
