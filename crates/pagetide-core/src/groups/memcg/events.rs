//! Event counters of a group.
//!
//! Linux: `memcg_vm_event_stat`, `struct memcg_vmstats` (mm/memcontrol.c, 6.1). A group counts some
//! of the machine's events, under the same names: those with the word `group` in `stats/vmstat.rs`.
//! memory.stat, records, digests and the comparison with a kernel follow from that word. The event
//! is counted with [`MemcgEvents::add`] where it happens.

use crate::stats::vmstat::Event;
use crate::units::digest::State;
use alloc::vec::Vec;

/// Events counted for groups, in the order of memory.stat.
pub const COUNTED: &[Event] = &{
    let mut events = [Event::Pgfault; NR_COUNTED];
    let (mut from, mut to) = (0, 0);
    while to < NR_COUNTED {
        if Event::ALL[from].is_of_groups() {
            events[to] = Event::ALL[from];
            to += 1;
        }
        from += 1;
    }
    events
};

const NR_COUNTED: usize = {
    let (mut nr, mut at) = (0, 0);
    while at < Event::COUNT {
        nr += Event::ALL[at].is_of_groups() as usize;
        at += 1;
    }
    nr
};

/// Sums over the kinds of reclaimers.
const SUMS: [(&str, [Event; 2]); 2] = [
    ("pgscan", [Event::PgscanKswapd, Event::PgscanDirect]),
    ("pgsteal", [Event::PgstealKswapd, Event::PgstealDirect]),
];

/// Index of each event in [`COUNTED`] (Linux `memcg_events_index`).
const PLACES: [Option<u8>; Event::COUNT] = {
    let mut places = [None; Event::COUNT];
    let mut at = 0;
    while at < COUNTED.len() {
        places[COUNTED[at] as usize] = Some(at as u8);
        at += 1;
    }
    places
};

const fn place(event: Event) -> usize {
    match PLACES[event as usize] {
        Some(place) => place as usize,
        None => panic!("groups do not count this event"),
    }
}

/// A group's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub struct MemcgEvents {
    counts: [u64; COUNTED.len()],
}

impl MemcgEvents {
    /// Counts `n` events. The kind must be in [`COUNTED`].
    #[inline]
    pub(crate) fn add(&mut self, event: Event, n: u64) {
        self.counts[place(event)] += n;
    }

    #[inline]
    pub(crate) fn count(&mut self, event: Event) {
        self.add(event, 1);
    }

    /// Number of events; 0 for events that are not in [`COUNTED`].
    pub fn get(&self, event: Event) -> u64 {
        PLACES[event as usize].map_or(0, |place| self.counts[usize::from(place)])
    }

    /// Adds the counts of another group.
    pub fn add_all(&mut self, other: &MemcgEvents) {
        for (count, other) in self.counts.iter_mut().zip(other.counts) {
            *count += other;
        }
    }

    /// Name and count of each event, and the sums over reclaimers, as memory.stat calls them.
    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        let sum = |parts: [Event; 2]| parts.map(|part| self.get(part)).iter().sum();
        let sums = SUMS.map(|(name, parts)| (name, sum(parts)));
        COUNTED.iter().map(|event| (event.name(), self.get(*event))).chain(sums).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_a_place_and_a_row_of_its_own() {
        let mut events = MemcgEvents::default();
        for (at, &event) in COUNTED.iter().enumerate() {
            events.add(event, at as u64 + 1);
            events.count(event);
        }
        let mut twice = events;
        twice.add_all(&events);
        let rows = twice.rows();
        for (at, &event) in COUNTED.iter().enumerate() {
            let of_name: Vec<_> = rows.iter().filter(|(name, _)| *name == event.name()).collect();
            assert_eq!(of_name, [&(event.name(), 2 * (at as u64 + 2))]);
        }
        let at = |name: &str| rows.iter().position(|(of, _)| *of == name).unwrap();
        assert_eq!(rows[at("pgscan")].1, rows[at("pgscan_kswapd")].1 + rows[at("pgscan_direct")].1);
        assert_eq!(rows.len(), COUNTED.len() + SUMS.len());
    }
}
