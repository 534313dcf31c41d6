//! The smallest world around a machine: one task (in turn for several address spaces) on one CPU
//! and the daemons on another, without bytes.
//!
//! I/O ends at once. Each daemon that is awake makes one step per step of the task.

use crate::no_bytes::NoBytes;
use pagetide_core::config::Config;
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::executor::Executor;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall, Processes, TouchResult};
use pagetide_core::stats::work::Work;
use pagetide_core::units::{Cpu, NodeId, PAGE_SIZE};

const TASK_CPU: Cpu = Cpu(0);
const DAEMON_CPU: Cpu = Cpu(1);
const NODE: NodeId = NodeId(0);

/// A machine with one address space, and its executor.
pub struct Driver {
    /// Runs the machine, which is its manager.
    pub executor: Executor<Processes, NoBytes>,
    /// The address space that maps and faults.
    pub mm: MmId,
    /// Work of the daemons so far.
    pub daemon_work: Work,
}

/// A machine of `bytes` in one zone, so that no memory is reserved from other zones.
pub fn one_zone(bytes: u64) -> NodeSpec {
    let mut spec = NodeSpec::default();
    spec.zones[pagetide_core::frames::zone_type::ZONE_NORMAL] =
        ZoneSpec::all_free(bytes / PAGE_SIZE);
    spec
}

impl Driver {
    /// A machine with two CPUs.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn new(node: NodeSpec, config: Config) -> Driver {
        let mut machine = Machine::new(&[node], 2, config).expect("the machine is valid");
        machine.without_bytes();
        let mm = machine.create_mm(Machine::ROOT).expect("the root exists");
        let executor = Executor::new(machine, NoBytes::default(), DAEMON_CPU);
        Driver { executor, mm, daemon_work: Work::default() }
    }

    pub fn map_anon(&mut self, pages: u64) -> VmaId {
        self.executor.manager.mmap(self.mm, Backing::Anon, pages, Advice::Normal, false).unwrap()
    }

    pub fn map_sparse_file(&mut self, pages: u64, advice: Advice) -> VmaId {
        let file = self.executor.manager.create_file(pages * PAGE_SIZE, true).unwrap();
        self.executor.manager.mmap(self.mm, Backing::File(file), pages, advice, false).unwrap()
    }

    pub fn unmap(&mut self, vma: VmaId) {
        self.executor.ask(|machine, todo| {
            machine.munmap(vma, TASK_CPU).expect("it is mapped").drain_into(todo);
        });
    }

    /// Maps anonymous memory, writes once to each page and unmaps it. Returns the number of faults.
    pub fn touch_once(&mut self, pages: u64) -> u64 {
        let heap = self.map_anon(pages);
        let faults = (0..pages).map(|page| u64::from(self.access(heap, page, true))).sum();
        self.unmap(heap);
        faults
    }

    /// One access of the task. Returns whether it faulted.
    #[inline]
    pub fn access(&mut self, vma: VmaId, page: u64, write: bool) -> bool {
        match self.executor.manager.touch(vma, page, write) {
            TouchResult::Hit => false,
            TouchResult::Fault => {
                self.fault(vma, page, write);
                true
            }
        }
    }

    /// Runs a fault to its end.
    ///
    /// # Panics
    /// If it fails: there are no I/O errors and enough memory.
    #[inline(never)]
    pub fn fault(&mut self, vma: VmaId, page: u64, write: bool) {
        let outcome =
            self.executor.run(&mut ProcessCall::fault(self.mm, NODE, vma, page, write), TASK_CPU);
        assert!(matches!(outcome, Outcome::Got(_)), "{outcome:?}");
        self.executor.manager.take_work();
    }

    /// Whether kswapd was woken and has not balanced the node yet.
    pub fn kswapd_is_awake(&self) -> bool {
        self.executor.is_awake(Daemon::Kswapd(NODE))
    }

    /// Runs the daemons until they rest, so that their time can be separated from the tasks'.
    pub fn balance(&mut self) {
        self.executor.manager.take_work();
        self.executor.run_daemons();
        self.daemon_work.add(&self.executor.manager.take_work());
    }
}
