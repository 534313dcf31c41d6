//! The long entry points of the manager, compiled once for each type of owners.
//!
//! rustc compiles a generic function again in every crate that calls it, and these functions reach
//! most of the core. So the public methods only call [`EntryPoints`], which each type of owners
//! implements in the core; other crates and tests link to that code. `Machine::touch` and short
//! methods stay generic, so that they can be inlined.
//!
//! Invariant: an entry point calls the method `do_*` of its name, and does nothing else.

pub(crate) use crate::audit::violation::Violation;
pub(crate) use crate::control::{ControlError, ControlWrite, GroupControlWrite, GroupWrite};
pub(crate) use crate::interface::call::{Call, RequestOwners};
pub(crate) use crate::interface::daemon::{Daemon, DaemonRest};
pub(crate) use crate::interface::effect::{Effects, Io, Step};
pub(crate) use crate::interface::manager::Manager;
pub(crate) use crate::interface::outcome::Outcome;
pub(crate) use crate::units::errno::Errno;
pub(crate) use crate::units::{Cpu, MemcgId, Nanos, Pfn};

pub(crate) type GroupWriteResult<'a> = Result<(Option<GroupWrite>, Effects<'a>), ControlError>;

/// Owners for which the core has compiled the entry points.
pub trait EntryPoints: RequestOwners {
    #[doc(hidden)]
    fn step<'a>(
        manager: &'a mut Manager<Self>,
        call: &mut Call<Self::Request>,
        cpu: Cpu,
        now: Nanos,
    ) -> (Step<Outcome>, Effects<'a>);
    #[doc(hidden)]
    fn cancel(manager: &mut Manager<Self>, call: Call<Self::Request>, cpu: Cpu) -> Effects<'_>;
    #[doc(hidden)]
    fn audit(manager: &Manager<Self>) -> Result<(), Violation>;
    #[doc(hidden)]
    fn digest(manager: &Manager<Self>) -> u64;
    #[doc(hidden)]
    fn step_daemon(
        manager: &mut Manager<Self>,
        daemon: Daemon,
        cpu: Cpu,
        now: Nanos,
    ) -> (Step<DaemonRest>, Effects<'_>);
    #[doc(hidden)]
    fn io_done(manager: &mut Manager<Self>, io: Io, ok: bool, cpu: Cpu, now: Nanos) -> Effects<'_>;
    #[doc(hidden)]
    fn copy_done(manager: &mut Manager<Self>, from: Pfn, ok: bool, cpu: Cpu) -> Effects<'_>;
    #[doc(hidden)]
    fn apply_writes<'a>(
        manager: &'a mut Manager<Self>,
        writes: &[ControlWrite],
    ) -> Result<Effects<'a>, ControlError>;
    #[doc(hidden)]
    fn apply_group_write(
        manager: &mut Manager<Self>,
        memcg: MemcgId,
        write: GroupControlWrite,
    ) -> GroupWriteResult<'_>;
    #[doc(hidden)]
    fn remove_memcg(manager: &mut Manager<Self>, id: MemcgId) -> Result<Effects<'_>, Errno>;
}

/// Implements [`EntryPoints`] for a type of owners.
macro_rules! implement_entry_points {
    ($owners:ty) => {
        const _: () = {
            use $crate::interface::entry_points::*;

            impl EntryPoints for $owners {
                fn step<'a>(
                    manager: &'a mut Manager<Self>,
                    call: &mut Call<Self::Request>,
                    cpu: Cpu,
                    now: Nanos,
                ) -> (Step<Outcome>, Effects<'a>) {
                    manager.do_step(call, cpu, now)
                }
                fn cancel(
                    manager: &mut Manager<Self>,
                    call: Call<Self::Request>,
                    cpu: Cpu,
                ) -> Effects<'_> {
                    manager.do_cancel(call, cpu)
                }
                fn audit(manager: &Manager<Self>) -> Result<(), Violation> {
                    manager.do_audit()
                }
                fn digest(manager: &Manager<Self>) -> u64 {
                    manager.do_digest()
                }
                fn step_daemon(
                    manager: &mut Manager<Self>,
                    daemon: Daemon,
                    cpu: Cpu,
                    now: Nanos,
                ) -> (Step<DaemonRest>, Effects<'_>) {
                    manager.do_step_daemon(daemon, cpu, now)
                }
                fn io_done(
                    manager: &mut Manager<Self>,
                    io: Io,
                    ok: bool,
                    cpu: Cpu,
                    now: Nanos,
                ) -> Effects<'_> {
                    manager.do_io_done(io, ok, cpu, now)
                }
                fn copy_done(
                    manager: &mut Manager<Self>,
                    from: Pfn,
                    ok: bool,
                    cpu: Cpu,
                ) -> Effects<'_> {
                    manager.do_copy_done(from, ok, cpu)
                }
                fn apply_writes<'a>(
                    manager: &'a mut Manager<Self>,
                    writes: &[ControlWrite],
                ) -> Result<Effects<'a>, ControlError> {
                    manager.do_apply_writes(writes)
                }
                fn apply_group_write(
                    manager: &mut Manager<Self>,
                    memcg: MemcgId,
                    write: GroupControlWrite,
                ) -> GroupWriteResult<'_> {
                    manager.do_apply_group_write(memcg, write)
                }
                fn remove_memcg(
                    manager: &mut Manager<Self>,
                    id: MemcgId,
                ) -> Result<Effects<'_>, Errno> {
                    manager.do_remove_memcg(id)
                }
            }
        };
    };
}
pub(crate) use implement_entry_points;

