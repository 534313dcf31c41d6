//! The names that a scenario may use are those that the core knows, with the same bounds.

use pagetide_core::config::Config;
use pagetide_core::effect::Effects;
use pagetide_core::node::NodeSpec;
use pagetide_core::page_size::PageSize;
use pagetide_core::process::Machine;
use pagetide_scenario::model;
use pagetide_scenario::names::{
    find_knob, kernel_caches, BackgroundCompactionPolicy, CompactionCapturePolicy,
    CompactionPolicy, DirectReclaimPolicy, GroupWalkPolicy, KnobForm, KswapdPolicy, LruPolicy,
    Named, ObjcgStockPolicy, PerCpuListsPolicy, ShrinkPriorityPolicy, SlabAccountingPolicy,
    SlabOwnersPolicy, SlubPolicy, SoftLimitDirectPolicy, SoftLimitNodePolicy, SoftLimitPolicy,
    SoftLimitRootPolicy, ThpDefragPolicy, ThpPolicy, WatermarksPolicy, CACHE_CONTROLS,
    GROUP_CONTROLS, SYSCTLS,
};

fn machine() -> Machine {
    Machine::new(&[NodeSpec::x86_64(512 << 20, 0, 0)], 2, Config::default()).unwrap()
}

/// Files that ask for something to be done now, which makes no sense before a run.
const ACTIONS: [&str; 2] = ["vm.drop_caches", "vm.stat_refresh"];

#[test]
fn the_sysctls_are_the_core_s() {
    for name in Machine::control_names().filter(|name| !ACTIONS.contains(name)) {
        assert!(SYSCTLS.iter().any(|knob| knob.name == name), "{name} is not in SYSCTLS");
    }
    for knob in SYSCTLS {
        assert!(Machine::control_names().any(|name| name == knob.name), "no {}", knob.name);
    }
}

#[test]
fn their_bounds_are_the_core_s() {
    for knob in SYSCTLS {
        if let KnobForm::Word(words) = knob.form {
            let mut machine = machine();
            for word in words {
                machine.write_control(knob.name, word).unwrap().discard();
            }
            let text = machine.read_control(knob.name).unwrap().replace(['[', ']'], "");
            assert_eq!(text.split_whitespace().collect::<Vec<_>>(), words);
        }
        if let KnobForm::Trigger { max } = knob.form {
            let write = |value: i64| {
                machine().write_control(knob.name, &value.to_string()).map(Effects::discard)
            };
            assert!(write(1).is_ok() && write(max).is_ok(), "{}", knob.name);
            assert!(write(0).is_err() && write(max + 1).is_err(), "{}", knob.name);
        }
        let KnobForm::Integer { min, max } = knob.form else { continue };
        if knob.name.starts_with("vm.wmark_") {
            continue; // Their bounds are each other.
        }
        let write = |value: i64| {
            machine().write_control(knob.name, &value.to_string()).map(Effects::discard)
        };
        assert!(write(min).is_ok(), "{} refuses {min}", knob.name);
        assert!(write(max).is_ok(), "{} refuses {max}", knob.name);
        assert!(write(min - 1).is_err(), "{} takes {}", knob.name, min - 1);
        if let Some(above) = max.checked_add(1) {
            assert!(write(above).is_err(), "{} takes {above}", knob.name);
        }
    }
}

/// Two knobs count bytes within bounds in pages.
#[test]
fn the_bounds_follow_the_page_size_as_the_core_s() {
    for (ours, cores) in model::PageSize::ALL.into_iter().zip(PageSize::ALL) {
        assert_eq!(ours.bytes(), cores.bytes());
        let node = NodeSpec::x86_64_of_pages(512 << 20, 0, 0, cores);
        let machine = || Machine::new(&[node], 2, Config::of_pages(cores)).unwrap();
        for name in ["vm.dirty_bytes", "vm.fault_around_bytes"] {
            let KnobForm::Integer { min, max } = find_knob(SYSCTLS, name).unwrap().form_with(ours)
            else {
                panic!("{name} takes an integer")
            };
            let write = |value: i64| {
                machine().write_control(name, &value.to_string()).map(Effects::discard)
            };
            assert!(write(min).is_ok() && write(max).is_ok(), "{name}, {ours:?}");
            assert!(write(min - 1).is_err(), "{name}, {ours:?}: takes {}", min - 1);
            if let Some(above) = max.checked_add(1) {
                assert!(write(above).is_err(), "{name}, {ours:?}: takes {above}");
            }
        }
    }
}

