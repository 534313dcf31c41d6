//! Kernel memory of a task: blocks by order, and objects, through a file of a patched kernel.
//!
//! Programs cannot request pages for the kernel. The kernel with the proposals has the file
//! `allocation_test` for it (kernels/linux-6.1, patch 0005), which accepts one command in each
//! write().
//!
//! Invariant: everything is set up before the task enters its group; afterwards this module does
//! not allocate.

use crate::report::line;
use pagetide_core::config::{Policy, PolicyChoice, SlabAccounting};
use pagetide_scenario::model::object_mix::KernelCache;
use pagetide_scenario::model::{BlockRequest, Setup};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

const FILE: &str = "/sys/kernel/debug/allocation_test";
/// Maximum length of a command in bytes.
const COMMAND_MAX: usize = 128;

pub struct TestAllocations {
    file: Option<File>,
    /// Number of the cache for charged objects of cache 0; those of the others follow.
    first_charged: u32,
    /// Number of requested blocks.
    requested_blocks: u64,
    got: u64,
}

impl TestAllocations {
    /// Opens the file if task number `id` requests kernel memory, and names the caches of the
    /// setup.
    pub fn new(setup: &Setup, id: usize) -> Result<TestAllocations, String> {
        let asks =
            setup.tasks[id].phases.iter().any(|phase| phase.workload.allocates_kernel_memory());
        let mut memory =
            TestAllocations { file: None, first_charged: 0, requested_blocks: 0, got: 0 };
        if !asks {
            return Ok(memory);
        }
        let file = OpenOptions::new().write(true).open(FILE).map_err(|error| {
            format!(
                "{FILE}: {error}: task `{}` requests kernel memory, which needs the \
                 kernel of the proposals (`make proposals`, --kernel proposals)",
                setup.tasks[id].name
            )
        })?;
        memory.file = Some(file);
        memory.name_caches(setup, 0, "", |_| true)?;
        // Per-group clones of caches existed until 5.8: charged objects came from the clones. A
        // cache that a single group uses has the same number of slabs.
        if let Some(PolicyChoice::SlabAccounting(
            SlabAccounting::PerGroupCaches | SlabAccounting::PerGroupCachesReparent,
        )) = setup.policies.get(Policy::SlabAccounting)
        {
            if let Some(group) = setup.charged_group(setup.tasks[id].group) {
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

    /// Defines the `wanted` caches of the setup with numbers from `first` on. In the kernel their
    /// names end with `suffix`.
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

    /// Requests a block of 2^`order` pages, and counts the successful requests.
    /// ENOMEM is no error.
    pub fn alloc_block(&mut self, slot: u32, order: u8, request: BlockRequest) -> io::Result<()> {
        let request = match request {
            BlockRequest::Kernel => "kernel",
            BlockRequest::KernelHigh => "kernel-high",
            BlockRequest::Reclaimable => "reclaimable",
            BlockRequest::Nowait => "nowait",
            BlockRequest::Atomic => "atomic",
        };
        self.requested_blocks += 1;
        let done = self.command(format_args!("page {slot} {order} {request}"));
        self.got += u64::from(done.is_ok());
        unless_out_of_memory(done)
    }

    /// Frees the block in a slot, if there is one.
    pub fn free_block(&self, slot: u32) -> io::Result<()> {
        ignore_enoent(self.command(format_args!("free-page {slot}")))
    }

    /// Allocates an object of cache number `cache` of the setup.
    /// ENOMEM is no error.
    pub fn alloc_object(&self, slot: u32, cache: u32, account: bool) -> io::Result<()> {
        let (kind, cache) =
            if account { ("account", self.first_charged + cache) } else { ("plain", cache) };
        unless_out_of_memory(self.command(format_args!("object {slot} {cache} {kind}")))
    }

    /// Frees the object in a slot, if there is one.
    pub fn free_object(&self, slot: u32) -> io::Result<()> {
        ignore_enoent(self.command(format_args!("free-object {slot}")))
    }

    /// Passes the object in a slot to a shrinker.
    pub fn pass_to_shrinker(&self, slot: u32) -> io::Result<()> {
        ignore_enoent(self.command(format_args!("leave-object {slot}")))
    }

    /// Reports how many blocks were requested and allocated, if any.
    pub fn report(&self) {
        if self.requested_blocks > 0 {
            line(format_args!("@blocks {} {}", self.requested_blocks, self.got));
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

/// Ignores ENOENT: a failed allocation leaves nothing to free.
fn ignore_enoent(done: io::Result<()>) -> io::Result<()> {
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
