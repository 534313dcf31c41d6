//! The long entry points of the manager, compiled once for each type of owners.
//!
//! rustc compiles a generic function again in every crate that calls it, and these functions reach
//! most of the core. So the public methods only call [`EntryPoints`], which is implemented here for
//! the two types of owners. Other crates and tests link to that code. `Machine::touch` and short
//! methods stay generic, so that they can be inlined.
//!
//! Invariant: an entry point calls the method `do_*` of the same name, and does nothing else.

use crate::audit::violation::Violation;
use crate::call::{Call, RequestOwners};
use crate::control::{ControlError, ControlWrite, Errno, GroupControlWrite, GroupWrite};
use crate::daemon::{Daemon, DaemonRest};
use crate::effect::{Effects, Io, Step};
use crate::manager::Manager;
use crate::outcome::Outcome;
use crate::process::Processes;
use crate::slots::Slots;
use crate::units::{Cpu, MemcgId, Nanos, Pfn};

type GroupWriteResult<'a> = Result<(Option<GroupWrite>, Effects<'a>), ControlError>;

/// Declares the trait, its implementations, and the methods with types that do not depend on the
/// owners.
macro_rules! entry_points {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $work:ident;)+) => {
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
            $(#[doc(hidden)]
            fn $name<'a>(manager: &'a mut Manager<Self>, $($arg: $type),*) -> $result;)+
        }

        impl<O: EntryPoints> Manager<O> {
            $($(#[$doc])*
            pub fn $name<'a>(&'a mut self, $($arg: $type),*) -> $result {
                <O as EntryPoints>::$name(self, $($arg),*)
            })+
        }

        entry_points!(@for Processes, $($name($($arg: $type),*) -> $result = $work;)+);
        entry_points!(@for Slots, $($name($($arg: $type),*) -> $result = $work;)+);
    };
    (@for $owners:ty, $($name:ident($($arg:ident: $type:ty),*) -> $result:ty = $work:ident;)+) => {
        impl EntryPoints for $owners {
            fn step<'a>(
                manager: &'a mut Manager<Self>,
                call: &mut Call<Self::Request>,
                cpu: Cpu,
                now: Nanos,
            ) -> (Step<Outcome>, Effects<'a>) {
                manager.do_step(call, cpu, now)
            }
            fn cancel(manager: &mut Manager<Self>, call: Call<Self::Request>, cpu: Cpu) -> Effects<'_> {
                manager.do_cancel(call, cpu)
            }
            fn audit(manager: &Manager<Self>) -> Result<(), Violation> {
                manager.do_audit()
            }
            fn digest(manager: &Manager<Self>) -> u64 {
                manager.do_digest()
            }
            $(fn $name<'a>(manager: &'a mut Manager<Self>, $($arg: $type),*) -> $result {
                manager.$work($($arg),*)
            })+
        }
    };
}

entry_points! {
    /// Runs one bounded step of a daemon on `cpu`. Do not step a daemon before its rest or sleep
    /// ends. Unknown node or CPU: does nothing and returns [`DaemonRest::UNTIL_WOKEN`].
    fn step_daemon(daemon: Daemon, cpu: Cpu, now: Nanos) -> (Step<DaemonRest>, Effects<'a>) = do_step_daemon;
    /// The world reports the end of an I/O request. Unknown requests and CPUs are ignored.
    fn io_done(io: Io, ok: bool, cpu: Cpu, now: Nanos) -> Effects<'a> = do_io_done;
    /// The world reports the end of a copy ([`crate::effect::Effect::CopyPage`]). If `ok`, the page
    /// moves to its new frame; otherwise it stays where it was. A frame that is not under migration
    /// is ignored.
    fn copy_done(from: Pfn, ok: bool, cpu: Cpu) -> Effects<'a> = do_copy_done;
    /// Makes a list of writes in order, all of them or none, as [`Manager::write_controls`] does.
    ///
    /// # Errors
    /// The first refused write (unknown cache, or refused by a policy), or the three watermarks if
    /// the result is out of order.
    fn apply_writes(writes: &[ControlWrite]) -> Result<Effects<'a>, ControlError> = do_apply_writes;
    /// [`Manager::write_group_control`] with a parsed value.
    ///
    /// # Errors
    /// ENOENT for an unknown group or if the root has no such file, EINVAL or EBUSY for a value
    /// that the group or a policy does not allow. Nothing has changed.
    fn apply_group_write(memcg: MemcgId, write: GroupControlWrite) -> GroupWriteResult<'a> = do_apply_group_write;
    /// Removes a group (rmdir). Its pages, slots and counts go to its parent.
    ///
    /// # Errors
    /// EBUSY if the group has tasks or children, or is the root; ENOENT if it does not exist.
    fn remove_memcg(id: MemcgId) -> Result<Effects<'a>, Errno> = do_remove_memcg;
}

impl<O: EntryPoints> Manager<O> {
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
