//! Findings of reclaim about the lists of a node, before it scans them.
//!
//! Linux: fields of `struct scan_control` (mm/vmscan.c, 6.1).

use crate::units::digest::State;

/// Findings about the lists of a node.
#[derive(Clone, Copy, Debug, Default, State)]
pub struct ListFindings {
    /// Kinds that may have their active list aged, as [anonymous, file] (Linux
    /// `DEACTIVATE_ANON`, `DEACTIVATE_FILE`).
    pub may_deactivate: [bool; 2],
    /// Enough cold page cache: leave anonymous memory alone.
    pub cache_trim_mode: bool,
    /// Hardly any page cache left: take anonymous memory.
    pub file_is_tiny: bool,
    /// Cost of reclaiming anonymous memory and page cache so far.
    pub costs: [u64; 2],
}
