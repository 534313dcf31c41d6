//! Names of policies that the program registers.

/// The name that stands for the built-in policy.
pub(crate) const BUILT_IN: &str = "linux";

/// Names that keys of `[policy]` accept in addition to `linux`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginNames {
    /// Policies that choose the groups to reclaim from.
    pub groups: Vec<String>,
    /// Policies that choose the pages to evict.
    pub pages: Vec<String>,
    /// Accept any name: the caller does not run the simulator.
    pub any: bool,
}
