//! Event counters of a group.
//!
//! Linux: `memcg_vm_event_stat`, `struct memcg_vmstats` (mm/memcontrol.c, 6.1). A group counts some
//! of the machine's events, under the same names. [`COUNTED`] is the only list of these events;
//! memory.stat, records, digests and the comparison with a kernel use it. A new counter needs a
//! line in that list and a call of [`MemcgEvents::add`] where the event happens.
//!
//! Invariant: [`COUNTED`] has each event once.

use crate::stats::vmstat::Event;
use crate::units::digest::State;
use alloc::vec::Vec;

/// Events counted for groups, in the order of memory.stat.
pub const COUNTED: &[Event] = &[
    Event::WorkingsetRefaultAnon,
    Event::WorkingsetRefaultFile,
    Event::WorkingsetActivateAnon,
    Event::WorkingsetActivateFile,
    Event::WorkingsetRestoreAnon,
    Event::WorkingsetRestoreFile,
    Event::WorkingsetNodereclaim,
    Event::PgscanKswapd,
    Event::PgscanDirect,
    Event::PgstealKswapd,
    Event::PgstealDirect,
    Event::Pgfault,
    Event::Pgmajfault,
    Event::Pgrefill,
    Event::Pgactivate,
    Event::Pgdeactivate,
    Event::ThpFaultAlloc,
    Event::ThpCollapseAlloc,
];

/// Sums over the kinds of reclaimers; memory.stat prints each sum before its parts.
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

    /// Name and count of each event as in memory.stat, with the sums over reclaimers.
    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        let first = SUMS.map(|(_, [first, _])| first);
        let mut rows = Vec::with_capacity(COUNTED.len() + SUMS.len());
        for &event in COUNTED {
            if event == first[0] {
                let sum = |parts: [Event; 2]| parts.map(|part| self.get(part)).iter().sum();
                rows.extend(SUMS.map(|(name, parts)| (name, sum(parts))));
            }
            rows.push((event.name(), self.get(event)));
        }
        rows
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
        assert_eq!((at("pgsteal"), at("pgscan_kswapd")), (at("pgscan") + 1, at("pgscan") + 2));
        assert_eq!(rows[at("pgscan")].1, rows[at("pgscan_kswapd")].1 + rows[at("pgscan_direct")].1);
        assert_eq!(rows.len(), COUNTED.len() + SUMS.len());
    }
}
