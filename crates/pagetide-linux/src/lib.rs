//! The real-kernel world: a machine in QEMU that performs the workloads of a scenario; and readers
//! of the state of a live Linux system.
//!
//! Reading order: [`session`] boots a variant of a scenario and performs runs. It uses [`kernel`]
//! and [`modules`] (what to boot), [`initramfs`] and [`disks`] (its files), [`qemu`] (how to boot
//! it), [`console`] (the guest's report), [`counts`], [`group_counts`] and [`compressed_counts`]
//! (conversion to a run record).
//! [`comparable`] lists the parts of a scenario that a real kernel cannot reproduce. [`start`]
//! transfers the kernel's initial memory to the simulator, [`slab_start`] its initial objects, and
//! [`disk_times`] and [`disk_latencies`] the speed of its disks. [`reference`](mod@reference) stores all of this in a
//! file.
//! [`host`] reads a live system, and [`live`] measures operation costs on it.
//!
//! The crate `pagetide-guest` runs inside the guest.

pub mod comparable;
pub mod compressed_counts;
pub mod console;
pub mod counts;
pub mod disk_latencies;
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
pub mod program_memory;
pub mod program_times;
pub mod qemu;
pub mod reference;
pub mod session;
pub mod slab_counts;
pub mod slab_start;
pub mod start;
