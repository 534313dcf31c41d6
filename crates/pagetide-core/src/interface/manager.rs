//! The manager: a [`Kernel`] and the owners of its frames, as one machine that a world steps.
//!
//! The users of the frames are behind one trait ([`Owners`]). A world steps a [`Call`] until the
//! call is done, or cancels it, and steps the daemons in the same way ([`Manager::step_daemon`]).
//! Every function that may have effects returns its result together with
//! [`Effects`](crate::interface::effect::Effects); the world must drain them before its next call.
//!
//! Invariant: see [`crate::audit`].

use crate::config::Config;
use crate::frames::boot::SetupError;
use crate::frames::node::NodeSpec;
use crate::groups::memcg::ROOT;
#[cfg(doc)]
use crate::interface::call::Call;
use crate::interface::kernel::Kernel;
use crate::interface::owners::Owners;
use crate::units::MemcgId;
use core::ops::{Deref, DerefMut};

/// The memory manager, for one kind of owners: a [`Kernel`] and the users of its frames.
///
/// The fields and methods of the kernel are also the manager's. A method of the manager itself asks
/// the owners, or calls one that does.
#[derive(Clone, Debug)]
pub struct Manager<O> {
    /// Users of the frames.
    pub owners: O,
    /// Everything else.
    pub kernel: Kernel,
}

impl<O> Deref for Manager<O> {
    type Target = Kernel;

    #[inline]
    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

impl<O> DerefMut for Manager<O> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }
}

impl<O: Owners> Manager<O> {
    /// The root group.
    pub const ROOT: MemcgId = ROOT;

    /// Builds a machine with the given nodes and CPUs, without mappings and page cache. Sizes of
    /// nodes are in pages of [`Config::page_size`].
    ///
    /// # Errors
    /// The sizes are impossible: no memory, or too many nodes, pages or CPUs.
    pub fn with_owners(
        owners: O,
        nodes: &[NodeSpec],
        nr_cpus: u16,
        config: Config,
    ) -> Result<Manager<O>, SetupError> {
        Ok(Manager { owners, kernel: Kernel::new(nodes, nr_cpus, config)? })
    }
}
