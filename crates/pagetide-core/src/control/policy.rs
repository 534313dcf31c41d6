//! Policies: which of several built mechanisms is in force, by name.
//!
//! The kernel has one mechanism a release; a comparison needs several in one program. Names are
//! those of scenario files.

use super::error::{quoted, ControlError, Errno};
use crate::config::{
    BackgroundCompaction, CgroupVersion, CompactionCapture, CompactionPolicy, Config,
    DirectReclaimPolicy, GroupWalkPolicy, KswapdPolicy, LruPolicy, ShrinkPriorityPolicy,
    SlabAccounting, SlabOwners, SlubPolicy, SoftLimitDirect, SoftLimitNode, SoftLimitPolicy,
    SoftLimitRoot, Thp, ThpDefrag,
};
use crate::effect::Effects;
use crate::manager::Manager;
use crate::owners::Owners;
use crate::pcp::PcpPolicy;
use crate::watermark::WatermarkPolicy;
use alloc::format;
use alloc::string::String;

const WATERMARKS: [(&str, WatermarkPolicy); 3] = [
    ("derived", WatermarkPolicy::Derived),
    ("scale-factor", WatermarkPolicy::ScaleFactor),
    ("apart", WatermarkPolicy::Apart),
];

const KSWAPD: [(&str, KswapdPolicy); 3] = [
    ("linux-6.1", KswapdPolicy::Linux61),
    ("linux-4.5", KswapdPolicy::Linux45),
    ("linux-2.6.37", KswapdPolicy::Linux2637),
];

const BACKGROUND_COMPACTION: [(&str, BackgroundCompaction); 4] = [
    ("kcompactd-early", BackgroundCompaction::KcompactdEarly),
    ("kcompactd", BackgroundCompaction::Kcompactd),
    ("kswapd", BackgroundCompaction::Kswapd),
    ("off", BackgroundCompaction::Off),
];

const COMPACTION: [(&str, CompactionPolicy); 2] =
    [("linux-6.1", CompactionPolicy::Linux61), ("linux-4.5", CompactionPolicy::Linux45)];

const COMPACTION_CAPTURE: [(&str, CompactionCapture); 2] =
    [("on", CompactionCapture::On), ("off", CompactionCapture::Off)];

/// Also the values of transparent_hugepage.enabled.
pub(super) const THP: [(&str, Thp); 3] =
    [("always", Thp::Always), ("madvise", Thp::Madvise), ("never", Thp::Never)];

/// Also the values of transparent_hugepage.defrag.
pub(super) const THP_DEFRAG: [(&str, ThpDefrag); 5] = [
    ("always", ThpDefrag::Always),
    ("defer", ThpDefrag::Defer),
    ("defer+madvise", ThpDefrag::DeferMadvise),
    ("madvise", ThpDefrag::Madvise),
    ("never", ThpDefrag::Never),
];

const DIRECT_RECLAIM: [(&str, DirectReclaimPolicy); 3] = [
    ("linux-6.1", DirectReclaimPolicy::Linux61),
    ("linux-2.6.37", DirectReclaimPolicy::Linux2637),
    ("linux-2.6.35", DirectReclaimPolicy::Linux2635),
];

const PER_CPU_LISTS: [(&str, PcpPolicy); 2] =
    [("linux-6.1", PcpPolicy::Linux61), ("linux-2.6.37", PcpPolicy::Linux2637)];

const LRU: [(&str, LruPolicy); 3] = [
    ("linux-6.1", LruPolicy::Linux61),
    ("linux-5.4", LruPolicy::Linux54),
    ("linux-3.3", LruPolicy::Linux33),
];

const SOFT_LIMIT: [(&str, SoftLimitPolicy); 5] = [
    ("tree", SoftLimitPolicy::Tree),
    ("hierarchical", SoftLimitPolicy::Hierarchical),
    ("two-pass", SoftLimitPolicy::TwoPass),
    ("graded", SoftLimitPolicy::Graded),
    ("off", SoftLimitPolicy::Off),
];

const SOFT_LIMIT_ROOT: [(&str, SoftLimitRoot); 2] =
    [("excluded", SoftLimitRoot::Excluded), ("included", SoftLimitRoot::Included)];

const SOFT_LIMIT_DIRECT: [(&str, SoftLimitDirect); 3] = [
    ("full", SoftLimitDirect::Full),
    ("bounded", SoftLimitDirect::Bounded),
    ("ignored", SoftLimitDirect::Ignored),
];

const SOFT_LIMIT_NODE: [(&str, SoftLimitNode); 2] =
    [("global", SoftLimitNode::Global), ("local", SoftLimitNode::Local)];

const SHRINK_PRIORITY: [(&str, ShrinkPriorityPolicy); 4] = [
    ("guarded", ShrinkPriorityPolicy::Guarded),
    ("posted", ShrinkPriorityPolicy::Posted),
    ("hierarchical", ShrinkPriorityPolicy::Hierarchical),
    ("off", ShrinkPriorityPolicy::Off),
];

