//! The kernel memory of a task: blocks by order, and objects, through the file of a patched kernel.
//!
//! No program can ask a kernel for its own pages. The kernel of the proposals has a file for it,
//! `allocation_test` (kernels/linux-6.1, patch 0005), which takes one command a write().
//!
//! Invariant: what the task needs for this is there before it enters its group; nothing here allocates.

use crate::report::line;
use pagetide_core::config::{Policy, PolicyChoice, SlabAccounting};
use pagetide_scenario::model::{BlockRequest, Setup};
use pagetide_scenario::object_mix::KernelCache;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// The file.
const FILE: &str = "/sys/kernel/debug/allocation_test";
/// Bytes of the longest command.
const COMMAND_MAX: usize = 128;

/// The task's blocks and objects.
pub struct KernelMemory {
    file: Option<File>,
    /// Number of the cache that has the charged objects of cache 0; those of the others follow.
    first_charged: u32,
    /// Blocks asked for.
    asked: u64,
    got: u64,
}

impl KernelMemory {
    /// Opens the file if task number `id` asks for kernel memory, and names the caches of the setup.
    ///
    /// # Errors
    /// A sentence, if this kernel has no such file.
    pub fn new(setup: &Setup, id: usize) -> Result<KernelMemory, String> {
        let asks =
            setup.tasks[id].phases.iter().any(|phase| phase.workload.asks_for_kernel_memory());
        let mut memory = KernelMemory { file: None, first_charged: 0, asked: 0, got: 0 };
        if !asks {
            return Ok(memory);
        }
        let file = OpenOptions::new().write(true).open(FILE).map_err(|error| {
            format!(
                "{FILE}: {error}: task `{}` asks the kernel for memory of its own, which wants the \
                 kernel of the proposals (`make proposals`, --kernel proposals)",
                setup.tasks[id].name
            )
        })?;
        memory.file = Some(file);
        memory.name_caches(setup, 0, "", |_| true)?;
        // Caches with clones for each group ended with 5.8: what a group paid for came from its clones. A cache that
        // one group alone uses has as many slabs.
        if let Some(PolicyChoice::SlabAccounting(
            SlabAccounting::PerGroupCaches | SlabAccounting::PerGroupCachesReparent,
        )) = setup.policies.get(Policy::SlabAccounting)
        {
            if let Some(group) = setup.payer(setup.tasks[id].group) {
                memory.first_charged = setup.caches.len() as u32;
                let phases = &setup.tasks[id].phases;
                let mixes = || phases.iter().filter_map(|phase| phase.workload.mix());
                let is_charged = |name: &str| mixes().any(|mix| mix.charges(name));
                memory.name_caches(
                    setup,
                    memory.first_charged,
                    &format!("-{group}"),
                    is_charged,
                )?;
            }
        }
        Ok(memory)
    }

    /// Gives the caches of the setup numbers from `first` on, those that are `wanted`. The kernel knows them by their
    /// names with `suffix`.
    fn name_caches(
        &self,
        setup: &Setup,
        first: u32,
        suffix: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let numbered = (first..).zip(&setup.caches).filter(|(_, cache)| wanted(&cache.name));
        for (number, KernelCache { name, object_size, reclaimable }) in numbered {
            let kind = if *reclaimable { "reclaimable" } else { "plain" };
            self.command(format_args!("cache {number} test-{name}{suffix} {object_size} {kind}"))
                .map_err(|error| format!("cache `{name}` of {object_size} bytes: {error}"))?;
        }
        Ok(())
    }

    /// Asks for a block of 2^`order` pages. Whether there was memory is counted.
    ///
    /// # Errors
    /// The kernel's, but for want of memory.
    pub fn alloc_block(&mut self, slot: u32, order: u8, request: BlockRequest) -> io::Result<()> {
        let request = match request {
            BlockRequest::Kernel => "kernel",
            BlockRequest::KernelHigh => "kernel-high",
            BlockRequest::Reclaimable => "reclaimable",
            BlockRequest::Nowait => "nowait",
            BlockRequest::Atomic => "atomic",
        };
        self.asked += 1;
        let done = self.command(format_args!("page {slot} {order} {request}"));
        self.got += u64::from(done.is_ok());
        unless_out_of_memory(done)
    }

    /// Frees the block in a slot, if there is one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn free_block(&self, slot: u32) -> io::Result<()> {
        unless_empty(self.command(format_args!("free-page {slot}")))
    }

    /// Allocates an object of cache number `cache` of the setup.
    ///
    /// # Errors
    /// The kernel's, but for want of memory.
    pub fn alloc_object(&self, slot: u32, cache: u32, account: bool) -> io::Result<()> {
        let (kind, cache) =
            if account { ("account", self.first_charged + cache) } else { ("plain", cache) };
        unless_out_of_memory(self.command(format_args!("object {slot} {cache} {kind}")))
    }

    /// Frees the object in a slot, if there is one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn free_object(&self, slot: u32) -> io::Result<()> {
        unless_empty(self.command(format_args!("free-object {slot}")))
    }

    /// Leaves the object in a slot to a shrinker.
    ///
    /// # Errors
    /// The kernel's.
    pub fn leave_object(&self, slot: u32) -> io::Result<()> {
        unless_empty(self.command(format_args!("leave-object {slot}")))
    }

    /// Says how many blocks it asked for, and got, if it ever did.
    pub fn report(&self) {
        if self.asked > 0 {
            line(format_args!("@blocks {} {}", self.asked, self.got));
        }
    }

    fn command(&self, command: std::fmt::Arguments<'_>) -> io::Result<()> {
        let Some(mut file) = self.file.as_ref() else {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        let mut text = [0u8; COMMAND_MAX];
        let mut rest = &mut text[..];
        rest.write_fmt(command)?;
        let len = COMMAND_MAX - rest.len();
        file.write(&text[..len]).map(drop)
    }
}

/// What had found no memory is not there to be given back.
fn unless_empty(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        done => done,
    }
}

fn unless_out_of_memory(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => Ok(()),
        done => done,
    }
}
