//! The watermarks of the system's zones, and the knobs that give them.
//!
//! Linux: `__setup_per_zone_wmarks` (mm/page_alloc.c), as described in docs/scenario.md. A system
//! can have other watermarks: they may have been computed when it had less memory (at boot, before
//! memory was added), or by a rule of its kernel (zone Movable since 6.4). Since 5.0 a boost is part
//! of all three that /proc/zoneinfo prints. Invariant: a scenario gets `vm.min_free_kbytes` and
//! `vm.watermark_scale_factor`, the system's or those that its watermarks follow from, never a
//! watermark.

use super::note::{shown, ImportNote};
use super::number::{count, scale};
use super::page_size;
use super::release;
use super::snapshot::HostSnapshot;
use super::zoneinfo::HostZone;
use pagetide_core::config::Sysctl;
use pagetide_core::frames::watermark::highmem_min;
use pagetide_core::units::page_size::PageSize;

/// A boost is a number of pageblocks, unless the cap cuts it.
const BOOST_MIN: u64 = 512;
/// Default of `vm.watermark_scale_factor`.
pub(super) const SCALE_FACTOR: u64 = 10;
/// The kernel's maximum of `vm.watermark_scale_factor`.
const SCALE_FACTOR_MAX: u64 = 3000;

/// The inputs of the watermarks.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatermarkRule {
    /// `vm.min_free_kbytes`, in pages.
    pub min_free_pages: u64,
    /// `vm.watermark_scale_factor`; `None` before 4.6.
    pub scale_factor: Option<u64>,
}

/// Min, low and high in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostWatermarks {
    pub min: u64,
    pub low: u64,
    pub high: u64,
}

impl WatermarkRule {
    /// The watermarks of a zone of `managed` pages among `total`.
    pub(super) fn marks(self, managed: u64, total: u64) -> HostWatermarks {
        let min = scale(self.min_free_pages, managed, total);
        let (to_low, to_high) = match self.scale_factor {
            None => (min / 4, min / 2),
            Some(factor) => {
                let step = scale(managed, factor, 10_000).max(min / 4);
                (step, step.saturating_mul(2))
            }
        };
        HostWatermarks { min, low: min.saturating_add(to_low), high: min.saturating_add(to_high) }
    }
}

impl HostWatermarks {
    /// The watermarks of a zone HighMem, where only the distances follow from `vm.min_free_kbytes`.
    pub(super) fn of_highmem(self, managed: u64) -> HostWatermarks {
        let min = highmem_min(managed);
        let above = |mark: u64| min.saturating_add(mark - self.min);
        HostWatermarks { min, low: above(self.low), high: above(self.high) }
    }

    /// The larger of the differences in min and in high, in pages.
    pub(super) fn distance(self, other: HostWatermarks) -> u64 {
        self.min.abs_diff(other.min).max(self.high.abs_diff(other.high))
    }
}

/// Watermarks read from /proc/zoneinfo.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadMarks {
    /// Without boost, in pages of the system, in the order of the zones.
    pub marks: Vec<Option<HostWatermarks>>,
    /// `vm.min_free_kbytes`, the system's or derived.
    pub min_free_kbytes: Option<u64>,
    /// `vm.watermark_scale_factor`, the system's or derived; `None` if the kernel has none.
    pub scale_factor: Option<u64>,
    pub notes: Vec<ImportNote>,
}

