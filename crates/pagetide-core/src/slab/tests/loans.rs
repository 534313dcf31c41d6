//! Loans: a machine with loans behaves like one without.

use super::*;
use crate::slab::loan::Loan;
use proptest::prelude::*;

/// Operations on two machines, one of which never has a loan.
#[derive(Clone, Debug)]
enum Op {
    /// Allocates from a cache for one of the groups, or the root.
    Alloc(usize, usize, u16),
    /// Pairs of an allocation and a free.
    Pairs(usize, usize, u16, u8),
    /// Frees the n-th object from the end.
    Free(usize, u16),
    FreeBulk(usize, u16),
    Shrink(usize),
    Drain,
    /// Removes the group and creates a new one.
    Leave(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let (who, cache, cpu) = (0..3usize, 0..3usize, 0..2u16);
    let op = prop_oneof![
        6 => (who.clone(), cache.clone(), cpu.clone()).prop_map(|(w, c, p)| Op::Alloc(w, c, p)),
        4 => (who, cache.clone(), cpu.clone(), 1..9u8).prop_map(|(w, c, p, n)| Op::Pairs(w, c, p, n)),
        6 => (0..40usize, cpu.clone()).prop_map(|(at, p)| Op::Free(at, p)),
        1 => (0..9usize, cpu).prop_map(|(nr, p)| Op::FreeBulk(nr, p)),
        1 => cache.prop_map(Op::Shrink),
        1 => Just(Op::Drain),
        1 => (0..2usize).prop_map(Op::Leave),
    ];
    proptest::collection::vec(op, 1..120)
}

struct Side {
    machine: Machine,
    caches: [CacheId; 3],
    tasks: [(MemcgId, MmId); 3],
    live: Vec<(CacheId, Object)>,
    lends: bool,
    loans: usize,
}

impl Side {
    fn new(lends: bool) -> Side {
        let mut machine = machine(Config::default());
        let caches = [("small", 40), ("large", 1500), ("middle", 300)].map(|(name, size)| {
            let reclaimable = name == "middle";
            machine.create_cache(CacheSpec { reclaimable, ..spec(name, size) }).unwrap()
        });
        let tasks = [
            group(&mut machine, "a"),
            group(&mut machine, "b"),
            (ROOT, machine.create_mm(ROOT).unwrap()),
        ];
        Side { machine, caches, tasks, live: Vec::new(), lends, loans: 0 }
    }

    fn alloc(&mut self, who: usize, cache: usize, cpu: u16) -> (CacheId, Object) {
        let cache = self.caches[cache];
        let object = alloc_on(&mut self.machine, self.tasks[who].1, cache, Cpu(cpu));
        let object = object.expect("there is memory");
        self.look(cpu);
        assert_eq!(self.machine.memcg_of_object(object), self.tasks[who].0);
        (cache, object)
    }

    fn free(&mut self, (cache, object): (CacheId, Object), cpu: u16) {
        self.machine.kmem_cache_free(cache, object, Cpu(cpu)).unwrap();
        self.look(cpu);
    }

    fn look(&mut self, cpu: u16) {
        self.loans += usize::from(self.machine.slabs.loans[usize::from(cpu)].cache.is_some());
        if !self.lends {
            self.machine.slabs.settle_all();
            self.machine.slabs.loans.fill(Loan::NONE);
        }
    }

    fn perform(&mut self, op: &Op) {
        match *op {
            Op::Alloc(who, cache, cpu) => {
                let object = self.alloc(who, cache, cpu);
                self.live.push(object);
            }
            Op::Pairs(who, cache, cpu, nr) => {
                for _ in 0..nr {
                    let object = self.alloc(who, cache, cpu);
                    self.free(object, cpu);
                }
            }
            Op::Free(at, cpu) => {
                if at < self.live.len() {
                    let (cache, object) = self.live.remove(self.live.len() - 1 - at);
                    self.free((cache, object), cpu);
                    if at % 4 == 0 {
                        let again = self.machine.kmem_cache_free(cache, object, Cpu(cpu));
                        assert_eq!(again, Err(SlabError::DoubleFree));
                    }
                }
            }
            Op::FreeBulk(nr, cpu) => {
                let Some(&(cache, _)) = self.live.last() else { return };
                let first = self.live.len().saturating_sub(nr);
                let tail = &self.live[first..];
                let same = tail.iter().rev().take_while(|(of, _)| *of == cache).count();
                let some = self.live.split_off(self.live.len() - same);
                let some: Vec<Object> = some.into_iter().map(|(_, object)| object).collect();
                self.machine.kmem_cache_free_bulk(cache, &some, Cpu(cpu)).unwrap();
            }
            Op::Shrink(cache) => self.machine.shrink_cache(self.caches[cache], CPU),
            Op::Drain => self.machine.drain_obj_stocks(ROOT),
            Op::Leave(who) => {
                let (memcg, mm) = self.tasks[who];
                leave(&mut self.machine, memcg, mm);
                self.tasks[who] = group(&mut self.machine, "next");
                // The removed group's live objects now belong to the root.
            }
        }
        self.machine.audit().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_decision_depends_on_a_loan(ops in ops()) {
        let mut sides = [Side::new(true), Side::new(false)];
        for op in &ops {
            sides.iter_mut().for_each(|side| side.perform(op));
            let [with, without] = &sides;
            prop_assert_eq!(&with.live, &without.live);
            prop_assert_eq!(with.machine.digest(), without.machine.digest());
            for (memcg, _) in with.tasks {
                let sizes = |side: &Side| side.machine.read_group_control(memcg, "memory.stat", 0).unwrap();
                prop_assert_eq!(sizes(with), sizes(without));
            }
        }
    }
}

#[test]
fn a_pair_that_comes_and_goes_leaves_the_stock_alone() {
    let mut side = Side::new(true);
    for pair in 0..10 {
        let object = side.alloc(0, 0, 0);
        assert_eq!(side.machine.slabs.loans[0].cache.is_some(), pair >= 1, "{pair}");
        side.free(object, 0);
    }
    let lent = side.machine.slabs.caches[side.caches[0]].cpus[0].payable;
    assert!(lent.count_ones() > 1);
    let mine = side.alloc(0, 0, 0);
    // The word is needed by the root, then the stock by another group.
    let nobodys = side.alloc(2, 0, 0);
    assert!(side.machine.slabs.loans[0].cache.is_none());
    side.machine.audit().unwrap();
    for _ in 0..3 {
        let object = side.alloc(1, 2, 0);
        side.free(object, 0);
    }
    assert_eq!(side.machine.slabs.loans[0].cache, side.caches[2]);
    assert_eq!(side.machine.memcg_of_object(mine.1), side.tasks[0].0);
    assert_eq!(side.machine.memcg_of_object(nobodys.1), ROOT);
    side.machine.audit().unwrap();
}
