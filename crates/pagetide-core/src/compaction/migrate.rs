//! Moving one page to another frame.

use crate::effect::Effects;
use crate::machine::Machine;
use crate::units::{Cpu, Pfn};

impl Machine {
    /// The world has copied a frame ([`Effect::CopyPage`](crate::effect::Effect::CopyPage)), or could
    /// not: the page lives in its new frame now, or stays where it was.
    pub fn copy_done(&mut self, from: Pfn, ok: bool, cpu: Cpu) -> Effects<'_> {
        let _ = (from, ok, cpu);
        Effects::new(&mut self.effects)
    }
}