/// Reads the watermarks of a system. `has_scale_factor` says whether its
/// kernel has `vm.watermark_scale_factor` (since 4.6).
pub(super) fn read(host: &HostSnapshot, size: PageSize, has_scale_factor: bool) -> ReadMarks {
    let number = |sysctl: Sysctl| host.sysctl(sysctl).and_then(count);
    let (known_min, known_factor) =
        (number(Sysctl::MinFreeKbytes), number(Sysctl::WatermarkScaleFactor));
    let zones = &host.zones.zones;
    let mut read = ReadMarks {
        marks: zones.iter().map(printed).collect(),
        min_free_kbytes: known_min,
        ..ReadMarks::default()
    };
    let ruled: Vec<usize> = (0..zones.len()).filter(|zone| is_ruled(&zones[*zone])).collect();
    let total = ruled.iter().fold(0u64, |sum, zone| sum.saturating_add(managed(&zones[*zone])));
    let may_be_hidden = zones.iter().all(|zone| zone.boost.is_none())
        && host.release.as_deref().is_none_or(|name| !release::is_before(name, "5.0"));
    for (index, zone) in zones.iter().enumerate() {
        let Some(marks) = read.marks[index] else { continue };
        let due = known_min.map(|kbytes| scale(size.pages_in_kbytes(kbytes), managed(zone), total));
        let boost = match zone.boost {
            Some(boost) => boost,
            None if may_be_hidden && ruled.contains(&index) => {
                marks.hidden_boost(due, managed(zone), known_factor.unwrap_or(SCALE_FACTOR))
            }
            None => 0,
        };
        if boost > 0 {
            read.marks[index] = Some(marks.without(boost));
            let message = format!(
                "zone {} of node {} has watermarks boosted by {boost} pages; a run starts without \
                 the boost",
                shown(&zone.name),
                zone.node
            );
            read.notes.push(ImportNote::new("/proc/zoneinfo", message));
        }
    }
    let of_rule: Option<Vec<(u64, HostWatermarks)>> =
        ruled.iter().map(|zone| Some((managed(&zones[*zone]), read.marks[*zone]?))).collect();
    let of_rule = of_rule.filter(|zones| !zones.is_empty());
    let mut unknown = Vec::new();
    if known_min.is_none() {
        let pages = of_rule.as_ref().map(|zones| derived_min(zones, total));
        let kbytes = pages.map(|pages| page_size::kbytes(size, pages));
        read.min_free_kbytes = kbytes.filter(|kbytes| *kbytes <= i32::MAX as u64);
        if read.min_free_kbytes.is_none() {
            unknown.push("vm.min_free_kbytes");
        }
    }
    if has_scale_factor {
        let derived = || derived_factor(of_rule.as_deref()?);
        read.scale_factor = known_factor.or_else(derived);
        if read.scale_factor.is_none() {
            unknown.push("vm.watermark_scale_factor");
            read.scale_factor = Some(SCALE_FACTOR);
        }
    }
    if !unknown.is_empty() && !zones.is_empty() {
        let message =
            format!("the watermarks do not tell {}: the default is used", unknown.join(" and "));
        read.notes.push(ImportNote::new("/proc/zoneinfo", message));
    }
    read
}

fn printed(zone: &HostZone) -> Option<HostWatermarks> {
    Some(HostWatermarks { min: zone.min?, low: zone.low?, high: zone.high? })
}

fn managed(zone: &HostZone) -> u64 {
    super::free::managed(zone)
}

/// Whether min is a share of `vm.min_free_kbytes`. Zone HighMem, and Movable since 6.4, have at most
/// 128 pages.
fn is_ruled(zone: &HostZone) -> bool {
    const CAP: u64 = 128;
    let is_capped = zone.name == "Movable" && zone.min.is_some_and(|min| min <= CAP);
    managed(zone) > 0 && !is_capped && !matches!(zone.name.as_str(), "HighMem" | "Device")
}

/// The pages of `vm.min_free_kbytes` of which min is a share in every zone.
fn derived_min(zones: &[(u64, HostWatermarks)], total: u64) -> u64 {
    let sum = zones.iter().fold(0u64, |sum, (_, marks)| sum.saturating_add(marks.min));
    let distance = |pages: u64| {
        let of = |(managed, marks): &(u64, HostWatermarks)| {
            scale(pages, *managed, total).abs_diff(marks.min)
        };
        zones.iter().map(of).max().unwrap_or(0)
    };
    // Each share is rounded down, so the sum is less by up to a page for each zone.
    let candidates: Vec<u64> =
        (0..=zones.len() as u64).map(|more| sum.saturating_add(more)).collect();
    let nearest = candidates.iter().map(|pages| distance(*pages)).min();
    let fit: Vec<u64> =
        candidates.into_iter().filter(|pages| Some(distance(*pages)) == nearest).collect();
    fit.get(fit.len() / 2).copied().unwrap_or(sum)
}

