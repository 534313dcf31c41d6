//! Registry of plug-ins by name.
//!
//! Linux has no such registry. A registered plug-in is a prototype. Each machine gets a copy, in
//! the state that the prototype had when it was registered.
//!
//! Invariant: no two plug-ins have the same name, and every name is valid in a scenario.

use super::group::GroupPolicy;
use crate::ageing::page_policy::{NamedPagePolicy, PagePolicy};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The name that means "no plug-in".
const NONE: &str = "linux";
/// Longest name, in bytes.
const NAME_MAX: usize = 64;

/// A policy with the name under which it was registered.
#[derive(Debug)]
pub struct NamedPolicy {
    pub(crate) name: String,
    pub(crate) policy: Box<dyn CloneGroupPolicy>,
}

/// A cloneable group policy.
pub(crate) trait CloneGroupPolicy: GroupPolicy {
    /// A copy in the same state.
    fn boxed(&self) -> Box<dyn CloneGroupPolicy>;
}

impl<P: GroupPolicy + Clone + 'static> CloneGroupPolicy for P {
    fn boxed(&self) -> Box<dyn CloneGroupPolicy> {
        Box::new(self.clone())
    }
}

impl Clone for NamedPolicy {
    fn clone(&self) -> Self {
        NamedPolicy { name: self.name.clone(), policy: self.policy.boxed() }
    }
}

/// Why a policy cannot be registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegistrationError {
    /// Another policy already has the name.
    Twice(String),
    /// Not a valid name: letters, digits and hyphens, at most 64, and not `linux`.
    BadName(String),
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistrationError::Twice(name) => {
                write!(f, "two policies of a kind are registered as {name:?}")
            }
            RegistrationError::BadName(name) => write!(
                f,
                "a policy cannot be registered as {name:?}: a name has letters, digits and hyphens, at \
                 most {NAME_MAX}, and is not {NONE:?}"
            ),
        }
    }
}

impl core::error::Error for RegistrationError {}

/// No plug-in has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no such policy as {:?}", self.0)
    }
}

impl core::error::Error for UnknownPolicy {}

/// Registered policies, by name.
///
/// ```
/// use pagetide_core::units::digest::Digest;
/// use pagetide_core::reclaim::plugin::{GroupPlan, GroupPolicy, GroupVisit, Plugins};
///
/// /// Skips a group without page faults.
/// #[derive(Clone, Debug)]
/// struct SpareIdle;
///
/// impl GroupPolicy for SpareIdle {
///     fn plan(&mut self, visit: &GroupVisit<'_>, plan: &mut GroupPlan) {
///         plan.skip = visit.group.faults() == 0;
///     }
///     fn digest(&self, _: &mut Digest) {}
/// }
///
/// let plugins = Plugins::new().groups("spare-idle", SpareIdle);
/// assert!(plugins.check().is_ok());
/// assert!(plugins.choose(Some("spare-idle")).is_ok());
/// assert!(plugins.choose(Some("spare-busy")).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    groups: Vec<NamedPolicy>,
    pages: Vec<NamedPagePolicy>,
    refused: Option<RegistrationError>,
}

impl Plugins {
    /// An empty registry.
    pub fn new() -> Plugins {
        Plugins::default()
    }

    /// Registers a group policy. [`Plugins::check`] reports an invalid or taken name.
    #[must_use]
    pub fn groups<P: GroupPolicy + Clone + 'static>(mut self, name: &str, policy: P) -> Plugins {
        let is_taken = self.groups.iter().any(|known| known.name == name);
        if self.accepts(name, is_taken) {
            self.groups.push(NamedPolicy { name: name.into(), policy: Box::new(policy) });
        }
        self
    }

    /// Registers a page policy. [`Plugins::check`] reports an invalid or taken name.
    #[must_use]
    pub fn pages<P: PagePolicy + Clone + 'static>(mut self, name: &str, policy: P) -> Plugins {
        let is_taken = self.pages.iter().any(|known| known.name == name);
        if self.accepts(name, is_taken) {
            self.pages.push(NamedPagePolicy { name: name.into(), policy: Box::new(policy) });
        }
        self
    }

    fn accepts(&mut self, name: &str, is_taken: bool) -> bool {
        let fits = (1..=NAME_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && name != NONE;
        if !fits {
            self.refused.get_or_insert(RegistrationError::BadName(name.into()));
        } else if is_taken {
            self.refused.get_or_insert(RegistrationError::Twice(name.into()));
        }
        fits && !is_taken
    }

    /// Reports the first registration that failed.
    ///
    /// # Errors
    ///
    /// The name was already taken or is not valid.
    pub fn check(&self) -> Result<(), RegistrationError> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    /// Names of the group policies, in registration order.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(|known| known.name.as_str())
    }

    /// Names of the page policies, in registration order.
    pub fn page_names(&self) -> impl Iterator<Item = &str> {
        self.pages.iter().map(|known| known.name.as_str())
    }

    /// A copy of the page policy with this name; `None` and `linux` mean no policy.
    ///
    /// # Errors
    ///
    /// The name is not registered.
    pub fn choose_pages(
        &self,
        name: Option<&str>,
    ) -> Result<Option<NamedPagePolicy>, UnknownPolicy> {
        let Some(name) = name.filter(|&name| name != NONE) else { return Ok(None) };
        let known = self.pages.iter().find(|known| known.name == name);
        known.cloned().map(Some).ok_or_else(|| UnknownPolicy(name.into()))
    }

    /// A copy of the group policy with this name; `None` and `linux` mean no policy.
    ///
    /// # Errors
    ///
    /// The name is not registered.
    pub fn choose(&self, name: Option<&str>) -> Result<Option<NamedPolicy>, UnknownPolicy> {
        let Some(name) = name.filter(|&name| name != NONE) else { return Ok(None) };
        let known = self.groups.iter().find(|known| known.name == name);
        known.cloned().map(Some).ok_or_else(|| UnknownPolicy(name.into()))
    }
}
