//! Control files that do more than access a field: the effects of writes, and the texts of reads.
//!
//! Linux: the handlers that sysctls name instead of `proc_dointvec_minmax` (6.1):
//! `watermark_boost_factor` of mm/page_alloc.c, the dirty limits of mm/page-writeback.c,
//! `compaction_proactiveness_sysctl_handler` (mm/compaction.c), `drop_caches_sysctl_handler`
//! (fs/drop_caches.c), and `enabled_store` (mm/huge_memory.c).
//!
//! Invariant: a value passed to a handler was checked by its file.

use super::error::ControlError;
use super::{u32_of, u64_of, write_inputs};
use crate::config::Config;
use crate::config::{ControlValue, Policy, Special, Sysctl, Thp};
use crate::frames::watermark;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::Event;
use crate::units::errno::Errno;
use crate::units::Cpu;
use alloc::format;
use alloc::string::String;

impl Config {
    /// Lists all variants of a policy, with the one in force in brackets, and a newline.
    fn bracketed(&self, policy: Policy) -> String {
        let mut text = String::new();
        for (at, &choice) in policy.variants().iter().enumerate() {
            let is_in_force = self.policy(policy) == choice;
            let (open, close) = if is_in_force { ("[", "]") } else { ("", "") };
            for part in [if at == 0 { "" } else { " " }, open, choice.name(), close] {
                text += part;
            }
        }
        text + "\n"
    }
}

impl Kernel {
    pub(super) fn read_special(
        &self,
        sysctl: Sysctl,
        special: Special,
    ) -> Result<String, ControlError> {
        let config = &self.config;
        let inputs = &config.watermarks;
        let page_size = self.mem.page_size;
        let value: i128 = match special {
            Special::MinFreeKbytes => inputs.min_free_kbytes.into(),
            Special::WatermarkScaleFactor => inputs.watermark_scale_factor.into(),
            Special::WatermarkBoostFactor => inputs.watermark_boost_factor.into(),
            Special::WmarkMinKbytes => inputs.wmark_kbytes().min.into(),
            Special::WmarkLowKbytes => inputs.wmark_kbytes().low.into(),
            Special::WmarkHighKbytes => inputs.wmark_kbytes().high.into(),
            Special::ExtraFreeKbytes => inputs.extra_free_kbytes.into(),
            Special::LowmemReserveRatio => {
                let [dma, dma32, normal, movable] = inputs.lowmem_reserve_ratio;
                return Ok(format!("{dma}\t{dma32}\t{normal}\t{movable}\n"));
            }
            Special::DirtyWritebackCentisecs => (config.dirty_writeback_centisecs as i32).into(),
            Special::FaultAroundBytes => {
                page_size.bytes_of(config.fault_around_pages.into()).into()
            }
            Special::ReadAheadKb => page_size.kbytes_of(config.read_ahead_pages.into()).into(),
            Special::DirtyRatio
            | Special::DirtyBytes
            | Special::DirtyBackgroundRatio
            | Special::DirtyBackgroundBytes
            | Special::CompactionProactiveness
            | Special::DefragMode => config.number(sysctl).unwrap_or_default(),
            Special::LruGenEnabled => {
                return Ok(format!("{:#06x}\n", config.number(sysctl).unwrap_or_default()));
            }
            Special::ThpEnabled => return Ok(self.config.bracketed(Policy::Thp)),
            Special::ThpDefrag => return Ok(self.config.bracketed(Policy::ThpDefrag)),
            Special::DropCaches | Special::CompactMemory => {
                let name = sysctl.name();
                let message = format!("{name} can only be written");
                return Err(ControlError::new(Errno::Eacces, name, message));
            }
            Special::StatRefresh => return Ok(String::new()),
        };
        Ok(format!("{value}\n"))
    }

    /// Zones without a number keep their values.
    fn set_lowmem_reserve_ratio(&mut self, value: ControlValue) {
        let ControlValue::Zones(given, count) = value else { return };
        let inputs = &mut self.config.watermarks;
        for (ratio, value) in inputs.lowmem_reserve_ratio.iter_mut().zip(&given[..count]) {
            *ratio = u32_of((*value).into());
        }
        watermark::setup_lowmem_reserve(&mut self.mem.nodes, inputs);
    }

    /// The factor is read when a boost happens, so watermarks and an existing boost do not change.
    pub(super) fn set_watermark_boost_factor(&mut self, factor: u32) {
        self.config.watermarks.watermark_boost_factor = factor;
        for zone in self.mem.nodes.iter_mut().flat_map(|node| &mut node.zones) {
            zone.watermark_boost_factor = factor;
        }
    }

    /// A value above 0 makes kcompactd check every node now, not in its next round.
    pub(super) fn set_compaction_proactiveness(&mut self, share: u32) {
        self.config.compaction_proactiveness = share;
        if share > 0 {
            self.wake_all_kcompactds();
        }
    }
}

impl<O: Owners> Manager<O> {
    pub(super) fn apply_sysctl(
        &mut self,
        sysctl: Sysctl,
        value: ControlValue,
    ) -> Result<(), ControlError> {
        match sysctl.special() {
            Some(special) => self.apply_special(sysctl, special, value),
            None => {
                self.config.set_number(sysctl, value.number());
                Ok(())
            }
        }
    }

