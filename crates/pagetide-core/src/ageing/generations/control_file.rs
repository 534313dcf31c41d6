//! The file `lru_gen` of debugfs: the generations of each group on each node.
//!
//! Linux: `lru_gen_seq_show` (mm/vmscan.c, 6.1).

use super::window::place_of;
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::units::{MemcgId, Nanos, NodeId};
use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;

impl Kernel {
    /// The text of `lru_gen`: for each group and node one line a generation, with its number, its
    /// age in milliseconds, and its anonymous and file pages. Empty under the two lists.
    pub fn lru_gen(&self, now: Nanos) -> String {
        let mut text = String::new();
        let mut next = Some(ROOT);
        while let Some(memcg) = next {
            next = self.groups.next_memcg(ROOT, memcg);
            self.write_generations(&mut text, memcg, now);
        }
        text
    }

    /// Path of a group, as of a file (Linux `cgroup_path`).
    fn path_of_group(&self, memcg: MemcgId) -> String {
        let group = &self.groups.memcgs[memcg];
        match (memcg, group.parent) {
            (ROOT, _) => "/".into(),
            (_, ROOT) => format!("/{}", group.name),
            (_, parent) => format!("{}/{}", self.path_of_group(parent), group.name),
        }
    }

    fn write_generations(&self, text: &mut String, memcg: MemcgId, now: Nanos) {
        for node in (0..self.nr_nodes()).map(|node| NodeId(node as u8)) {
            let Some(generations) = self.groups.generations(memcg, node) else { return };
            if node == NodeId(0) {
                let _ = writeln!(text, "memcg {:5} {}", memcg.0 + 1, self.path_of_group(memcg));
            }
            let _ = writeln!(text, " node {:5}", node.0);
            for seq in generations.seqs(false) {
                let born = generations.births[usize::from(place_of(seq))];
                let age = now.saturating_sub(born) / 1_000_000;
                let _ = write!(text, " {seq:10} {age:10}");
                let [anon, file] = [false, true].map(|file| generations.size(file, seq));
                let _ = writeln!(text, " {anon:10}  {file:10} ");
            }
        }
    }
}
