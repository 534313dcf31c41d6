//! Plug-ins: they are asked, corrected and overruled where necessary; and a plug-in that repeats
//! the built-in answers changes nothing.

use crate::strange::{RandomPolicy, SparingPolicy};
use crate::world::TestWorld;
use pagetide_core::config::{Config, LruPolicy};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::process::ProcessCall;
use pagetide_core::reclaim::plugin::{GroupPlan, GroupPolicy, GroupVisit, Plugins, PolicyFault};
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::digest::Digest;
use pagetide_core::units::{MemcgId, NodeId, PAGE_SIZE};

const MIB: u64 = (1 << 20) / PAGE_SIZE;

fn world(plugins: &Plugins, policy: Option<&str>) -> TestWorld {
    world_of(Config::default(), plugins, policy)
}

fn world_of(config: Config, plugins: &Plugins, policy: Option<&str>) -> TestWorld {
    plugins.check().unwrap();
    let mut world = TestWorld::of(64, 2, config, 1 << 16).unaudited().with_working_disk();
    world.machine.use_plugin(plugins.choose(policy).unwrap());
    world
}

/// Two groups that together need one and a half times the machine's memory, and a file that is
/// read. Ends with an audit. Returns the pages that each of the two has left.
fn rivals(world: &mut TestWorld, controls: [&[(&str, &str)]; 2]) -> [u64; 2] {
    let groups = controls.map(|controls| world.group(ROOT, controls));
    let pages = 45 * MIB;
    let tasks = groups.map(|memcg| world.task(memcg, pages));
    let file = world.machine.create_file(8 * MIB * PAGE_SIZE, false).unwrap();
    for pass in 0..3 {
        for page in 0..pages {
            for (mm, heap) in tasks {
                if !world.machine.is_exited(mm) {
                    world.access(mm, heap, page, pass == 0);
                }
            }
        }
        let offset = pass * MIB * PAGE_SIZE;
        let (mm, node) = (tasks[0].0, NodeId(0));
        if !world.machine.is_exited(mm) {
            let len = 4 * MIB * PAGE_SIZE;
            world.drive(&mut ProcessCall::read(mm, node, file, offset, len, Default::default()));
        }
        world.machine.audit().unwrap();
    }
    world.settle_and_audit();
    tasks.map(|task| world.resident(task, pages))
}

fn wrong(world: &TestWorld, wrong: PolicyFault) -> u64 {
    world.machine.plugin_errors().iter().find(|(it, _)| *it == wrong).map_or(0, |(_, times)| *times)
}

/// Repeats the built-in answers, and counts the questions in its state.
#[derive(Clone, Debug, Default)]
struct Echo(u64);

impl GroupPolicy for Echo {
    fn plan(&mut self, _: &GroupVisit<'_>, _: &mut GroupPlan) {
        self.0 += 1;
    }

    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.0);
    }
}

#[test]
fn plugins_that_agree_with_the_built_in_rules_change_nothing() {
    for &lru in LruPolicy::ALL {
        let plugins = Plugins::new().groups("echo", Echo::default());
        let files = [None, Some("echo")].map(|policy| {
            let config = Config { lru, ..Config::default() };
            let mut world = world_of(config, &plugins, policy);
            rivals(&mut world, [&[("memory.low", "20M")], &[]]);
            assert_eq!(world.machine.plugin_errors(), []);
            let mut files = vec![world.machine.proc_vmstat(), world.machine.proc_zoneinfo()];
            for memcg in world.machine.memcg_ids() {
                files.push(world.machine.read_group_control(memcg, "memory.stat", 0).unwrap());
            }
            files
        });
        assert_eq!(files[0], files[1], "{lru:?}");
    }
}

