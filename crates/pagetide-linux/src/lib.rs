//! The real-kernel world: a machine in QEMU that performs the workloads of a scenario, and readers
//! of what a live Linux says of itself.
//!
//! Reading order: [`session`] boots a variant of a scenario and makes runs; it uses [`kernel`] and
//! [`modules`] (what to boot), [`initramfs`] and [`disks`] (what to boot it with), [`qemu`] (how),
//! [`console`] (what the guest says), [`counts`] and [`group_counts`] (what that means as a run
//! record).
//! [`comparable`] says what of a scenario a real kernel cannot be asked, [`start`] takes over the
//! memory with which it began, [`slab_start`] the objects that
//! were there, [`disk_times`] the speed of its disks, and [`reference`](mod@reference) keeps it all for later.
//! [`host`] reads a live system, and [`live`] has it perform what operations cost on it.
//!
//! The guest's side is the crate `pagetide-guest`.

pub mod comparable;
pub mod console;
pub mod counts;
pub mod disk_times;
pub mod disks;
pub mod error;
pub mod group_counts;
pub mod host;
pub mod initramfs;
pub mod kernel;
pub mod live;
pub mod machine_costs;
pub mod modules;
pub mod program_times;
pub mod qemu;
pub mod reference;
pub mod session;
pub mod slab_counts;
pub mod slab_start;
pub mod start;
