//! Cached objects, and the shrinker that frees them.

use super::*;

#[test]
fn kept_objects_are_freed_under_pressure_unless_used() {
    let mut machine = machine(Config::default());
    let dentry =
        machine.create_cache(CacheSpec { reclaimable: true, ..spec("dentry", 192) }).unwrap();
    let inode = machine
        .create_cache(CacheSpec { reclaimable: true, ..spec("ext4_inode_cache", 1080) })
        .unwrap();
    let (memcg, mm) = group(&mut machine, "g");
    let mut kept = Vec::new();
    for _ in 0..3000 {
        let (name, node) = (alloc(&mut machine, mm, dentry), alloc(&mut machine, mm, inode));
        kept.push(machine.cache_object(name, Some(node), CachedKind::Dentry).unwrap());
        for object in [name, node] {
            let root = machine.cache_of_object(object);
            assert_eq!(machine.kmem_cache_free(root, object, CPU), Err(SlabError::IsCached));
        }
    }
    machine.audit().unwrap();
    assert_eq!(machine.nr_cached(memcg, CachedKind::Dentry), 3000);
    assert!(machine.use_cached(kept[0]));
    let before = slab_pages(&machine);
    let mut state = machine.begin_shrink_slab(memcg, NodeId(0), 1, Gfp::KERNEL).unwrap();
    while !machine.shrink_slab_step(&mut state, CPU) {
        machine.audit().unwrap();
    }
    // 3000 >> 1, times 4 / 2: all; 2 batches of 1024, the rest is deferred.
    assert_eq!(machine.mem.vmstat.get(Event::SlabsScanned), 2048);
    assert_eq!(machine.groups.memcgs[memcg].cached[0].deferred[1], 3000 - 2048);
    assert!(machine.use_cached(kept[0]), "a used object is skipped once");
    assert!(!machine.use_cached(kept[1]));
    assert!(machine.nr_cached(memcg, CachedKind::Inode) > 0, "inodes wait on a list of their own");
    assert!(slab_pages(&machine) < before);
    machine.drop_slab(CPU).discard();
    machine.drop_slab(CPU).discard();
    machine.audit().unwrap();
    assert_eq!(machine.nr_cached(memcg, CachedKind::Dentry), 0);
    assert_eq!(machine.nr_cached(memcg, CachedKind::Inode), 0);
}

#[test]
fn reclaim_that_may_not_enter_file_systems_defers_their_objects() {
    let mut machine = machine(with(SlabAccounting::PerObject));
    let dentry =
        machine.create_cache(CacheSpec { reclaimable: true, ..spec("dentry", 192) }).unwrap();
    let (memcg, mm) = group(&mut machine, "g");
    for _ in 0..2000 {
        let name = alloc(&mut machine, mm, dentry);
        machine.cache_object(name, None, CachedKind::Dentry).unwrap();
    }
    for round in 1..=2 {
        let mut state = machine.begin_shrink_slab(memcg, NodeId(0), 2, Gfp::NOFS).unwrap();
        while !machine.shrink_slab_step(&mut state, CPU) {}
        assert_eq!(machine.mem.vmstat.get(Event::SlabsScanned), 0);
        // 2000 >> 2, times 4 / 2.
        assert_eq!(machine.groups.memcgs[memcg].cached[0].deferred[1], round * 1000);
    }
    let mut state = machine.begin_shrink_slab(memcg, NodeId(0), 0, Gfp::KERNEL).unwrap();
    while !machine.shrink_slab_step(&mut state, CPU) {}
    assert!(machine.mem.vmstat.get(Event::SlabsScanned) >= 2000, "with the deferred objects");
    machine.audit().unwrap();
}

#[test]
fn what_a_group_kept_is_its_parents() {
    for accounting in [
        SlabAccounting::PerObject,
        SlabAccounting::PerGroupCaches,
        SlabAccounting::PerGroupCachesReparent,
    ] {
        let mut machine = machine(with(accounting));
        let dentry =
            machine.create_cache(CacheSpec { reclaimable: true, ..spec("dentry", 192) }).unwrap();
        let (memcg, mm) = group(&mut machine, "g");
        let early = alloc(&mut machine, mm, dentry);
        work_off(&mut machine);
        let late = alloc(&mut machine, mm, dentry);
        for object in [early, late] {
            machine.cache_object(object, None, CachedKind::Dentry).unwrap();
        }
        machine.audit().unwrap();
        leave(&mut machine, memcg, mm);
        work_off(&mut machine);
        machine.audit().unwrap();
        assert_eq!(machine.nr_cached(ROOT, CachedKind::Dentry), 2, "{accounting:?}");
        machine.drop_slab(CPU).discard();
        machine.audit().unwrap();
        assert_eq!(machine.nr_cached(ROOT, CachedKind::Dentry), 0);
        assert_eq!(machine.memcg_ids().count(), 1, "{accounting:?}: nothing holds the group now");
    }
}

#[test]
fn a_shrinker_says_what_it_does() {
    use crate::stats::event::TraceEvent;
    let mut machine = machine(Config::default());
    let dentry =
        machine.create_cache(CacheSpec { reclaimable: true, ..spec("dentry", 192) }).unwrap();
    let (memcg, mm) = group(&mut machine, "g");
    for _ in 0..3000 {
        let object = alloc(&mut machine, mm, dentry);
        machine.cache_object(object, None, CachedKind::Dentry).unwrap();
    }
    machine.record_events(true);
    let nid = NodeId(0);
    let mut state = machine.begin_shrink_slab(memcg, nid, 1, Gfp::KERNEL).unwrap();
    while !machine.shrink_slab_step(&mut state, CPU) {}
    let mut events = Vec::new();
    machine.take_events(&mut events);
    let [start, end] = events[..] else { panic!("{events:?}") };
    assert_eq!(
        start,
        TraceEvent::MmShrinkSlabStart {
            shrink: "super_cache_scan",
            nid,
            memcg,
            nr_objects_to_shrink: 0,
            cache_items: 3000,
            delta: 3000,
            total_scan: 3000,
            priority: 1,
        }
    );
    let retval = state.freed;
    assert_eq!(3000 - machine.nr_cached(memcg, CachedKind::Dentry), retval);
    let left = 3000 - 2048;
    assert_eq!(
        end,
        TraceEvent::MmShrinkSlabEnd {
            shrink: "super_cache_scan",
            nid,
            memcg,
            unused_scan: 0,
            new_scan: left,
            retval,
            total_scan: left,
        }
    );
    // The event of the next scan has the deferred objects.
    let next = machine.begin_shrink_slab(memcg, nid, 12, Gfp::KERNEL);
    assert_eq!(next.is_some(), machine.nr_cached(memcg, CachedKind::Dentry) > 0);
    machine.take_events(&mut events);
    let TraceEvent::MmShrinkSlabStart { nr_objects_to_shrink, .. } = events[2] else {
        panic!("{events:?}")
    };
    assert_eq!(nr_objects_to_shrink, left);
}
