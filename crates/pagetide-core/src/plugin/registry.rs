//! Registry of plug-ins by name, and the choice of plug-ins for a machine.
//!
//! Linux has no such registry. A registered plug-in is a prototype. Each machine gets a copy, in
//! the state that the prototype had when it was registered.
//!
//! Invariant: no two plug-ins of a kind have the same name, and every name is valid in a scenario.

use super::group::GroupPolicy;
use super::page::PagePolicy;
use super::NamedPolicy;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The name that means "no plug-in".
const NONE: &str = "linux";
/// Longest name, in bytes.
const NAME_MAX: usize = 64;

/// A cloneable group policy.
pub trait CloneGroupPolicy: GroupPolicy {
    /// A copy in the same state.
    fn boxed(&self) -> Box<dyn CloneGroupPolicy>;
}

impl<P: GroupPolicy + Clone + 'static> CloneGroupPolicy for P {
    fn boxed(&self) -> Box<dyn CloneGroupPolicy> {
        Box::new(self.clone())
    }
}

impl Clone for NamedPolicy<dyn CloneGroupPolicy> {
    fn clone(&self) -> Self {
        NamedPolicy { name: self.name.clone(), policy: self.policy.boxed() }
    }
}

/// A cloneable page policy.
pub trait ClonePagePolicy: PagePolicy {
    /// A copy in the same state.
    fn boxed(&self) -> Box<dyn ClonePagePolicy>;
}

impl<P: PagePolicy + Clone + 'static> ClonePagePolicy for P {
    fn boxed(&self) -> Box<dyn ClonePagePolicy> {
        Box::new(self.clone())
    }
}

impl Clone for NamedPolicy<dyn ClonePagePolicy> {
    fn clone(&self) -> Self {
        NamedPolicy { name: self.name.clone(), policy: self.policy.boxed() }
    }
}

/// Why a policy cannot be registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegistrationError {
    /// Another policy of this kind already has the name.
    Twice {
        /// `groups` or `pages`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Not a valid name: letters, digits and hyphens, at most 64, and not `linux`.
    BadName {
        /// `groups` or `pages`.
        kind: &'static str,
        /// The text given.
        name: String,
    },
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistrationError::Twice { kind, name } => {
                write!(f, "two policies of {kind} are registered as {name:?}")
            }
            RegistrationError::BadName { kind, name } => write!(
                f,
                "a policy of {kind} cannot be registered as {name:?}: a name has letters, digits and \
                 hyphens, at most {NAME_MAX}, and is not {NONE:?}"
            ),
        }
    }
}

impl core::error::Error for RegistrationError {}

/// No plug-in has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPolicy {
    /// `groups` or `pages`.
    pub kind: &'static str,
    /// The name.
    pub name: String,
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no policy of {} called {:?}", self.kind, self.name)
    }
}

impl core::error::Error for UnknownPolicy {}

/// Registered policies, by name.
///
/// ```
/// use pagetide_core::digest::Digest;
/// use pagetide_core::plugin::{GroupPlan, GroupPolicy, GroupVisit, Plugins};
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
/// assert!(plugins.choose(Some("spare-idle"), None).is_ok());
/// assert!(plugins.choose(Some("spare-busy"), None).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    groups: Vec<NamedPolicy<dyn CloneGroupPolicy>>,
    pages: Vec<NamedPolicy<dyn ClonePagePolicy>>,
    refused: Option<RegistrationError>,
}

/// The policies chosen for a machine: at most one of each kind.
#[derive(Clone, Debug, Default)]
pub struct PluginChoice {
    pub(super) groups: Option<NamedPolicy<dyn CloneGroupPolicy>>,
    pub(super) pages: Option<NamedPolicy<dyn ClonePagePolicy>>,
}

impl Plugins {
    /// An empty registry.
    pub fn new() -> Plugins {
        Plugins::default()
    }

    /// Registers a group policy. [`Plugins::check`] reports an invalid or taken name.
    #[must_use]
    pub fn groups<P: GroupPolicy + Clone + 'static>(mut self, name: &str, policy: P) -> Plugins {
        if self.accepts("groups", name, self.groups.iter().any(|known| known.name == name)) {
            self.groups.push(NamedPolicy { name: name.into(), policy: Box::new(policy) });
        }
        self
    }

    /// Registers a page policy. [`Plugins::check`] reports an invalid or taken name.
    #[must_use]
    pub fn pages<P: PagePolicy + Clone + 'static>(mut self, name: &str, policy: P) -> Plugins {
        if self.accepts("pages", name, self.pages.iter().any(|known| known.name == name)) {
            self.pages.push(NamedPolicy { name: name.into(), policy: Box::new(policy) });
        }
        self
    }

    fn accepts(&mut self, kind: &'static str, name: &str, taken: bool) -> bool {
        let fits = (1..=NAME_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && name != NONE;
        let refused = if !fits {
            RegistrationError::BadName { kind, name: name.into() }
        } else if taken {
            RegistrationError::Twice { kind, name: name.into() }
        } else {
            return true;
        };
        self.refused.get_or_insert(refused);
        false
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

    /// Names of the page policies.
    pub fn page_names(&self) -> impl Iterator<Item = &str> {
        self.pages.iter().map(|known| known.name.as_str())
    }

    /// Copies of the policies with these names; `None` and `linux` mean no policy.
    ///
    /// # Errors
    ///
    /// The name is not registered.
    pub fn choose(
        &self,
        groups: Option<&str>,
        pages: Option<&str>,
    ) -> Result<PluginChoice, UnknownPolicy> {
        let groups = match groups.filter(|&name| name != NONE) {
            None => None,
            Some(name) => match self.groups.iter().find(|known| known.name == name) {
                Some(known) => Some(known.clone()),
                None => return Err(UnknownPolicy { kind: "groups", name: name.into() }),
            },
        };
        let pages = match pages.filter(|&name| name != NONE) {
            None => None,
            Some(name) => match self.pages.iter().find(|known| known.name == name) {
                Some(known) => Some(known.clone()),
                None => return Err(UnknownPolicy { kind: "pages", name: name.into() }),
            },
        };
        Ok(PluginChoice { groups, pages })
    }
}
