//! Arguments of the commands that search: `find`, `sweep`, `fuzz`, `compare`. No behaviour here.

use super::{
    after_help, after_help_with, cpus, key_value, parse_jobs, parse_number, parse_time,
    OutputFormat, ScenarioArgs, TextFormat,
};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use pagetide_lab::find::emit::DeployFormat;
use pagetide_lab::sweep::grid::SweepShard;
use pagetide_scenario::load::AddedVariant;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const FIND_HELP: &str = "\
Exit codes: 0 a value was found, 1 none was or a run failed, 2 bad input, 130 interrupted.
The answer has a line that begins with `Result: `. Nothing is written to this system (docs/questions.md).";

const SWEEP_HELP: &str = "\
Exit codes: 0 done, 1 a run failed, 2 bad input, 130 interrupted; what was run is kept (docs/questions.md).";

const FUZZ_HELP: &str = "\
Exit codes: 0 a pathology or a failed run was found, 1 none was, 2 bad input, 130 interrupted.
The answer has a line that begins with `Result: ` (docs/questions.md).";

/// `pagetide find`
#[derive(Debug, Args)]
#[command(after_help = after_help_with("find", FIND_HELP))]
pub struct FindArgs {
    #[command(flatten)]
    pub scenario: ScenarioArgs,

    /// The knob, with its path as in --set, and its values: LOW..HIGH, LOW..HIGH/N for N values, or
    /// A,B,C [default: the kernel's range]
    #[arg(long, value_name = "KEY[=RANGE]", required = true)]
    pub knob: Vec<String>,

    /// The condition to meet: METRIC OP VALUE, several joined by `and`. VALUE may be relative: 1.1
    /// * before
    #[arg(long, value_name = "CRITERION")]
    pub want: String,

    /// Find the smallest value that meets the criterion (default)
    #[arg(long, conflicts_with = "largest")]
    pub smallest: bool,

    /// Find the largest value that meets the criterion
    #[arg(long)]
    pub largest: bool,

    /// Also print the effect of the value on this metric. May be repeated
    #[arg(long, value_name = "METRIC")]
    pub price: Vec<String>,

    /// Share of the seeds in which the criterion must hold
    #[arg(long = "in", value_name = "SHARE", default_value = "95%", value_parser = share)]
    pub share: f64,

    /// Number of seeds that all values share, and of fresh seeds for confirmation. 20 successes of
    /// 20 show a share of at least 86 %
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub seeds: u32,

    /// First seed
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// The variant to start from [default: the first]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,

    /// Print the value as a file to deploy
    #[arg(long, value_parser = deploy_format(), value_name = "FORM")]
    pub emit: Option<DeployFormat>,

    /// Where --emit writes: a new file, or a regular file to replace [default: stdout]
    #[arg(short, long, value_name = "OUT", requires = "emit", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write a report of the answer to this HTML file, to open in a browser, mail or print
    /// (docs/outputs.md)
    #[arg(long, value_name = "OUT.html", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Keep a row for each run in this directory, and run only what is missing there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,

    /// Number of parallel runs [default: the number of CPUs]. Does not change the result
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_negative_numbers = true)]
    #[arg(default_value_t = cpus(), hide_default_value = true)]
    pub jobs: NonZeroUsize,
}

/// `pagetide sweep`
#[derive(Debug, Args)]
#[command(after_help = after_help_with("sweep", SWEEP_HELP))]
pub struct SweepArgs {
    /// Scenario file, or the name of a shipped experiment (see `pagetide list`)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "merge")]
    pub file: Option<PathBuf>,

    /// Set KEY of the scenario to VALUE, in all variants. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Add a variant to the scenario: a name, and the keys it sets. May be repeated
    #[arg(long, value_name = "NAME:KEY=VALUE[,KEY=VALUE...]")]
    pub add_variant: Vec<AddedVariant>,

    /// A knob, with its path as in --set, and its values: LOW..HIGH/N for N values, or A,B,C. May
    /// be repeated: all combinations are run
    #[arg(long, value_name = "KEY=VALUES")]
    pub grid: Vec<String>,

    /// Run only this variant. May be repeated
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,

    /// Number of runs of each variant at each point; each run has the next seed
    #[arg(long, value_name = "N", value_parser = parse_number, allow_negative_numbers = true)]
    pub repeats: Option<u32>,