#[test]
fn names_and_state_are_in_the_digest_and_equal_histories_are_equal() {
    let plugins = Plugins::new().groups("a", Echo(0)).groups("b", Echo(0)).groups("c", Echo(1));
    let digest = |policy| world(&plugins, policy).machine.digest();
    let all = [None, Some("a"), Some("b"), Some("c")].map(digest);
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{at} is as one before");
    }
    assert_eq!(digest(Some("linux")), all[0]);
    let wild = Plugins::new().groups("wild", RandomPolicy::new(7));
    let run = || {
        let mut world = world(&wild, Some("wild"));
        rivals(&mut world, [&[], &[]]);
        world.machine.digest()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_copy_of_a_machine_has_a_policy_of_its_own() {
    let plugins = Plugins::new().groups("echo", Echo::default());
    let mut first = world(&plugins, Some("echo"));
    let second = first.machine.clone();
    let before = second.digest();
    rivals(&mut first, [&[], &[]]);
    assert_eq!(second.digest(), before);
    assert_ne!(first.machine.digest(), before);
}

#[test]
fn names_are_refused_at_registration_and_unknown_ones_when_chosen() {
    let message = |plugins: Plugins| plugins.check().unwrap_err().to_string();
    let twice = Plugins::new().groups("a", SparingPolicy).groups("a", Echo(0));
    assert_eq!(
        message(twice.groups("b c", Echo(0))),
        "two policies of a kind are registered as \"a\""
    );
    for name in ["", "linux", "a b", "ä", &"x".repeat(65)] {
        assert!(
            message(Plugins::new().groups(name, SparingPolicy)).contains("cannot be registered"),
            "{name}"
        );
    }
    let plugins = Plugins::new().groups("a", SparingPolicy);
    assert_eq!(plugins.group_names().collect::<Vec<_>>(), ["a"]);
    let unknown = plugins.choose(Some("b")).unwrap_err().to_string();
    assert_eq!(unknown, "there is no such policy as \"b\"");
}

/// Spares the first child of the root as long as it may.
#[derive(Clone, Debug)]
struct SpareFirst;

impl GroupPolicy for SpareFirst {
    fn plan(&mut self, visit: &GroupVisit<'_>, plan: &mut GroupPlan) {
        plan.skip = visit.group.id() == MemcgId(1);
    }

    fn digest(&self, _: &mut Digest) {}
}

#[test]
fn a_group_policy_decides_which_groups_are_reclaimed() {
    let plugins = Plugins::new().groups("spare-first", SpareFirst);
    let mut world = world(&plugins, Some("spare-first"));
    let [first, second] = rivals(&mut world, [&[], &[]]);
    assert!(first > 44 * MIB && second < 20 * MIB, "{first} and {second} pages");
    assert_eq!(world.count(Event::OomKill), 0);
}

#[test]
fn a_policy_that_spares_every_group_is_overruled() {
    let plugins = Plugins::new().groups("miser", SparingPolicy);
    let mut world = world(&plugins, Some("miser"));
    rivals(&mut world, [&[], &[]]);
    assert_eq!(world.count(Event::OomKill), 0);
    assert!(world.count(Event::Pswpout) > 20 * MIB);
    assert!(wrong(&world, PolicyFault::Overruled) > 0);
    assert!(wrong(&world, PolicyFault::TooManyWalks) > 0);
}

#[test]
fn out_of_memory_comes_at_last_where_a_policy_spares_and_nothing_else_is_left() {
    let plugins = Plugins::new().groups("miser", SparingPolicy);
    let mut world = TestWorld::of(32, 1, Config::default(), 0).unaudited();
    world.machine.use_plugin(plugins.choose(Some("miser")).unwrap());
    let memcg = world.machine.create_memcg("g".into(), ROOT).unwrap();
    let (mm, heap) = world.task(memcg, 40 * MIB);
    for page in (0..40 * MIB).take_while(|_| true) {
        if world.machine.is_exited(mm) {
            break;
        }
        world.access(mm, heap, page, true);
    }
    assert!(world.machine.is_exited(mm), "there is no swap");
    world.settle_and_audit();
}

#[derive(Clone, Debug)]
struct Impossible(GroupPlan);

impl GroupPolicy for Impossible {
    fn plan(&mut self, _: &GroupVisit<'_>, plan: &mut GroupPlan) {
        *plan = self.0;
    }

    fn digest(&self, _: &mut Digest) {}
}

#[test]
fn plans_that_cannot_be_are_put_right_and_counted() {
    let plan = GroupPlan { skip: false, priority: 12, protected: 0 };
    for (plan, expected) in [
        (GroupPlan { priority: -1, ..plan }, PolicyFault::PriorityOutOfRange),
        (GroupPlan { priority: i8::MAX, ..plan }, PolicyFault::PriorityOutOfRange),
        (GroupPlan { priority: i8::MIN, ..plan }, PolicyFault::PriorityOutOfRange),
        (GroupPlan { protected: u64::MAX, ..plan }, PolicyFault::ProtectsTooMuch),
    ] {
        let plugins = Plugins::new().groups("impossible", Impossible(plan));
        let mut world = world(&plugins, Some("impossible"));
        rivals(&mut world, [&[], &[]]);
        assert!(wrong(&world, expected) > 0, "{plan:?}");
        assert_eq!(world.count(Event::OomKill), 0, "{plan:?}");
    }
}

#[test]
fn memory_min_holds_whatever_a_policy_plans() {
    let plan = GroupPlan { skip: false, priority: 0, protected: 0 };
    let plugins = Plugins::new().groups("hard", Impossible(plan));
    let mut world = world(&plugins, Some("hard"));
    let [first, _] = rivals(&mut world, [&[("memory.min", "30M")], &[]]);
    assert!(first >= 28 * MIB, "{first} pages of 30 MiB");
    assert!(wrong(&world, PolicyFault::ProtectsTooLittle) > 0);
}