const GROUP_WALK: [(&str, GroupWalkPolicy); 2] =
    [("whole", GroupWalkPolicy::Whole), ("shared", GroupWalkPolicy::Shared)];

const CGROUP: [(&str, CgroupVersion); 2] = [("v2", CgroupVersion::V2), ("v1", CgroupVersion::V1)];

const SLAB_ACCOUNTING: [(&str, SlabAccounting); 4] = [
    ("per-object", SlabAccounting::PerObject),
    ("per-group-caches", SlabAccounting::PerGroupCaches),
    ("per-group-caches-reparent", SlabAccounting::PerGroupCachesReparent),
    ("off", SlabAccounting::Off),
];

const SLUB: [(&str, SlubPolicy); 4] = [
    ("linux-6.1", SlubPolicy::Linux61),
    ("linux-5.5", SlubPolicy::Linux55),
    ("fullest", SlubPolicy::Fullest),
    ("lowest", SlubPolicy::Lowest),
];

const SLAB_OWNERS: [(&str, SlabOwners); 2] =
    [("pointers", SlabOwners::Pointers), ("ids", SlabOwners::Ids)];

const OBJCG_STOCK: [(&str, u32); 5] = [("1", 1), ("4", 4), ("8", 8), ("16", 16), ("64", 64)];

const KMEM_ACCOUNTING: [(&str, bool); 2] = [("on", true), ("off", false)];

/// Names of all policies, for messages.
const NAMES: &str =
    "watermarks, kswapd, direct_reclaim, per_cpu_lists, lru, soft_limit, soft_limit_root, \
                     soft_limit_direct, soft_limit_node, shrink_priority, group_walk, cgroup, \
                     background_compaction, compaction, compaction_capture, thp, thp_defrag, \
                     slab_accounting, slub, slab_owners, objcg_stock and kmem_accounting";

fn lookup<P: Copy>(table: &[(&str, P)], name: &str, value: &str) -> Result<P, ControlError> {
    if let Some((_, policy)) = table.iter().find(|(known, _)| *known == value) {
        return Ok(*policy);
    }
    let mut known = String::new();
    for (at, (value, _)) in table.iter().enumerate() {
        known += if at == 0 { "" } else { ", " };
        known += value;
    }
    let message = format!("{} is not a variant of policy {name}; it takes {known}", quoted(value));
    Err(ControlError::new(Errno::Einval, name, message))
}

