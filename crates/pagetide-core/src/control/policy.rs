//! Policies: which of several built mechanisms is in force, by name.
//!
//! The kernel has one mechanism a release; a comparison needs several in one program. Names are
//! those of scenario files.

use super::error::{quoted, ControlError, Errno};
use crate::config::{DirectReclaimPolicy, KswapdPolicy};
use crate::machine::Machine;
use crate::pcp::PcpPolicy;
use crate::watermark::WatermarkPolicy;
use alloc::format;
use alloc::string::String;

const WATERMARKS: [(&str, WatermarkPolicy); 3] = [
    ("derived", WatermarkPolicy::Derived),
    ("scale-factor", WatermarkPolicy::ScaleFactor),
    ("apart", WatermarkPolicy::Apart),
];

const KSWAPD: [(&str, KswapdPolicy); 2] =
    [("linux-6.1", KswapdPolicy::Linux61), ("linux-2.6.37", KswapdPolicy::Linux2637)];

const DIRECT_RECLAIM: [(&str, DirectReclaimPolicy); 3] = [
    ("linux-6.1", DirectReclaimPolicy::Linux61),
    ("linux-2.6.37", DirectReclaimPolicy::Linux2637),
    ("linux-2.6.35", DirectReclaimPolicy::Linux2635),
];

const PER_CPU_LISTS: [(&str, PcpPolicy); 2] =
    [("linux-6.1", PcpPolicy::Linux61), ("linux-2.6.37", PcpPolicy::Linux2637)];

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
    let message = format!(
        "there is no policy {}; there are watermarks, kswapd, direct_reclaim and per_cpu_lists",
        quoted(name)
    );
    ControlError::new(Errno::Enoent, name, message)
}

impl Machine {
    /// Puts a policy in force: `watermarks` is `derived`, `scale-factor` or `apart`; `kswapd`
    /// and `direct_reclaim` are `linux-6.1` or `linux-2.6.37`, the latter also `linux-2.6.35`;
    /// `per_cpu_lists` is `linux-6.1` or `linux-2.6.37`. A new policy for watermarks
    /// computes them again.
    ///
    /// # Errors
    /// ENOENT for an unknown policy, EINVAL for an unknown variant. Nothing has changed then.
    pub fn set_policy(&mut self, name: &str, value: &str) -> Result<(), ControlError> {
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
            _ => return Err(no_such(name)),
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
            _ => Err(no_such(name)),
        }
    }
}
