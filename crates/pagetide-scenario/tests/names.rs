//! The names that a scenario may use are those that the core knows, with the same bounds.

use pagetide_core::config::Config;
use pagetide_core::machine::Machine;
use pagetide_core::node::NodeSpec;
use pagetide_scenario::names::{
    DirectReclaimPolicy, KnobForm, KswapdPolicy, Named, PerCpuListsPolicy, WatermarksPolicy,
    SYSCTLS,
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
        let KnobForm::Integer { min, max } = knob.form else { continue };
        if knob.name.starts_with("vm.wmark_") {
            continue; // Their bounds are each other.
        }
        let write = |value: i64| machine().write_control(knob.name, &value.to_string());
        assert!(write(min).is_ok(), "{} refuses {min}", knob.name);
        assert!(write(max).is_ok(), "{} refuses {max}", knob.name);
        assert!(write(min - 1).is_err(), "{} takes {}", knob.name, min - 1);
        if let Some(above) = max.checked_add(1) {
            assert!(write(above).is_err(), "{} takes {above}", knob.name);
        }
    }
}

#[test]
fn the_policies_are_the_core_s() {
    fn check<T: Named>(policy: &str) {
        for one in T::ALL {
            let mut machine = machine();
            machine.set_policy(policy, one.name()).unwrap();
            assert_eq!(machine.policy(policy).unwrap(), one.name());
        }
    }
    check::<WatermarksPolicy>("watermarks");
    check::<KswapdPolicy>("kswapd");
    check::<DirectReclaimPolicy>("direct_reclaim");
    check::<PerCpuListsPolicy>("per_cpu_lists");
}