    /// First seed
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Keep a row for each run in this directory, and run only what is missing there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,

    /// Run only part K of N parts, with K from 1 to N. Needs --store
    #[arg(long, value_name = "K/N", requires = "store", conflicts_with = "merge")]
    pub shard: Option<SweepShard>,

    /// Run nothing: merge the rows of these stores, into --store if it is given
    #[arg(long, value_name = "DIR", num_args = 1.., value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["file", "set", "add_variant", "grid", "variant", "repeats", "seed"])]
    pub merge: Vec<PathBuf>,

    /// A metric for the table, or a pattern with `*`. May be repeated [default: the scenario's
    /// rows]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,

    /// Write a report of all points to this HTML file, to open in a browser, mail or print
    /// (docs/outputs.md)
    #[arg(long, value_name = "OUT.html", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Number of parallel runs [default: the number of CPUs]. Does not change the result
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_negative_numbers = true)]
    #[arg(default_value_t = cpus(), hide_default_value = true)]
    pub jobs: NonZeroUsize,
}

/// `pagetide fuzz`
#[derive(Debug, Args)]
#[command(after_help = after_help_with("fuzz", FUZZ_HELP))]
pub struct FuzzArgs {
    /// Scenario file, the name of a shipped experiment (see `pagetide list`), or `-` for stdin. Its
    /// [fuzz] names the knobs
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Set KEY of the scenario to VALUE. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// The variant to start from [default: the first]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,

    /// Another knob to turn, or other values of one: LOW..HIGH, LOW..HIGH/N for N values, or A,B,C.
    /// May be repeated
    #[arg(long, value_name = "KEY=RANGE")]
    pub knob: Vec<String>,

    /// The pathology: oom-with-evictable-pages, no-progress or refault-storm, with another
    /// threshold as in no-progress=2s (docs/questions.md)
    #[arg(long, value_name = "NAME[=THRESHOLD]")]
    pub objective: String,

    /// Accept only scenarios that do not show the pathology with this setting. May be repeated: all
    /// are set together
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub against: Vec<(String, String)>,

    /// End the search and the shrinking after this real time [default: 10min, or none with --draws]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_limit)]
    pub limit: Option<u64>,

    /// Try at most so many draws
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub draws: Option<u64>,

    /// Number of the first draw
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub first: u64,

    /// Seed of the draws: the same seed and number give the same scenario
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,

    /// Write the smallest scenario to this file: a new file, or one that `fuzz` made
    #[arg(long, value_name = "OUT.toml", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub format: TextFormat,

    /// Number of parallel runs [default: the number of CPUs]. Does not change the result
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_negative_numbers = true)]
    #[arg(default_value_t = cpus(), hide_default_value = true)]
    pub jobs: NonZeroUsize,
}

/// Parses a time above 0; `10m` is ten minutes here.
fn parse_limit(text: &str) -> Result<u64, String> {
    let minutes = text.strip_suffix('m').filter(|number| number.parse::<u32>().is_ok());
    let time = minutes.map_or_else(|| text.to_owned(), |number| format!("{number}min"));
    match parse_time(&time)? {
        0 => Err("no draw would be tried: give a time above 0, like 10min".to_owned()),
        ns => Ok(ns),
    }
}

/// `pagetide compare`
#[derive(Debug, Args)]
#[command(after_help = after_help("compare"))]
pub struct CompareArgs {
    /// The result to compare with
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub a: PathBuf,

    /// The result to compare
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub b: PathBuf,
}

/// Parses a kind of file to deploy.
fn deploy_format() -> impl TypedValueParser<Value = DeployFormat> {
    let value = |form: DeployFormat| PossibleValue::new(form.name()).help(form.about());
    PossibleValuesParser::new(DeployFormat::ALL.map(value))
        .try_map(|name| DeployFormat::find(&name).ok_or("no such form"))
}

/// Parses a share of the seeds: above 0, at most 1.
fn share(text: &str) -> Result<f64, &'static str> {
    const FORM: &str = "give a share like 95%, above 0 and at most 100 %";
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.trim().parse::<f64>(),
    };
    share.ok().filter(|share| *share > 0.0 && *share <= 1.0).ok_or(FORM)
}
