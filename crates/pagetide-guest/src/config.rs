//! The runner's instructions: `pagetide.conf` in the working directory, one `KEY VALUE` on each
//! line.
//!
//! * `scenario PATH`: the scenario file, with its path on the host, so that relative paths of
//!   traces resolve.
//! * `variant NAME`: the variant to run.
//! * `set KEY=VALUE`: a change of the scenario; may be repeated, in order.
//! * `add NAME:KEY=VALUE,...`: a variant that is not in the file.
//! * `module PATH`: a kernel module to load, in order.
//! * `groups PATH`: on a live machine, the group below which the scenario's groups are created.

use pagetide_scenario::load::AddedVariant;
use std::path::PathBuf;

/// Path of the instructions.
pub const PATH: &str = "pagetide.conf";

/// The instructions.
#[derive(Debug, Default, PartialEq)]
pub struct GuestConfig {
    pub scenario: PathBuf,
    pub variant: String,
    /// Changes of the scenario.
    pub sets: Vec<(String, String)>,
    pub added: Vec<AddedVariant>,
    pub modules: Vec<PathBuf>,
    /// A group of a live machine.
    pub groups: Option<PathBuf>,
}

impl GuestConfig {
    /// Parses the text of [`PATH`].
    pub fn parse(text: &str) -> Result<GuestConfig, String> {
        let mut config = GuestConfig::default();
        for line in text.lines() {
            let (key, value) = line.split_once(' ').ok_or_else(|| line.to_owned())?;
            match key {
                "scenario" => config.scenario = value.into(),
                "variant" => value.clone_into(&mut config.variant),
                "set" => {
                    let (key, value) = value.split_once('=').ok_or_else(|| line.to_owned())?;
                    config.sets.push((key.to_owned(), value.to_owned()));
                }
                "add" => config.added.push(value.parse().map_err(|_| line.to_owned())?),
                "module" => config.modules.push(value.into()),
                "groups" => config.groups = Some(value.into()),
                _ => return Err(line.to_owned()),
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_in_order() {
        let text = "scenario /a b/c.toml\nvariant x = y\nset machine.memory=\"1GiB\"\n\
                    set a=b=c\nadd calm:vm.swappiness=10\nmodule /m/1.ko\nmodule /m/2.ko\n\
                    groups /g\n";
        let config = GuestConfig::parse(text).unwrap();
        assert_eq!(config.scenario, PathBuf::from("/a b/c.toml"));
        assert_eq!(config.variant, "x = y");
        assert_eq!(config.sets[0], ("machine.memory".into(), "\"1GiB\"".into()));
        assert_eq!(config.sets[1], ("a".into(), "b=c".into()));
        assert_eq!(config.added[0].to_string(), "calm:vm.swappiness=10");
        assert!(GuestConfig::parse("add calm").is_err());
        assert_eq!(config.modules.len(), 2);
        assert_eq!(config.groups, Some("/g".into()));
        assert_eq!(GuestConfig::parse("colour red"), Err("colour red".into()));
    }
}