impl<O: EntryPoints> Manager<O> {
    /// Runs one bounded step of a daemon on `cpu`. Do not step a daemon before its rest or sleep
    /// ends. Unknown node or CPU: does nothing and returns [`DaemonRest::UNTIL_WOKEN`].
    pub fn step_daemon(
        &mut self,
        daemon: Daemon,
        cpu: Cpu,
        now: Nanos,
    ) -> (Step<DaemonRest>, Effects<'_>) {
        <O as EntryPoints>::step_daemon(self, daemon, cpu, now)
    }

    /// The world reports the end of an I/O request. Unknown requests and CPUs are ignored.
    pub fn io_done(&mut self, io: Io, ok: bool, cpu: Cpu, now: Nanos) -> Effects<'_> {
        <O as EntryPoints>::io_done(self, io, ok, cpu, now)
    }

    /// The world reports the end of a copy ([`crate::interface::effect::Effect::CopyPage`]). If `ok`, the page
    /// moves to its new frame; otherwise it stays where it was. A frame that is not under migration
    /// is ignored.
    pub fn copy_done(&mut self, from: Pfn, ok: bool, cpu: Cpu) -> Effects<'_> {
        <O as EntryPoints>::copy_done(self, from, ok, cpu)
    }

    /// Makes a list of writes in order, all of them or none, as [`Manager::write_controls`] does.
    ///
    /// # Errors
    /// The first refused write (unknown cache, or refused by a policy), or the three watermarks if
    /// the result is out of order.
    pub fn apply_writes(&mut self, writes: &[ControlWrite]) -> Result<Effects<'_>, ControlError> {
        <O as EntryPoints>::apply_writes(self, writes)
    }

    /// [`Kernel::write_group_control`](crate::interface::kernel::Kernel::write_group_control) with a parsed value.
    ///
    /// # Errors
    /// ENOENT for an unknown group or if the root has no such file, EINVAL or EBUSY for a value
    /// that the group or a policy does not allow. Nothing has changed.
    pub fn apply_group_write(
        &mut self,
        memcg: MemcgId,
        write: GroupControlWrite,
    ) -> GroupWriteResult<'_> {
        <O as EntryPoints>::apply_group_write(self, memcg, write)
    }

    /// Removes a group (rmdir). Its pages, slots and counts go to its parent.
    ///
    /// # Errors
    /// EBUSY if the group has tasks or children, or is the root; ENOENT if it does not exist.
    pub fn remove_memcg(&mut self, id: MemcgId) -> Result<Effects<'_>, Errno> {
        <O as EntryPoints>::remove_memcg(self, id)
    }

    /// Runs one bounded step of a task's call.
    pub fn step(
        &mut self,
        call: &mut Call<O::Request>,
        cpu: Cpu,
        now: Nanos,
    ) -> (Step<Outcome>, Effects<'_>) {
        <O as EntryPoints>::step(self, call, cpu, now)
    }

    /// Cancels a call that is not done, or that is done but has an unread outcome. Unfinished work
    /// is undone, and no task is killed for it. Finished work stays: for example, pages that a
    /// read() has read in.
    pub fn cancel(&mut self, call: Call<O::Request>, cpu: Cpu) -> Effects<'_> {
        <O as EntryPoints>::cancel(self, call, cpu)
    }

    /// Checks all invariants. O(frames + entries + cached pages).
    ///
    /// # Errors
    /// The first violation, with its frame or table.
    pub fn audit(&self) -> Result<(), Violation> {
        <O as EntryPoints>::audit(self)
    }

    /// Hash of all state. O(frames ever used + page-table entries + pages of files).
    pub fn digest(&self) -> u64 {
        <O as EntryPoints>::digest(self)
    }
}
