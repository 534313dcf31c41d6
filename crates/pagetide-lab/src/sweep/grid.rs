//! The points of a grid, the runs of a sweep, and their shards.
//!
//! Invariant: the runs of a sweep have the same numbers on every machine: points in the order of
//! the knobs (the last one changes fastest), in each point the variants, in each variant the seeds.
//! Shard K of N has the runs whose number modulo N is K - 1, so N machines have about equal shares.

use pagetide_core::units::digest::Digest;
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::model::Setup;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

/// Most points of a grid.
pub const POINTS_MAX: usize = 20_000;

/// All combinations of the values of knobs.
/// Fails if a knob is given twice, or there are too many points.
pub fn points(knobs: &[(String, Vec<String>)]) -> Result<Vec<Vec<(String, String)>>, Mistake> {
    for (at, (path, _)) in knobs.iter().enumerate() {
        if knobs[..at].iter().any(|(other, _)| other == path) {
            return Err(Mistake::new(
                format!("{path} is given twice"),
                "give each knob once; a list of values is A,B,C",
            ));
        }
    }
    let number = knobs.iter().try_fold(1usize, |all, knob| all.checked_mul(knob.1.len()));
    if number.is_none_or(|number| number > POINTS_MAX) {
        return Err(Mistake::new(
            "the grid has too many points".to_owned(),
            format!("take fewer values of a knob: at most {POINTS_MAX} points"),
        ));
    }
    let mut points = vec![Vec::new()];
    for (path, values) in knobs {
        points = points
            .into_iter()
            .flat_map(|point: Vec<(String, String)>| {
                values.iter().map(move |value| {
                    let mut point = point.clone();
                    point.push((path.clone(), value.clone()));
                    point
                })
            })
            .collect();
    }
    Ok(points)
}

/// Shard `number` of `of`, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepShard {
    number: u32,
    of: u32,
}

impl SweepShard {
    /// Whether the run with this number is in the shard.
    pub fn has(self, run: usize) -> bool {
        run % self.of as usize == (self.number - 1) as usize
    }
}

impl fmt::Display for SweepShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for SweepShard {
    type Err = String;

    fn from_str(text: &str) -> Result<SweepShard, String> {
        const FORM: &str = "give K/N, for example 3/16: the third of sixteen";
        let (number, of) = text.split_once('/').ok_or(FORM)?;
        let (Ok(number), Ok(of)) = (number.parse::<u32>(), of.parse::<u32>()) else {
            return Err(FORM.into());
        };
        if of == 0 || number == 0 || number > of {
            return Err(format!(
                "there is no shard {number}: shards are numbered from 1 to N, here {of}; for a job \
                 array that counts from 0, give $((INDEX + 1))/N"
            ));
        }
        Ok(SweepShard { number, of })
    }
}

/// Digest of a scenario: its setup without the grid, and the contents of its traces and object
/// mixes. Paths, comments and seeds do not count.
pub fn digest(scenario: &str, variants: &[(&str, &Setup)]) -> io::Result<String> {
    let mut digest = Digest::new();
    text(scenario, &mut digest);
    for (name, setup) in variants {
        let mut setup = (*setup).clone();
        let phases = setup.tasks.iter_mut().flat_map(|task| &mut task.phases);
        for phase in phases {
            let Some(path) = phase.workload.named_file_mut() else { continue };
            content(path, &mut digest)?;
            path.clear();
        }
        text(name, &mut digest);
        text(&format!("{setup:?}"), &mut digest);
    }
    Ok(format!("{:016x}", digest.finish()))
}

/// Digest of the content of a file.
pub fn file_digest(path: &Path) -> io::Result<String> {
    let mut digest = Digest::new();
    content(path, &mut digest)?;
    Ok(format!("{:016x}", digest.finish()))
}

fn text(text: &str, digest: &mut Digest) {
    bytes(text.as_bytes(), digest);
    digest.write_u64(text.len() as u64);
}

fn bytes(bytes: &[u8], digest: &mut Digest) {
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        digest.write_u64(u64::from_le_bytes(word));
    }
}

fn content(path: &Path, digest: &mut Digest) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = Vec::new();
    let mut length = 0;
    loop {
        buffer.clear();
        // Full chunks of whole words, so that the digest does not depend on the size of reads.
        let read = (&mut file).take(1 << 20).read_to_end(&mut buffer)?;
        if read == 0 {
            break;
        }
        length += read as u64;
        bytes(&buffer, digest);
    }
    digest.write_u64(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scenario;
    use pagetide_scenario::load::{load_str, Overrides};
    use std::collections::BTreeSet;

    #[test]
    fn shards_share_all_runs() {
        for of in 1..20 {
            let mut seen = BTreeSet::new();
            for number in 1..=of {
                let shard: SweepShard = format!("{number}/{of}").parse().unwrap();
                for run in (0..100).filter(|run| shard.has(*run)) {
                    assert!(seen.insert(run), "{run} is in two shards");
                }
            }
            assert_eq!(seen.len(), 100);
        }
        for bad in ["0/3", "4/3", "1/0", "1", "a/b", "", "-1/3", "1/3/5"] {
            assert!(bad.parse::<SweepShard>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_last_knob_changes_fastest() {
        let knob = |path: &str, values: &[&str]| {
            (path.to_owned(), values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
        };
        let knobs =
            [knob("vm.swappiness", &["0", "60"]), knob("machine.memory", &["1G", "2G", "4G"])];
        let points = points(&knobs).unwrap();
        assert_eq!(points.len(), 6);
        assert_eq!(points[1][0].1, "0");
        assert_eq!(points[1][1].1, "2G");
        assert!(super::points(&[knobs[0].clone(), knobs[0].clone()]).is_err());
        assert_eq!(super::points(&[]).unwrap(), [Vec::new()]);
    }

    #[test]
    fn the_digest_depends_on_what_is_run() {
        let scenario = scenario(&["a", "b"]);
        let of = |variant: usize, name: &'static str| {
            digest("s", &[(name, &scenario.variants[variant].setup)]).unwrap()
        };
        assert_eq!(of(0, "a"), of(1, "a"));
        assert_ne!(of(0, "a"), of(0, "b"));
        let mut other = scenario.variants[0].setup.clone();
        other.machine.cpus += 1;
        assert_ne!(digest("s", &[("a", &other)]).unwrap(), of(0, "a"));
        assert_ne!(digest("t", &[("a", &scenario.variants[0].setup)]).unwrap(), of(0, "a"));
    }

    #[test]
    fn paths_of_files_do_not_count() {
        let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let of = |dir: &str, mix: &str| {
            let text = format!(
                "[machine]\nmemory = '1GiB'\n[[task]]\nname = 't'\nworkload = 'kernel-objects'\n\
                 mix = '{mix}'\nunits = 1\n"
            );
            let base = experiments.join(dir);
            let loaded = load_str("s.toml", &text, &base, &Overrides::default());
            let loaded = loaded.unwrap_or_else(|errors| panic!("{errors}"));
            digest("s", &[("a", &loaded.variants[0].setup)]).unwrap()
        };
        let here = of("", "objects/service.toml");
        assert_eq!(of("proposals", "../objects/service.toml"), here);
        assert_ne!(of("", "objects/compile.toml"), here);
    }
}