    fn apply_special(
        &mut self,
        sysctl: Sysctl,
        special: Special,
        value: ControlValue,
    ) -> Result<(), ControlError> {
        let number = value.number();
        match special {
            Special::MinFreeKbytes | Special::WatermarkScaleFactor | Special::ExtraFreeKbytes => {
                write_inputs(&mut self.config.watermarks, sysctl, number);
                self.kernel.mem.setup_watermarks(&self.kernel.config.watermarks);
            }
            // Handled as `ControlChange::Marks`.
            Special::WmarkMinKbytes | Special::WmarkLowKbytes | Special::WmarkHighKbytes => {}
            Special::WatermarkBoostFactor => self.set_watermark_boost_factor(u32_of(number)),
            Special::LowmemReserveRatio => self.set_lowmem_reserve_ratio(value),
            Special::DirtyRatio => self.set_dirty_ratio(u32_of(number)),
            Special::DirtyBytes => self.set_dirty_bytes(u64_of(number)),
            Special::DirtyBackgroundRatio => {
                self.config.dirty_background_ratio = u32_of(number);
                self.config.dirty_background_bytes = 0;
            }
            Special::DirtyBackgroundBytes => {
                self.config.dirty_background_bytes = u64_of(number);
                self.config.dirty_background_ratio = 0;
            }
            Special::DirtyWritebackCentisecs => self.set_dirty_writeback_centisecs(number as i32),
            Special::FaultAroundBytes => {
                let pages = u32_of(number) >> self.mem.page_size.shift();
                self.config.fault_around_pages = pages.checked_ilog2().map_or(1, |log| 1 << log);
            }
            Special::ReadAheadKb => {
                self.config.read_ahead_pages = u32_of(number) >> self.mem.page_size.kb_shift();
            }
            Special::LruGenEnabled => self.set_lru_gen_enabled(u32_of(number)),
            Special::CompactMemory => self.request_full_compaction(),
            Special::CompactionProactiveness => self.set_compaction_proactiveness(u32_of(number)),
            Special::DefragMode => self.set_defrag_mode(number != 0),
            Special::ThpEnabled | Special::ThpDefrag => {
                if let ControlValue::Choice(choice) = value {
                    self.put_in_force(choice)?;
                }
            }
            Special::DropCaches => self.drop_caches(u32_of(number)),
            Special::StatRefresh => self.mem.refresh_vm_stats(),
        }
        Ok(())
    }

    /// `echo N >/sys/kernel/mm/lru_gen/enabled`: every page goes to the lists of the new state. With
    /// another policy than lru = mglru the bits have no effect.
    fn set_lru_gen_enabled(&mut self, bits: u32) {
        self.config.lru_gen_enabled = bits;
        self.kernel.era_changed();
    }

    /// Turns the limit in bytes off, but only if the ratio changes (`dirty_ratio_handler`). A write
    /// to one of the two background limits always turns the other off.
    pub(super) fn set_dirty_ratio(&mut self, ratio: u32) {
        if self.config.dirty_ratio != ratio {
            self.config.dirty_ratio = ratio;
            self.config.dirty_bytes = 0;
            O::dirty_limits_changed(self);
        }
    }

    pub(super) fn set_dirty_bytes(&mut self, bytes: u64) {
        if self.config.dirty_bytes != bytes {
            self.config.dirty_bytes = bytes;
            self.config.dirty_ratio = 0;
            O::dirty_limits_changed(self);
        }
    }

    /// Starts to write all dirty pages, as Linux does, so that the new interval begins now.
    pub(super) fn set_dirty_writeback_centisecs(&mut self, interval: i32) {
        let interval = interval as u32;
        let old = core::mem::replace(&mut self.config.dirty_writeback_centisecs, interval);
        if interval != 0 && interval != old {
            O::wake_writeback(self);
        }
    }

    /// `echo N >/proc/sys/vm/drop_caches`: 1 drops page cache, 2 cached dentries and inodes, 4
    /// suppresses the kernel's log message.
    pub(super) fn drop_caches(&mut self, what: u32) {
        if what & 1 != 0 {
            O::drop_caches(self, Cpu(0));
            self.mem.vmstat.count(Event::DropPagecache);
        }
        if what & 2 != 0 {
            self.drop_kept_objects(Cpu(0));
            self.mem.vmstat.count(Event::DropSlab);
        }
    }

    /// Sets policy `thp`, and adjusts the memory reserve. Huge pages need a larger reserve:
    /// switching them on enlarges it, and switching them off resets it (`start_stop_khugepaged`).
    pub(super) fn set_thp(&mut self, thp: Thp) {
        let was_on = self.config.thp.is_on();
        self.config.thp = thp;
        let inputs = &mut self.kernel.config.watermarks;
        let page_size = self.kernel.mem.page_size;
        watermark::switch_thp(&mut self.kernel.mem.nodes, inputs, was_on, thp.is_on(), page_size);
        if thp.is_on() {
            O::huge_pages_on(self);
        }
    }
}
