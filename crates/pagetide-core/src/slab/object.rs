//! The name of an allocated object.
//!
//! Linux: its address.

use crate::units::digest::State;
use crate::units::CacheId;

/// An object allocated from a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub struct Object {
    /// The cache of its slab; this may be a group's clone.
    pub(crate) cache: CacheId,
    /// Slot of its slab, and index in the slab.
    pub(crate) number: u32,
}

impl Object {
    /// The absent value.
    pub const NONE: Object = Object { cache: CacheId::NONE, number: u32::MAX };

    /// Whether this is not [`Object::NONE`].
    #[inline]
    pub const fn is_some(self) -> bool {
        self.cache.is_some()
    }
}
