//! Pagetide's memory manager: the Linux reclaim design as a deterministic state machine.
//!
//! The core does no I/O, reads no clock, starts no thread and touches no page bytes. A *world*
//! (the simulator, a page pool) tells it what happened and carries out what it asks for:
//!
//! ```
//! use pagetide_core::call::Outcome;
//! use pagetide_core::config::Config;
//! use pagetide_core::effect::Step;
//! use pagetide_core::process::{Call, Machine, Touch};
//! use pagetide_core::node::NodeSpec;
//! use pagetide_core::process::page_table::{Advice, Backing};
//! use pagetide_core::units::{Cpu, NodeId};
//!
//! let node = NodeSpec::x86_64(64 << 20, 0, 0);
//! let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
//! let mm = machine.create_mm(Machine::ROOT);
//! let heap = machine.mmap(mm, Backing::Anon, 16, Advice::Normal, false);
//!
//! assert_eq!(machine.touch(heap, 3, true), Touch::Fault);
//! let mut fault = Call::fault(mm, NodeId(0), heap, 3, true);
//! let (step, mut effects) = machine.step(&mut fault, Cpu(0), 0);
//! assert!(matches!(step, Step::Done(Outcome::Got(_))));
//! // Memory was free: there is nothing to do but to zero a page of it, and one of page table.
//! assert!(effects.all(|effect| effect.is_of_contents()));
//! drop(effects);
//! assert_eq!(machine.touch(heap, 3, true), Touch::Hit);
//! machine.audit().unwrap();
//! ```
//!
//! Reading order: `units`, `page_size`, `page`, `list`; then `buddy`, `pcp`, `watermark`, `page_alloc`; then
//! `page_table`, `page_cache`, `lruvec`, `page_counter`, `memcg`, `charge`, `page_request`, `machine`; then
//! `call`, `fault`, `filemap`; then `reclaim`, `workingset`, `swap`, `writeback`; last `control`, `proc`, `event`, `audit`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod audit;
pub mod boot;
pub mod buddy;
pub mod call;
pub mod charge;
pub mod compaction;
pub mod config;
pub mod control;
pub mod ctx;
pub mod digest;
pub mod effect;
pub mod event;
pub mod fallback;
pub mod gfp;
mod huge_page;
pub mod list;
pub mod lru;
pub mod lruvec;
pub mod manager;
pub mod memcg;
mod memory_high;
pub mod node;
pub mod owners;
pub mod page;
pub mod page_alloc;
pub mod page_alloc_audit;
pub mod page_counter;
mod page_io;
pub mod page_request;
pub mod page_size;
pub mod pcp;
pub mod pgdat;
pub mod planted;
pub mod proc;
pub mod process;
pub mod reclaim;
pub mod slab;
pub mod slowpath;
pub mod state_digest;
pub mod swap;
pub mod units;
mod user_page;
pub mod vmstat;
pub mod watermark;
pub mod work;
pub mod workingset;
pub mod zone;
