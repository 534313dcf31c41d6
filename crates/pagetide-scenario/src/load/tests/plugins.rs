//! Names of registered policies.

use super::variants::with_sets;
use super::*;

const TEXT: &str = r#"
name = "x"
[machine]
memory = "64MiB"
[policy]
groups = "mine"
[[task]]
name = "t"
workload = "touch"
size = "1MiB"
"#;

fn names(groups: &[&str]) -> PluginNames {
    let groups = groups.iter().map(|name| (*name).to_owned()).collect();
    PluginNames { groups, ..PluginNames::default() }
}

fn load_with(plugins: PluginNames) -> Result<Option<String>, String> {
    let overrides = Overrides { plugins, ..Overrides::default() };
    let loaded = load_str("x.toml", TEXT, Path::new(""), &overrides);
    loaded
        .map(|scenario| scenario.variants[0].setup.plugins.groups.clone())
        .map_err(|e| e.to_string())
}

#[test]
fn registered_policies_are_found_by_name() {
    let chosen = load_with(names(&["mine", "other"])).unwrap();
    assert_eq!(chosen.as_deref(), Some("mine"));
    // A caller that does not run the simulator accepts any name.
    assert_eq!(load_with(PluginNames { any: true, ..PluginNames::default() }).unwrap(), chosen);
}

#[test]
fn unknown_ones_are_located_and_the_known_ones_listed() {
    let errors = load_with(names(&["your", "their"])).unwrap_err();
    for part in [
        "x.toml:6:10",
        "there is no policy of groups called `mine`",
        "there are `linux`, `your` and `their`",
    ] {
        assert!(errors.contains(part), "{part} is not in\n{errors}");
    }
    let errors = load_with(names(&[])).unwrap_err();
    assert!(errors.contains("this program has only `linux`"), "{errors}");
}

#[test]
fn linux_is_none_of_them() {
    let mut overrides = with_sets(&[("policy.groups", "linux")]);
    overrides.plugins = names(&["mine"]);
    let scenario = load_str("x.toml", TEXT, Path::new(""), &overrides).unwrap();
    assert_eq!(scenario.variants[0].setup.plugins.groups, None);
}

#[test]
fn a_page_policy_has_lists_of_its_own() {
    let plugins = PluginNames { pages: vec!["mine".into()], ..PluginNames::default() };
    let load = |sets: &[(&str, &str)]| {
        let mut overrides = with_sets(sets);
        overrides.plugins = plugins.clone();
        let loaded =
            load_str("x.toml", &TEXT.replace("groups", "pages"), Path::new(""), &overrides);
        loaded.map(|scenario| scenario.variants[0].setup.plugins.pages.clone())
    };
    assert_eq!(load(&[]).unwrap().as_deref(), Some("mine"));
    let errors = load(&[("policy.lru", "mglru")]).unwrap_err().to_string();
    assert!(errors.contains("a page policy takes the place of generations"), "{errors}");
    assert!(load(&[("policy.lru", "mglru"), ("policy.lru", "linux-6.1")]).is_ok());
    let errors = load(&[("policy.kernel", "linux-4.5")]).unwrap_err().to_string();
    assert!(errors.contains("one set of lists for each node"), "{errors}");
    let errors = load(&[("policy.pages", "others")]).unwrap_err().to_string();
    assert!(errors.contains("there are `linux` and `mine`"), "{errors}");
}
