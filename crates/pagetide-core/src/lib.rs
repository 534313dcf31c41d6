//! Pagetide's memory manager: Linux page reclaim as a deterministic state machine.
//!
//! The core does no I/O, reads no clock, starts no thread and touches no page bytes. A *world* (the
//! program around the core: a simulator, a page pool) reports events to it and carries out its
//! effects:
//!
//! ```
//! use pagetide_core::config::Config;
//! use pagetide_core::interface::effect::Step;
//! use pagetide_core::process::{Machine, ProcessCall, TouchResult};
//! use pagetide_core::frames::node::NodeSpec;
//! use pagetide_core::process::page_table::{Advice, Backing};
//! use pagetide_core::interface::outcome::Outcome;
//! use pagetide_core::units::{Cpu, NodeId};
//!
//! let node = NodeSpec::x86_64(64 << 20, 0, 0);
//! let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
//! let mm = machine.create_mm(Machine::ROOT).unwrap();
//! let heap = machine.mmap(mm, Backing::Anon, 16, Advice::Normal, false).unwrap();
//!
//! assert_eq!(machine.touch(heap, 3, true), TouchResult::Fault);
//! let mut fault = ProcessCall::fault(mm, NodeId(0), heap, 3, true);
//! let (step, mut effects) = machine.step(&mut fault, Cpu(0), 0);
//! assert!(matches!(step, Step::Done(Outcome::Got(_))));
//! // Memory was free, so the only effects are to zero the page and a new page table.
//! assert!(effects.all(|effect| effect.is_contents_only()));
//! drop(effects);
//! assert_eq!(machine.touch(heap, 3, true), TouchResult::Hit);
//! machine.audit().unwrap();
//!
//! // Daemons are stepped like calls, when their rest is over or an effect wakes them.
//! use pagetide_core::interface::daemon::Daemon;
//! let (daemon, rest) = machine.daemons().find(|(at, _)| *at == Daemon::Flusher).unwrap();
//! let (step, effects) = machine.step_daemon(daemon, Cpu(0), rest.timeout);
//! effects.discard();
//! assert_eq!(step, Step::Done(rest), "nothing is dirty");
//! ```
//!
//! Two layers: the page level ([`interface::manager`]: frames, groups, reclaim, slabs) is generic
//! over the users of the frames ([`interface::owners`]); [`process`] and [`interface::slots`] are two
//! kinds of users.
//! ARCHITECTURE.md has the reading order.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod ageing;
pub mod audit;
pub mod compaction;
pub mod config;
pub mod control;
pub mod frames;
pub mod groups;
pub mod interface;
pub mod process;
pub mod reclaim;
pub mod slab;
pub mod stats;
pub mod swap;
pub mod units;
