//! Errors that the audit must find.

use super::*;
use crate::process::Machine;
use crate::slab::kmem_cache::SlabSeat;

/// The audit's message about a machine after `spoil` has corrupted it.
fn found(spoil: impl Fn(&mut Machine, CacheId, Object)) -> std::string::String {
    let (mut machine, cache, _, mm) = with_group(Config::default(), 96);
    let objects: Vec<Object> = (0..200).map(|_| alloc(&mut machine, mm, cache)).collect();
    for &object in objects.iter().step_by(3) {
        free(&mut machine, cache, object);
    }
    machine.audit().unwrap();
    // In the first slab, from which no CPU allocates any more.
    spoil(&mut machine, cache, objects[1]);
    machine.audit().expect_err("the audit misses it").0
}

#[test]
fn the_audit_finds_what_is_spoilt() {
    let slot = |machine: &Machine, object: Object| {
        machine.slabs.caches[object.cache].place_of(object.number).0
    };
    fn at(machine: &mut Machine, cache: CacheId) -> &mut KmemCache {
        &mut machine.slabs.caches[cache]
    }
    let frame = |machine: &Machine, object: Object| {
        machine.slabs.caches[object.cache].slabs[slot(machine, object)].pfn.idx()
    };
    let free_bit = |machine: &mut Machine, cache, object: Object| {
        let it = at(machine, cache);
        let bit = object.number & ((1 << it.word_shift) - 1);
        it.free_bits[(object.number >> it.word_shift) as usize] ^= 1 << bit;
    };
    type Spoil<'a> = &'a dyn Fn(&mut Machine, CacheId, Object);
    let spoilt: &[(&str, Spoil)] = &[
        ("slab 0: 14 free", &free_bit),
        ("is owned and not in use", &|machine, cache, object| {
            free_bit(machine, cache, object);
            at(machine, cache).slabs[0].free += 1;
        }),
        ("an object is free twice", &|machine, cache, _| {
            let it = at(machine, cache);
            let (slot, word) = (it.cpus[0].slot as usize, it.cpus[0].base >> it.word_shift);
            let bits = it.cpus[0].word & it.cpus[0].word.wrapping_neg();
            it.free_bits[word as usize] |= bits;
            it.slabs[slot].free += 1;
        }),
        ("may take back", &|machine, cache, _| at(machine, cache).cpus[0].returnable ^= 1),
        ("not written down", &|machine, cache, object| {
            at(machine, cache).owners[object.number as usize] = NO_OWNER;
        }),
        ("no owner 7", &|machine, cache, object| {
            // The bytes of the group as before, plus one more object's.
            at(machine, cache).owners[object.number as usize] = 7;
            let size = at(machine, cache).charge_size;
            machine.slabs.objcgs.stock_of(CPU).grow(-i64::from(size), false);
        }),
        ("pages charged for slabs", &|machine, _, _| {
            machine.slabs.objcgs.stock_of(CPU).nr_bytes += 8;
        }),
        ("has no vector of owners", &|machine, cache, object| {
            let slot = slot(machine, object);
            at(machine, cache).slabs[slot].owner_vector = Object::NONE;
        }),
        ("slab frames", &|machine, _, _| {
            machine.mem.pages.open(crate::units::Pfn(0));
            machine.mem.pages[0].set(crate::frames::page::PageFlags::SLAB);
        }),
        ("slab 0: pfn", &|machine, _, object| {
            let frame = frame(machine, object);
            machine.mem.pages[frame].clear(crate::frames::page::PageFlags::SLAB);
        }),
        ("slab 0: pfn", &|machine, _, object| {
            let frame = frame(machine, object);
            machine.mem.pages[frame].index += 1;
        }),
        ("slabs, pages and objects", &|machine, cache, _| at(machine, cache).nr_slabs += 1),
        ("slabs, pages and objects", &|machine, cache, _| at(machine, cache).nr_pages -= 1),
        ("on a chain and Full", &|machine, cache, _| {
            at(machine, cache).slabs[0].seat = SlabSeat::Full
        }),
    ];
    for (expected, spoil) in spoilt {
        let found = found(spoil);
        assert!(found.contains(expected), "{expected:?}: {found}");
    }
}