/// The factor with which low and high follow from min. `None` if no factor does.
fn derived_factor(zones: &[(u64, HostWatermarks)]) -> Option<u64> {
    let largest = zones.iter().filter(|(_, marks)| marks.step() > marks.min / 4 + 1);
    if let Some((managed, marks)) = largest.max_by_key(|(managed, _)| *managed) {
        let factor = (u128::from(marks.step()) * 10_000).div_ceil(u128::from(*managed));
        let factor = u64::try_from(factor).ok()?;
        return (1..=SCALE_FACTOR_MAX).contains(&factor).then_some(factor);
    }
    // min / 4 is larger in every zone: any factor up to this one has the same effect.
    let most = |(managed, marks): &(u64, HostWatermarks)| {
        let end = marks.step().saturating_add(1).saturating_mul(10_000);
        (end - 1) / (*managed).max(1)
    };
    zones.iter().map(most).min().map(|most| most.clamp(1, SCALE_FACTOR))
}

impl HostWatermarks {
    /// From min to low, which no boost changes.
    fn step(self) -> u64 {
        self.low.saturating_sub(self.min)
    }

    fn without(self, boost: u64) -> HostWatermarks {
        let less = |pages: u64| pages.saturating_sub(boost);
        HostWatermarks { min: less(self.min), low: less(self.low), high: less(self.high) }
    }