#[test]
fn the_policies_are_the_core_s() {
    fn check<T: Named>(policy: &str) {
        for one in T::ALL {
            let mut machine = machine();
            machine.set_policy(policy, one.name()).unwrap().discard();
            assert_eq!(machine.policy(policy).unwrap(), one.name());
        }
    }
    check::<WatermarksPolicy>("watermarks");
    check::<KswapdPolicy>("kswapd");
    check::<DirectReclaimPolicy>("direct_reclaim");
    check::<PerCpuListsPolicy>("per_cpu_lists");
    check::<BackgroundCompactionPolicy>("background_compaction");
    check::<CompactionPolicy>("compaction");
    check::<CompactionCapturePolicy>("compaction_capture");
    check::<SlabAccountingPolicy>("slab_accounting");
    check::<SlubPolicy>("slub");
    check::<SlabOwnersPolicy>("slab_owners");
    check::<ObjcgStockPolicy>("objcg_stock");
    check::<ThpPolicy>("thp");
    check::<ThpDefragPolicy>("thp_defrag");
    check::<LruPolicy>("lru");
    check::<SoftLimitPolicy>("soft_limit");
    check::<SoftLimitRootPolicy>("soft_limit_root");
    check::<SoftLimitDirectPolicy>("soft_limit_direct");
    check::<SoftLimitNodePolicy>("soft_limit_node");
    check::<ShrinkPriorityPolicy>("shrink_priority");
    check::<GroupWalkPolicy>("group_walk");
}

#[test]
fn the_files_of_a_group_are_the_core_s() {
    for knob in GROUP_CONTROLS {
        let mut machine = machine();
        machine.set_policy("shrink_priority", "posted").unwrap().discard();
        let group = machine.create_memcg("group".into(), Machine::ROOT).unwrap();
        let text = match knob.form {
            KnobForm::Integer { min, max } => {
                let mut write = |value: i64| {
                    machine.write_group_control(group, knob.name, &value.to_string()).is_ok()
                };
                assert!(write(min) && write(max), "{} refuses its bounds", knob.name);
                assert!(!write(min - 1) && !write(max + 1), "{} takes more", knob.name);
                continue;
            }
            KnobForm::BytesOrMinusOne => "-1",
            KnobForm::BytesOrMax => "max",
            _ => "64M",
        };
        machine.write_group_control(group, knob.name, text).unwrap().1.discard();
    }
}

/// The largest of kmalloc's caches are there where pages are larger.
#[test]
fn the_kernel_s_caches_are_the_core_s() {
    let machine = machine();
    let known: Vec<String> = kernel_caches().collect();
    for (_, cache) in machine.kmem_caches() {
        assert!(known.contains(&cache.name), "{} is not known", cache.name);
    }
    for name in known.iter().filter(|name| !name.ends_with("6k") && !name.ends_with("2k")) {
        let is_large = name.ends_with("64k") || name.ends_with("128k");
        assert!(is_large || machine.find_cache(name).is_some(), "no {name}");
    }
}

#[test]
fn the_files_of_a_cache_are_the_core_s() {
    for knob in CACHE_CONTROLS {
        assert!(Machine::cache_control_names().any(|name| name == knob.name), "{}", knob.name);
        let write = |value: i64| {
            let name = format!("slab.kmalloc-64.{}", knob.name);
            machine().write_control(&name, &value.to_string()).is_ok()
        };
        match knob.form {
            KnobForm::Integer { min, max } => {
                assert!(write(min) && write(max), "{} refuses its bounds", knob.name);
                assert!(!write(min - 1) && !write(max + 1), "{} takes more", knob.name);
            }
            KnobForm::Trigger { max: 1 } => assert!(write(1) && !write(0) && !write(2)),
            form => panic!("{form:?}"),
        }
    }
}