fn name_of<P: PartialEq>(table: &[(&'static str, P)], policy: P) -> &'static str {
    table.iter().find(|(_, known)| *known == policy).map_or("?", |(name, _)| name)
}

fn no_such(name: &str) -> ControlError {
    let message = format!("there is no policy {}; there are {NAMES}", quoted(name));
    ControlError::new(Errno::Enoent, name, message)
}

impl<O: Owners> Manager<O> {
    /// Puts a policy in force, by its name and its variant's (the tables in this file; what they stand
    /// for is in [`crate::config`] and docs/scenario.md). A new policy for watermarks computes them
    /// again.
    ///
    /// # Errors
    /// ENOENT for an unknown policy, EINVAL for an unknown variant, EBUSY for one that is chosen at boot
    /// if there are groups or objects. Nothing has changed then.
    pub fn set_policy(&mut self, name: &str, value: &str) -> Result<Effects<'_>, ControlError> {
        self.choose_policy(name, value)?;
        Ok(self.hand_out())
    }

    fn choose_policy(&mut self, name: &str, value: &str) -> Result<(), ControlError> {
        match name {
            "watermarks" => {
                let policy = lookup(&WATERMARKS, name, value)?;
                if self.config.watermarks.policy != policy {
                    self.config.watermarks.policy = policy;
                    self.mem.setup_watermarks(&self.config.watermarks);
                }
            }
            "kswapd" => self.config.kswapd = lookup(&KSWAPD, name, value)?,
            "direct_reclaim" => {
                self.config.direct_reclaim = lookup(&DIRECT_RECLAIM, name, value)?;
            }
            "per_cpu_lists" => {
                let policy = lookup(&PER_CPU_LISTS, name, value)?;
                if self.config.watermarks.pcp != policy {
                    self.config.watermarks.pcp = policy;
                    self.mem.setup_watermarks(&self.config.watermarks);
                }
            }
            "lru" => self.config.lru = lookup(&LRU, name, value)?,
            "soft_limit" => self.config.soft_limit = lookup(&SOFT_LIMIT, name, value)?,
            "soft_limit_root" => {
                self.config.soft_limit_root = lookup(&SOFT_LIMIT_ROOT, name, value)?;
            }
            "soft_limit_direct" => {
                self.config.soft_limit_direct = lookup(&SOFT_LIMIT_DIRECT, name, value)?;
            }
            "soft_limit_node" => {
                self.config.soft_limit_node = lookup(&SOFT_LIMIT_NODE, name, value)?;
            }
            "shrink_priority" => {
                self.config.shrink_priority = lookup(&SHRINK_PRIORITY, name, value)?;
            }
            "group_walk" => self.config.group_walk = lookup(&GROUP_WALK, name, value)?,
            "cgroup" => self.config.cgroup = lookup(&CGROUP, name, value)?,
            "background_compaction" => {
                self.config.background_compaction = lookup(&BACKGROUND_COMPACTION, name, value)?;
            }
            "compaction" => self.config.compaction = lookup(&COMPACTION, name, value)?,
            "compaction_capture" => {
                self.config.compaction_capture = lookup(&COMPACTION_CAPTURE, name, value)?;
            }
            "thp" => self.set_thp(lookup(&THP, name, value)?),
            "thp_defrag" => self.config.thp_defrag = lookup(&THP_DEFRAG, name, value)?,
            "slab_accounting" => {
                let accounting = lookup(&SLAB_ACCOUNTING, name, value)?;
                self.set_at_boot(name, |config| config.slab_accounting = accounting)?;
            }
            "slub" => {
                let slub = lookup(&SLUB, name, value)?;
                self.set_at_boot(name, |config| config.slub = slub)?;
            }
            "slab_owners" => {
                let owners = lookup(&SLAB_OWNERS, name, value)?;
                self.set_at_boot(name, |config| config.slab_owners = owners)?;
            }
            "objcg_stock" => {
                let slots = lookup(&OBJCG_STOCK, name, value)?;
                self.set_at_boot(name, |config| config.objcg_stock_slots = slots)?;
            }
            "kmem_accounting" => {
                let is_on = lookup(&KMEM_ACCOUNTING, name, value)?;
                self.set_at_boot(name, |config| config.kmem_accounting = is_on)?;
            }
            _ => return Err(no_such(name)),
        }
        Ok(())
    }

    /// What a kernel is told on its command line, before it has groups or objects.
    fn set_at_boot(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Config),
    ) -> Result<(), ControlError> {
        let mut config = self.config.clone();
        change(&mut config);
        if config != self.config && !self.slabs_are_as_at_boot() {
            let message = format!("policy {name} is chosen at boot: before groups and objects");
            return Err(ControlError::new(Errno::Ebusy, name, message));
        }
        if config != self.config {
            self.config = config;
            self.reset_slabs();
        }
        Ok(())
    }

    /// The variant of a policy that is in force.
    ///
    /// # Errors
    /// ENOENT for an unknown policy.
    pub fn policy(&self, name: &str) -> Result<&'static str, ControlError> {
        match name {
            "watermarks" => Ok(name_of(&WATERMARKS, self.config.watermarks.policy)),
            "kswapd" => Ok(name_of(&KSWAPD, self.config.kswapd)),
            "direct_reclaim" => Ok(name_of(&DIRECT_RECLAIM, self.config.direct_reclaim)),
            "per_cpu_lists" => Ok(name_of(&PER_CPU_LISTS, self.config.watermarks.pcp)),
            "lru" => Ok(name_of(&LRU, self.config.lru)),
            "soft_limit" => Ok(name_of(&SOFT_LIMIT, self.config.soft_limit)),
            "soft_limit_root" => Ok(name_of(&SOFT_LIMIT_ROOT, self.config.soft_limit_root)),
            "soft_limit_direct" => Ok(name_of(&SOFT_LIMIT_DIRECT, self.config.soft_limit_direct)),
            "soft_limit_node" => Ok(name_of(&SOFT_LIMIT_NODE, self.config.soft_limit_node)),
            "shrink_priority" => Ok(name_of(&SHRINK_PRIORITY, self.config.shrink_priority)),
            "group_walk" => Ok(name_of(&GROUP_WALK, self.config.group_walk)),
            "cgroup" => Ok(name_of(&CGROUP, self.config.cgroup)),
            "background_compaction" => {
                Ok(name_of(&BACKGROUND_COMPACTION, self.config.background_compaction))
            }
            "compaction" => Ok(name_of(&COMPACTION, self.config.compaction)),
            "compaction_capture" => {
                Ok(name_of(&COMPACTION_CAPTURE, self.config.compaction_capture))
            }
            "thp" => Ok(name_of(&THP, self.config.thp)),
            "thp_defrag" => Ok(name_of(&THP_DEFRAG, self.config.thp_defrag)),
            "slab_accounting" => Ok(name_of(&SLAB_ACCOUNTING, self.config.slab_accounting)),
            "slub" => Ok(name_of(&SLUB, self.config.slub)),
            "slab_owners" => Ok(name_of(&SLAB_OWNERS, self.config.slab_owners)),
            "objcg_stock" => Ok(name_of(&OBJCG_STOCK, self.config.objcg_stock_slots)),
            "kmem_accounting" => Ok(name_of(&KMEM_ACCOUNTING, self.config.kmem_accounting)),
            _ => Err(no_such(name)),
        }
    }
}
