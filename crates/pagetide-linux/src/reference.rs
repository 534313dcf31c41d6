//! A reference: the kernel's side of a comparison, stored in a file.
//!
//! One JSON file for each variant, `SCENARIO.VARIANT.json`: its origin, the kernel's initial
//! memory, and a value for each metric and run, except for events of phases that occurred in no
//! run.

use crate::comparable::other_behaviour;
use crate::disk_latencies::{self, DiskLatencies};
use crate::error::LinuxError;
use crate::start::{StartMemory, StartZone};
use crate::{disk_times, program_memory, program_times, slab_start};
use pagetide_core::config::PolicySet;
use pagetide_scenario::load::AddedVariant;
use pagetide_scenario::metric::declared::{is_state, BUDDYINFO, FREE_BLOCKS};
use pagetide_scenario::metric::{KeyNames, MetricKey, ScopeKind};
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::{Metric, RunRecord, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The key that selects the policies of a kernel version.
const KERNEL_POLICIES: &str = "policy.kernel";

/// The start of a line of `not_comparable` about a setting that the kernel refused.
pub(crate) const REJECTS: &str = "the kernel rejects";

/// Version of the format.
const FORMAT: u32 = 1;

/// The results of a kernel for a variant of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelReference {
    /// Version of the format.
    pub format: u32,
    pub scenario: String,
    pub variant: String,
    /// Version of Pagetide that recorded it.
    pub recorded_by: String,
    #[serde(flatten)]
    pub origin: ReferenceOrigin,
    pub seeds: Vec<u64>,
    /// Metric key -> unit and a value for each run; `None` for a run without the metric.
    pub metrics: BTreeMap<String, (Unit, Vec<Option<f64>>)>,
    /// Latencies of single requests to the disks, measured after the runs; empty in old recordings.
    #[serde(default, skip_serializing_if = "DiskLatencies::is_empty")]
    pub disk_latencies: DiskLatencies,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReferenceOrigin {
    /// Hash of the scenario that was run ([`scenario_hash`]); empty if unknown.
    #[serde(default)]
    pub scenario_hash: String,
    /// The kernel's own version string.
    pub kernel: String,
    /// The emulator and its mode.
    pub how: String,
    /// Control files of patched kernels that select policies ([`pagetide_scenario::model::switches`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<String>,
    /// Parts of the scenario that the kernel cannot reproduce.
    pub not_comparable: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The kernel's initial memory.
    pub start: StartMemory,
}

impl ReferenceOrigin {
    /// Whether the kernel behaves as `setup` asks. If not, its counters say nothing about Pagetide.
    pub fn is_alike(&self, setup: &Setup) -> bool {
        let rejects = self.not_comparable.iter().any(|text| text.starts_with(REJECTS));
        !rejects && other_behaviour(setup, &self.switches).is_empty()
    }
}

/// Hash of a scenario's texts and of the changes on the command line: 64-bit FNV-1a, in hexadecimal.
/// It shows whether a reference belongs to the given scenario.
pub fn scenario_hash(
    text: &[u8],
    sets: &[(String, String)],
    added: Option<&AddedVariant>,
) -> String {
    // The kernel's policies do not depend on this key.
    let asked = sets.iter().filter(|(key, _)| key != KERNEL_POLICIES);
    let mut changes: String = asked.map(|(key, value)| format!("{key}={value}\n")).collect();
    changes.extend(added.map(|added| format!("--add-variant {added}\n")));
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for &byte in text.iter().chain(changes.as_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// The texts of a scenario file and of its bases, for [`scenario_hash`].
pub fn scenario_text(file: &Path, bases: &[PathBuf]) -> Result<Vec<u8>, LinuxError> {
    let files = [file].into_iter().chain(bases.iter().map(PathBuf::as_path));
    let texts: Result<Vec<Vec<u8>>, LinuxError> = files
        .map(|path| std::fs::read(path).map_err(|error| LinuxError::file(path, error)))
        .collect();
    Ok(texts?.join(&0))
}

/// The variants of a scenario that have a reference in `dir`, in order.
fn recorded(dir: &Path, scenario: &str) -> Vec<String> {
    let prefix = format!("{scenario}.");
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut variants: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let variant = name.to_str()?.strip_prefix(&prefix)?.strip_suffix(".json")?;
            Some(variant.replace("%2F", "/").replace("%25", "%"))
        })
        .collect();
    variants.sort();
    variants
}

pub fn file_name(scenario: &str, variant: &str) -> String {
    // Encode `/`, so that different names have different files.
    format!("{scenario}.{variant}.json").replace('%', "%25").replace('/', "%2F")
}

impl KernelReference {
    /// Collects the records of runs of one variant.
    pub fn new(
        scenario: &str,
        variant: &str,
        mut origin: ReferenceOrigin,
        names: &KeyNames,
        records: &[RunRecord],
    ) -> KernelReference {
        let mut metrics: BTreeMap<String, (Unit, Vec<Option<f64>>)> = BTreeMap::new();
        for (index, record) in records.iter().enumerate() {
            for (key, metric) in &record.metrics {
                let entry = metrics
                    .entry(key.clone())
                    .or_insert_with(|| (metric.unit, vec![None; records.len()]));
                entry.1[index] = Some(metric.value);
            }
        }
        metrics.retain(|key, (unit, values)| !is_absent_event(&names.key(key), *unit, values));
        for record in records {
            for note in &record.notes {
                let note = format!("seed {}: {note}", record.seed);
                if !origin.notes.contains(&note) {
                    origin.notes.push(note);
                }
            }
        }
        KernelReference {
            format: FORMAT,
            scenario: scenario.to_owned(),
            variant: variant.to_owned(),
            recorded_by: env!("CARGO_PKG_VERSION").to_owned(),
            origin,
            seeds: records.iter().map(|record| record.seed).collect(),
            metrics,
            disk_latencies: disk_latencies::of_texts(records.iter().flat_map(|it| &it.files)),
        }
    }

    /// The policies that correspond to the kernel's release.
    pub fn policy_set(&self) -> PolicySet {
        let release = self.origin.kernel.strip_prefix("Linux ").unwrap_or_default();
        PolicySet::of_release(release)
    }

    /// Sets the initial memory, the disk times and the policies of `setup` to those of the kernel,
    /// unless the scenario selects the policies of another kernel.
    pub fn apply(&self, setup: &mut Setup) {
        if setup.policies.kernel().is_none() {
            setup.policies.follow(self.policy_set());
        }
        self.origin.start.apply(setup);
        disk_times::apply(&self.metrics, &self.disk_latencies, setup);
        slab_start::apply(&self.metrics, setup);
        program_memory::apply(&self.metrics, setup);
        program_times::apply(&self.metrics, setup);
    }

    pub fn records(&self) -> Vec<RunRecord> {
        let record = |(index, &seed): (usize, &u64)| RunRecord {
            version: self.recorded_by.clone(),
            metrics: self
                .metrics
                .iter()
                .filter_map(|(key, (unit, values))| {
                    let value = (*values.get(index)?)?;
                    Some((key.clone(), Metric::new(value, *unit)))
                })
                .collect(),
            ..RunRecord::new(&self.scenario, &self.variant, seed)
        };
        self.seeds.iter().enumerate().map(record).collect()
    }

    /// Writes the reference to `dir` and returns the path. An existing file is replaced atomically.
    pub fn save(&self, dir: &Path) -> Result<PathBuf, LinuxError> {
        std::fs::create_dir_all(dir).map_err(|error| LinuxError::file(dir, error))?;
        let path = dir.join(file_name(&self.scenario, &self.variant));
        let write = || {
            let mut builder = tempfile::Builder::new();
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
            let mut file = builder.tempfile_in(dir)?;
            file.write_all(self.text()?.as_bytes())?;
            file.persist(&path).map_err(|error| error.error).map(drop)
        };
        write().map_err(|error| LinuxError::file(&path, error))?;
        Ok(path)
    }

    /// JSON with a line for each field and each metric, so that a line-based diff of two references
    /// is readable.
    fn text(&self) -> Result<String, serde_json::Error> {
        let mut text = String::from("{");
        let fields = serde_json::to_value(self)?;
        let empty = serde_json::Map::new();
        for (index, (name, value)) in fields.as_object().unwrap_or(&empty).iter().enumerate() {
            text += if index == 0 { "\n" } else { ",\n" };
            text += &format!("{}: ", serde_json::to_string(name)?);
            match value.as_object().filter(|_| name == "metrics") {
                None => text += &serde_json::to_string(value)?,
                Some(metrics) => {
                    let line = |(key, metric): (&String, &serde_json::Value)| {
                        Ok(format!("  {}: {metric}", serde_json::to_string(key)?))
                    };
                    let lines: Result<Vec<String>, serde_json::Error> =
                        metrics.iter().map(line).collect();
                    text += &format!("{{\n{}\n}}", lines?.join(",\n"));
                }
            }
        }
        text += "\n}\n";
        Ok(text)
    }

    /// Reads the reference of a variant from `dir`.
    pub fn load(dir: &Path, scenario: &str, variant: &str) -> Result<KernelReference, LinuxError> {
        let path = dir.join(file_name(scenario, variant));
        let wrong = |problem: String| LinuxError::Reference { path: path.clone(), problem };
        let text = std::fs::read_to_string(&path).map_err(|error| {
            wrong(match error.kind() {
                std::io::ErrorKind::NotFound => match recorded(dir, scenario).as_slice() {
                    [] => "no such reference".to_owned(),
                    known => format!("no such reference; --variant may be {}", known.join(", ")),
                },
                _ => error.to_string(),
            })
        })?;
        let reference = KernelReference::parse(&text).map_err(wrong)?;
        if (reference.scenario.as_str(), reference.variant.as_str()) != (scenario, variant) {
            let (scenario, variant) = (&reference.scenario, &reference.variant);
            return Err(wrong(format!("it is of `{scenario}`, variant `{variant}`")));
        }
        Ok(reference)
    }

    pub fn parse(text: &str) -> Result<KernelReference, String> {
        // Check the version first: another format may lack the other fields.
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let damaged = |error: serde_json::Error| {
            format!("damaged or cut short at line {}: {error}", error.line())
        };
        let Format { format } = serde_json::from_str(text).map_err(damaged)?;
        if format != FORMAT {
            return Err(format!("format {format}; this program reads {FORMAT}"));
        }
        let reference: KernelReference = serde_json::from_str(text).map_err(damaged)?;
        if reference.seeds.is_empty() || reference.origin.start.zones.is_empty() {
            return Err("it has no runs".to_owned());
        }
        if !is_possible_memory(&reference.origin.start) {
            return Err("damaged: the initial memory is impossible".to_owned());
        }
        Ok(reference)
    }
}

/// Whether this is an event of a phase that occurred in no run. With many phases or groups, nine of
/// ten lines would be such events.
fn is_absent_event(key: &MetricKey, unit: Unit, values: &[Option<f64>]) -> bool {
    let name = &*key.name;
    // A comparison sums these, and needs both parts.
    let is_part = name.starts_with("pgscan_") || name.starts_with("pgsteal_");
    // A zero of free blocks is meaningful: it shows a difference in state.
    let is_level = [FREE_BLOCKS, BUDDYINFO].iter().any(|it| name.starts_with(it)) || is_state(name);
    matches!(key.scope.kind(), ScopeKind::Phase | ScopeKind::PhaseGroup)
        && !is_part
        && !is_level
        && unit == Unit::Count
        && values.iter().all(|value| *value == Some(0.0))
}

/// Whether a kernel can start with this memory: zones are in order, and all quantities fit into the
/// zone and into the 2^52 bytes that a CPU can address.
pub fn is_possible_memory(start: &StartMemory) -> bool {
    const PAGES_MAX: u64 = 1 << 40;
    const NODES_MAX: u32 = 64;
    let present = start.zones.iter().fold(0u64, |sum, zone| sum.saturating_add(zone.present));
    let in_order = start.zones.windows(2).all(|pair| pair[0].node <= pair[1].node);
    let fits = |zone: &StartZone| {
        zone.node < NODES_MAX
            && zone.managed <= zone.present
            && zone.free <= zone.managed
            && [zone.min, zone.low, zone.high].iter().all(|mark| *mark <= PAGES_MAX)
    };
    in_order
        && present <= PAGES_MAX
        && start.min_free_kbytes <= PAGES_MAX
        && start.zones.iter().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> ReferenceOrigin {
        let zones = vec![StartZone::default()];
        let start = StartMemory { zones, min_free_kbytes: 7, ..StartMemory::default() };
        ReferenceOrigin { start, ..ReferenceOrigin::default() }
    }

    fn record(seed: u64, pgfault: f64) -> RunRecord {
        let mut metrics = BTreeMap::new();
        metrics.insert("pgfault".into(), Metric::new(pgfault, Unit::Count));
        RunRecord { metrics, notes: vec!["cut".into()], ..RunRecord::new("s", "a/b", seed) }
    }

    #[test]
    fn a_scenario_has_the_texts_of_its_bases() {
        let dir = tempfile::tempdir().unwrap();
        let [own, base] = ["own.toml", "base.toml"].map(|name| dir.path().join(name));
        std::fs::write(&own, "base = \"base.toml\"\n").unwrap();
        std::fs::write(&base, "seed = 1\n").unwrap();
        let hash =
            || scenario_hash(&scenario_text(&own, std::slice::from_ref(&base)).unwrap(), &[], None);
        let before = hash();
        assert_ne!(before, scenario_hash(&scenario_text(&own, &[]).unwrap(), &[], None));
        std::fs::write(&base, "seed = 2\n").unwrap();
        assert_ne!(before, hash());
    }

    #[test]
    fn what_is_kept_is_what_was_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let mut two = record(2, 9.0);
        two.metrics.insert("extra".into(), Metric::new(1.5, Unit::Seconds));
        two.metrics.insert("t.p.pgscan".into(), Metric::new(0.0, Unit::Count));
        let mut records = [record(1, 8.0), two];
        records[0].metrics.insert("t.p.oom".into(), Metric::new(0.0, Unit::Count));
        records[1].metrics.insert("t.p.oom".into(), Metric::new(0.0, Unit::Count));
        // Zero is a value of a level, not an event that did not occur.
        for record in &mut records {
            let none = Metric::new(0.0, Unit::Count);
            record.metrics.insert("g.cgroup.controllers.memory".into(), none);
        }
        records[1].files.push(("latencies swap write".to_owned(), "65536 3\n".to_owned()));
        let origin = started();
        let names = KeyNames::of_walltimes(["t.p.walltime"]);
        let reference = KernelReference::new("s", "a/b", origin, &names, &records);
        assert_eq!(reference.disk_latencies["swap write"], BTreeMap::from([(65_536, 3)]));
        assert_eq!(reference.origin.notes, ["seed 1: cut", "seed 2: cut"]);
        let path = reference.save(dir.path()).unwrap();
        assert_eq!(path.file_name().unwrap(), "s.a%2Fb.json");
        let loaded = KernelReference::load(dir.path(), "s", "a/b").unwrap();
        assert_eq!(loaded, reference);
        // An event that never occurred is dropped. A value that one run lacks is not zero.
        records.iter_mut().for_each(|record| {
            record.metrics.remove("t.p.oom");
        });
        assert_eq!(loaded.records()[1].metrics, records[1].metrics);
        assert_eq!(loaded.records()[0].metrics, records[0].metrics);
    }

    #[test]
    fn a_damaged_reference_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let missing = KernelReference::load(dir.path(), "s", "v").unwrap_err();
        assert!(missing.to_string().contains("no such reference"));
        std::fs::write(dir.path().join("s.a%2Fb.json"), "").unwrap();
        let missing = KernelReference::load(dir.path(), "s", "v").unwrap_err();
        assert!(missing.to_string().contains("--variant may be a/b"), "{missing}");
        let names = KeyNames::default();
        let reference = KernelReference::new("s", "a/b", started(), &names, &[record(1, 8.0)]);
        let path = reference.save(dir.path()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for end in 0..text.len() - 2 {
            std::fs::write(&path, &text[..end]).unwrap();
            let error = KernelReference::load(dir.path(), "s", "a/b").unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
        }
        std::fs::write(&path, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
        let error = KernelReference::load(dir.path(), "s", "a/b").unwrap_err();
        assert!(error.to_string().contains("format 2"), "{error}");
        for (from, to) in [("\"managed\":0", "\"managed\":1"), ("\"node\":0", "\"node\":64")] {
            assert!(text.contains(from));
            let error = KernelReference::parse(&text.replace(from, to)).unwrap_err();
            assert!(error.contains("impossible"), "{error}");
        }
        std::fs::write(dir.path().join("s.c.json"), &text).unwrap();
        let error = KernelReference::load(dir.path(), "s", "c").unwrap_err().to_string();
        assert!(error.contains("it is of `s`, variant `a/b`"), "{error}");
    }
}