    /// The boost of a kernel that does not print it (5.0 to 5.15): min is above its due, and the
    /// step to low is not.
    fn hidden_boost(self, due: Option<u64>, managed: u64, factor: u64) -> u64 {
        let step = self.step();
        if self.high.saturating_sub(self.low).abs_diff(step) > 1 {
            return 0;
        }
        // A step is never less than a quarter of min.
        let quarter = step.saturating_mul(4);
        let base = match due {
            Some(due) if step.abs_diff(scale(managed, factor, 10_000).max(due / 4)) <= 1 => due,
            _ if self.min > quarter.saturating_add(3) => quarter,
            _ => return 0,
        };
        self.min.checked_sub(base).filter(|boost| *boost >= BOOST_MIN).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::zoneinfo;

    fn of(zones: &[(&str, u64, [u64; 3], Option<u64>)], min_free: Option<&str>) -> ReadMarks {
        let mut text = String::new();
        for (name, managed, [min, low, high], boost) in zones {
            text += &format!("Node 0, zone {name}\n pages free 1\n");
            boost.iter().for_each(|boost| text += &format!(" boost {boost}\n"));
            text += &format!(" min {min}\n low {low}\n high {high}\n present {managed}\n");
        }
        let sysctls = min_free.map(|text| (Sysctl::MinFreeKbytes, text.to_owned()));
        let zones = zoneinfo::parse(&text).0;
        let sysctls = sysctls.into_iter().collect();
        read(&HostSnapshot { zones, sysctls, ..HostSnapshot::default() }, PageSize::Kib4, true)
    }

    #[test]
    fn knobs_follow_from_marks() {
        // 67584 kB in three zones, factor 10 (marks_of_a_real_machine).
        let zones = [
            ("DMA", 3840, [13, 16, 19], None),
            ("DMA32", 772_918, [2716, 3488, 4260], None),
            ("Normal", 4_030_464, [14_165, 18_195, 22_225], None),
            ("Movable", 1_000_000, [32, 32, 32], None),
        ];
        let read = of(&zones, None);
        assert_eq!((read.min_free_kbytes, read.scale_factor), (Some(67_584), Some(10)));
        assert!(read.notes.is_empty(), "{:?}", read.notes);
        // Another factor: 4030464 * 150 / 10000.
        let read = of(&[("Normal", 4_030_464, [1000, 61_456, 121_912], None)], None);
        assert_eq!((read.min_free_kbytes, read.scale_factor), (Some(4000), Some(150)));
        // min / 4, and less than the default factor gives.
        let read = of(&[("Normal", 100_000, [100, 125, 150], None)], None);
        assert_eq!((read.min_free_kbytes, read.scale_factor), (Some(400), Some(2)));
        let unknown = of(&[("Normal", 1000, [5000, 4, 3], None)], Some("20000"));
        assert_eq!(unknown.min_free_kbytes, Some(20_000));
        let none = "Node 0, zone Normal\n pages free 1\n present 9\n";
        let host = HostSnapshot { zones: zoneinfo::parse(none).0, ..HostSnapshot::default() };
        let read = super::read(&host, PageSize::Kib4, false);
        assert_eq!((read.min_free_kbytes, read.scale_factor), (None, None));
        assert!(read.notes[0].message.contains("do not tell vm.min_free_kbytes: the default"));
    }

    #[test]
    fn boosts_are_taken_off() {
        let plain = HostWatermarks { min: 8000, low: 10_000, high: 12_000 };
        let told =
            |read: &ReadMarks| read.notes.iter().any(|note| note.message.contains("boosted by"));
        for (boost, line, min_free) in [
            (1024, Some(1024), None),
            (1024, None, None),
            (1024, None, Some("32000")),
            // The step is that of the factor, so only the known reserve shows the boost.
            (0, None, None),
            (0, Some(0), Some("32000")),
        ] {
            let marks = [8000 + boost, 10_000 + boost, 12_000 + boost];
            let read = of(&[("Normal", 1_000_000, marks, line)], min_free);
            assert_eq!(read.marks, [Some(plain)], "{boost} {line:?} {min_free:?}");
            assert_eq!(read.min_free_kbytes, Some(32_000));
            assert_eq!(told(&read), boost > 0);
        }
        let read = of(&[("Normal", 4_000_000, [9024, 13_024, 17_024], None)], Some("32000"));
        assert_eq!(read.marks[0].map(|marks| marks.min), Some(8000));
        // The boost is more than the known reserve.
        let read = of(&[("Normal", 4_000_000, [24_384, 28_384, 32_384], None)], Some("32000"));
        assert_eq!(read.marks[0].map(|marks| marks.min), Some(8000));
        // The reserve was written after the watermarks, or the kernel is too old for boosts.
        let read = of(&[("Normal", 1_000_000, [9024, 11_280, 13_536], None)], Some("32000"));
        assert_eq!(read.marks[0].map(|marks| marks.min), Some(9024));
    }

    #[test]
    fn marks_of_a_real_machine() {
        let rule = WatermarkRule { min_free_pages: 67_584 / 4, scale_factor: Some(10) };
        let total = 3840 + 772_918 + 4_030_464;
        assert_eq!(rule.marks(3840, total), HostWatermarks { min: 13, low: 16, high: 19 });
        assert_eq!(rule.marks(772_918, total), HostWatermarks { min: 2716, low: 3488, high: 4260 });
        assert_eq!(
            rule.marks(4_030_464, total),
            HostWatermarks { min: 14_165, low: 18_195, high: 22_225 }
        );
    }

    #[test]
    fn old_kernels_derive_them_from_min() {
        let rule = WatermarkRule { min_free_pages: 1000, scale_factor: None };
        assert_eq!(rule.marks(100, 100), HostWatermarks { min: 1000, low: 1250, high: 1500 });
        assert_eq!(rule.marks(100, 0), HostWatermarks { min: 0, low: 0, high: 0 });
        let huge = WatermarkRule { min_free_pages: u64::MAX, scale_factor: Some(u64::MAX) };
        assert_eq!(huge.marks(u64::MAX, 1).high, u64::MAX);
    }
}
