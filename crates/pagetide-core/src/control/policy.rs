//! Policies of a running machine: checks a choice, and puts the chosen variant in force.
//!
//! A kernel release has one mechanism for each policy; a comparison needs several in one program.
//! [`crate::config`] declares the policies.
//!
//! Invariant: a refused choice changes nothing. `Manager::era` (the differences from Linux 6.1)
//! always equals `Era::of` the configuration.

use super::error::{quoted, ControlError};
use crate::ageing::page_policy::NamedPagePolicy;
use crate::config::era::Era;
use crate::config::{KswapdPolicy, LruPolicy, Policy, PolicyChoice};
use crate::groups::memcg::ROOT;
use crate::interface::effect::Effects;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::units::errno::Errno;
use crate::units::MemcgId;
use alloc::format;
use alloc::vec::Vec;

fn find(name: &str) -> Result<Policy, ControlError> {
    Policy::find(name).ok_or_else(|| {
        let names: Vec<&str> = Policy::ALL.iter().map(|policy| policy.name()).collect();
        let message =
            format!("there is no policy {}; the policies are {}", quoted(name), names.join(", "));
        ControlError::new(Errno::Enoent, name, message)
    })
}

impl Kernel {
    /// The variant of a policy in force.
    ///
    /// # Errors
    /// ENOENT for an unknown policy.
    pub fn policy(&self, name: &str) -> Result<&'static str, ControlError> {
        Ok(self.config.policy(find(name)?).name())
    }
}

impl Kernel {
    /// Lets a page policy order all pages, or the two lists again. Existing pages enter as new ones.
    ///
    /// # Errors
    /// EBUSY with generations, or with the kswapd of a kernel that has lists for each zone.
    pub fn use_page_policy(&mut self, chosen: Option<NamedPagePolicy>) -> Result<(), ControlError> {
        if chosen.is_some() && (self.config.lru == LruPolicy::Mglru || self.era.lists_by_zone) {
            let message = "a page policy needs lists of its own: leave out lru = \"mglru\", and \
                           kswapd before linux-6.1";
            return Err(ControlError::new(Errno::Ebusy, "pages", message.into()));
        }
        if chosen.is_some() || self.plugin.pages.is_some() {
            self.plugin.pages = chosen;
            self.switch_ageing();
        }
        Ok(())
    }

    /// Derives the era from the configuration, and orders pages as it wants. Returns the era before.
    pub(super) fn era_changed(&mut self) -> Era {
        let before = core::mem::replace(&mut self.era, Era::of(&self.config));
        if before.lists_groups != self.era.lists_groups {
            self.set_memcg_lru();
        }
        if before.generations != self.era.generations {
            self.switch_ageing();
        } else if before.lists_by_zone != self.era.lists_by_zone {
            let by_zone = self.era.lists_by_zone;
            for lruvec in self.groups.memcgs.iter_mut().flat_map(|group| &mut group.lruvecs) {
                lruvec.set_zone_lists(&mut self.mem.pages, by_zone);
            }
        }
        before
    }
}

impl<O: Owners> Manager<O> {
    /// Puts a variant of a policy in force; both are given by name. A new variant of the policies
    /// for watermarks or per-CPU lists recomputes them.
    ///
    /// # Errors
    /// ENOENT for an unknown policy, EINVAL for an unknown variant, EBUSY if the policy is chosen
    /// at boot and there are groups or objects. Nothing has changed.
    pub fn set_policy(&mut self, name: &str, value: &str) -> Result<Effects<'_>, ControlError> {
        let policy = find(name)?;
        let Some(choice) = policy.choice(value) else {
            let known: Vec<&str> = policy.variants().iter().map(|one| one.name()).collect();
            let known = known.join(", ");
            let message =
                format!("{} is not a variant of policy {name}; it takes {known}", quoted(value));
            return Err(ControlError::new(Errno::Einval, name, message));
        };
        self.choose(choice)
    }

    /// Puts a variant of a policy in force, like [`Manager::set_policy`] but without names.
    ///
    /// # Errors
    /// EBUSY if the policy is chosen at boot and there are groups or objects. Nothing has changed.
    pub fn choose(&mut self, choice: impl Into<PolicyChoice>) -> Result<Effects<'_>, ControlError> {
        self.put_in_force(choice.into())?;
        Ok(self.take_effects())
    }

    pub(super) fn put_in_force(&mut self, choice: PolicyChoice) -> Result<(), ControlError> {
        let needs_own_lists = match choice {
            PolicyChoice::Lru(lru) => lru == LruPolicy::Mglru,
            PolicyChoice::Kswapd(kswapd) => kswapd != KswapdPolicy::Linux61,
            _ => false,
        };
        if needs_own_lists && self.has_page_policy() {
            let name = choice.policy().name();
            let message = format!("a page policy orders pages, so {name} cannot");
            return Err(ControlError::new(Errno::Ebusy, name, message));
        }
        let policy = choice.policy();
        let is_in_force = self.config.policy(policy) == choice;
        match choice {
            PolicyChoice::Thp(thp) => self.set_thp(thp),
            _ if is_in_force => return Ok(()),
            PolicyChoice::Watermarks(_)
            | PolicyChoice::PerCpuLists(_)
            | PolicyChoice::Fallback(_) => {
                self.config.choose(choice);
                self.kernel.mem.setup_watermarks(&self.kernel.config.watermarks);
            }
            _ if policy.is_chosen_at_boot() => {
                if !self.slabs_are_as_at_boot() {
                    let name = policy.name();
                    let message =
                        format!("policy {name} must be chosen before there are groups and objects");
                    return Err(ControlError::new(Errno::Ebusy, name, message));
                }
                self.config.choose(choice);
                self.reset_slabs();
            }
            _ => self.config.choose(choice),
        }
        let before = self.kernel.era_changed();
        if before.counts_memory_and_swap != self.era.counts_memory_and_swap {
            self.recount_cached_swap();
        }
        self.mem.spreads_over_zones = self.era.spreads_over_zones;
        if !before.no_group_writeback && self.era.no_group_writeback {
            for id in 1..self.groups.memcgs.len() {
                O::group_removed(self, MemcgId(id as u16), ROOT);
            }
        }
        Ok(())
    }
}
