//! Kernel objects that tasks allocate from slab caches, and their late frees.

pub(crate) mod grace;
pub(crate) mod names;
mod slots;
