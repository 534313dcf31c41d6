use super::*;
use crate::config::{BackgroundCompaction, CompactionPolicy, Config, KswapdPolicy};
use crate::frames::gfp::{AllocFlags, Gfp, Watermark};
use crate::frames::node::NodeSpec;
use crate::interface::ctx::Ctx;
use crate::interface::daemon::Daemon;
use crate::interface::effect::Step;
use crate::process::Machine;
use crate::process::MmId;
use crate::reclaim::direct::DirectReclaim;
use crate::units::{Cpu, MemcgId, NodeId};

const NODE: NodeId = NodeId(0);
const CTX: Ctx = Ctx { cpu: Cpu(0), node: NODE, now: 0, asker: MmId::NONE, memcg: MemcgId(0) };

fn machine(kswapd: KswapdPolicy, mib: u64) -> Machine {
    let config = Config {
        kswapd,
        compaction: CompactionPolicy::Linux45,
        background_compaction: BackgroundCompaction::Kcompactd,
        ..Config::default()
    };
    Machine::new(&[NodeSpec::x86_64(mib << 20, 0, 0)], 1, config).unwrap()
}

/// Takes single pages of one zone until it has none left.
fn exhaust(machine: &mut Machine, gfp: Gfp, zone: usize) {
    let flags = AllocFlags::at(Watermark::None);
    while machine.mem.nodes[0].zones[zone].free_pages() > 0 {
        machine.mem.get_page_from_freelist(Cpu(0), NODE, 0, gfp, flags).unwrap();
    }
}

#[test]
fn a_quarter_of_a_node_is_enough_for_blocks_and_all_of_it_is_wanted_for_pages() {
    // DMA has a quarter of 64 MiB (less what boot keeps) and a sixteenth of 256 MiB.
    for (mib, enough) in [(56, true), (256, false)] {
        let mut machine = machine(KswapdPolicy::Linux45, mib);
        exhaust(&mut machine, Gfp::KERNEL.with(Gfp::DMA32), 1);
        // A zone without pages to reclaim counts as balanced, so give one some.
        machine.mem.pgdat[0].zone_lru[1][2] = 1000;
        machine.mem.pgdat[0].kswapd.by_zone.pages_scanned = [0; MAX_NR_ZONES];
        assert!(!machine.pgdat_balanced_by_zone(NODE, 0, 1), "{mib} MiB");
        let dma_only = machine.mem.nodes[0].zones[0].free_pages() > 1000;
        assert_eq!(machine.pgdat_balanced_by_zone(NODE, 3, 1), enough && dma_only, "{mib} MiB");
        // Since 4.8 one balanced zone is enough for both.
        machine.set_policy("kswapd", "linux-6.1").unwrap().discard();
        assert_eq!(machine.pgdat_balanced(NODE, 0, 1), dma_only, "{mib} MiB");
    }
}

#[test]
fn kswapd_descends_to_priority_1_and_a_task_to_0() {
    let mut machine = machine(KswapdPolicy::Linux61, 8);
    exhaust(&mut machine, Gfp::KERNEL, 0);
    machine.take_work();
    let mut reclaim = DirectReclaim::new(0, Gfp::KERNEL);
    while !matches!(machine.direct_reclaim_step(&mut reclaim, &CTX), Step::Done(_)) {}
    // The root's lists are visited once a round, at priorities 12 to 0.
    assert_eq!(machine.take_work().lruvecs_visited, 13);
    machine.wakeup_kswapd(NODE, 0, 2, true);
    machine.take_effects().discard();
    while machine.mem.pgdat[0].kswapd.failures == 0 {
        let (_, effects) = machine.step_daemon(Daemon::Kswapd(NODE), Cpu(0), 0);
        effects.discard();
    }
    assert_eq!(machine.take_work().lruvecs_visited, 12);
}
