//! The command line as clap types. No behaviour here.

mod examples;
mod search;

use examples::{after_help, after_help_with, EXIT_CODES};
pub use search::{CompareArgs, FindArgs, FuzzArgs, SweepArgs};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use pagetide_lab::plan::MAX_REPEATS;
use pagetide_lab::report_format::ReportFormat;
use pagetide_scenario::load::AddedVariant;
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::model::PageSize;
use pagetide_trace::Format as TraceFormat;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

/// Simulates a Linux machine that runs short of memory
#[derive(Debug, Parser)]
#[command(name = "pagetide", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands, one file each in `commands/`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the variants of a scenario and compare their results
    Run(RunArgs),
    /// Run a scenario on a real Linux kernel in QEMU and in the simulator, and compare the counters
    Verify(Box<VerifyArgs>),
    /// Find the value of a knob at which a criterion holds
    Find(Box<FindArgs>),
    /// Run a grid of knob values and keep a row for each run
    Sweep(Box<SweepArgs>),
    /// Draw scenarios from ranges until one shows a pathology, and shrink that one
    Fuzz(Box<FuzzArgs>),
    /// Compare two results that `run` or `sweep` printed as JSON
    Compare(CompareArgs),
    /// Check scenario files without running them
    Check(CheckArgs),
    /// List the shipped experiments
    #[command(after_help = after_help("list"))]
    List,
    /// Print a commented scenario to start from
    New(NewArgs),
    /// Print the JSON Schema of scenario files, or of an output
    Schema(SchemaArgs),
    /// Print the metrics, with their units and meanings
    Metrics(MetricsArgs),
    /// Explain a metric, a knob, a key of scenarios, a workload, or a function of Linux
    Explain(ExplainArgs),
    /// Print the miss ratio of a page trace for each size of the page cache
    Mrc(Box<MrcArgs>),
    /// Import page traces, and print their contents
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Generate a scenario from a running system
    #[command(subcommand)]
    Import(ImportCommand),
    /// Run one variant once and print its final /proc files, or its memory over time
    Inspect(InspectArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all subcommands
    Man(ManArgs),
}

/// The scenario, and changes to it.
#[derive(Debug, Args)]
pub struct ScenarioArgs {
    /// Scenario file, the name of a shipped experiment (see `pagetide list`), or `-` for stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Set KEY of the scenario to VALUE, in all variants. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Add a variant to the scenario: a name, and the keys it sets. May be repeated
    #[arg(long, value_name = "NAME:KEY=VALUE[,KEY=VALUE...]")]
    pub add_variant: Vec<AddedVariant>,
}

/// `pagetide run`
#[derive(Debug, Args)]
#[command(after_help = after_help("run"))]
pub struct RunArgs {
    #[command(flatten)]
    pub scenario: ScenarioArgs,

    /// Further scenarios: all are run, and one table has the walltimes of their tasks (or the
    /// --metrics) with the geometric mean of the changes
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["html", "openmetrics", "events", "perfetto"])]
    pub more: Vec<PathBuf>,

    /// The variant that the others are compared with [default: the first]
    #[arg(long, value_name = "NAME")]
    pub against: Option<String>,

    /// Run only this variant. May be repeated; the others are compared with the first one given
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,

    /// Number of runs of each variant; each run has the next seed
    #[arg(long, value_name = "N", value_parser = parse_number, allow_negative_numbers = true)]
    pub repeats: Option<u32>,

    /// First seed
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// How to print the result
    #[arg(long, value_parser = run_formats(), default_value = "table")]
    pub format: RunFormat,

    /// Print only these metrics, in this order: a key, a part of keys, or a pattern with `*` (quote
    /// it). May be repeated
    #[arg(long, value_name = "PATTERN")]
    pub metrics: Vec<String>,

    /// Write a report of the runs to this HTML file, with tables and charts, to open in a browser,
    /// mail or print. Charts over time show the first seed (docs/outputs.md)
    #[arg(long, value_name = "OUT.html", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Write the memory of the machine and its groups over time to this file, as OpenMetrics text
    /// with the names of node_exporter and cAdvisor (docs/outputs.md). Covers the first variant
    /// with the first seed
    #[arg(long, value_name = "OUT.txt", value_hint = ValueHint::FilePath)]
    pub openmetrics: Option<PathBuf>,

    /// Start time of that run, in seconds since 1970
    #[arg(long, value_name = "SECONDS", default_value_t = 0, requires = "openmetrics")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=99_999_999_999))]
    pub openmetrics_start: u64,

    #[command(flatten)]
    pub traces: TraceArgs,

    /// Number of parallel runs [default: the number of CPUs]. Does not change the result
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_negative_numbers = true)]
    #[arg(default_value_t = cpus(), hide_default_value = true)]
    pub jobs: NonZeroUsize,

    /// Leave out the sentences under the table that say which tasks waited for memory, and why
    #[arg(long)]
    pub no_why: bool,

    /// Exit with 1 if a task was killed, or if the time limit cut a run short
    #[arg(long)]
    pub strict: bool,
}

/// A number of runs; the plan checks its bounds.
fn parse_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("give a number from 1 to {MAX_REPEATS}"))
}

/// The number of CPUs, the default of --jobs.
fn cpus() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn parse_jobs(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "give 1 or more")
}

/// Files that show one run step by step.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Write every step of reclaim in one run to this file, as lines of JSON (docs/outputs.md).
    /// Covers the first variant with the first seed
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub events: Option<PathBuf>,

    /// Write the activity of threads, CPUs and memory in one run to this file, for ui.perfetto.dev
    /// (docs/outputs.md). Covers the first variant with the first seed
    #[arg(long, value_name = "OUT.pftrace", value_hint = ValueHint::FilePath)]
    pub perfetto: Option<PathBuf>,
}

/// A time in nanoseconds.
fn parse_time(text: &str) -> Result<u64, String> {
    match Quantity::read(text, PageSize::default()) {
        Ok(Quantity::Nanoseconds(ns)) => Ok(ns),
        Ok(Quantity::Integer(0)) => Ok(0),
        _ => Err("write times like 1.5s, 250ms or 2min".to_owned()),
    }
}

/// Output format of `pagetide run`.
#[derive(Clone, Copy, Debug)]
pub enum RunFormat {
    Table,
    Data(&'static ReportFormat),
}

impl RunFormat {
    pub const fn is_table(self) -> bool {
        matches!(self, RunFormat::Table)
    }
}

fn run_formats() -> impl TypedValueParser<Value = RunFormat> {
    let table = PossibleValue::new("table").help("A table, to read or to mail");
    let data = ReportFormat::ALL.iter().map(|it| PossibleValue::new(it.name).help(it.about));
    PossibleValuesParser::new([table].into_iter().chain(data))
        .map(|name| ReportFormat::find(&name).map_or(RunFormat::Table, RunFormat::Data))
}

/// Output format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A table, to read or to mail
    Table,
    /// All metrics, for programs
    Json,
    /// One line for each variant and metric, for spreadsheets
    Csv,
}

/// `pagetide new`
#[derive(Debug, Args)]
#[command(after_help = after_help("new"))]
pub struct NewArgs {
    /// The kind of machine. If left out, the command asks on a terminal
    #[arg(long, value_enum, value_name = "KIND")]
    pub from: Option<ScenarioTemplate>,

    /// Memory of the machine, like 8GiB. The sizes of files and programs follow from it
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// Size of the swap area; 0 for none
    #[arg(long, value_name = "SIZE")]
    pub swap: Option<String>,

    /// Number of CPUs
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,

    /// Write the scenario to this new file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Scenarios to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScenarioTemplate {
    /// A Kubernetes node: a service and a batch job
    #[value(name = "k8s-node")]
    K8sNode,
    /// A database with a buffer pool, and a backup
    Database,
    /// A browser, other programs, and a large file copy
    Desktop,
    /// Parallel compilers
    BuildServer,
}

/// `pagetide verify`
#[derive(Debug, Args)]
#[command(after_help = after_help("verify"))]
pub struct VerifyArgs {
    #[command(flatten)]
    pub scenario: ScenarioArgs,

    /// Verify only this variant. May be repeated
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,

    /// Number of runs of each variant on each side; the scenario's own number is ignored [default:
    /// 3]
    #[arg(long, value_name = "N", conflicts_with = "reference")]
    #[arg(value_parser = parse_number, allow_negative_numbers = true)]
    pub repeats: Option<u32>,

    /// First seed
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "reference")]
    pub seed: Option<u64>,

    /// Costs of operations in the simulator: those measured on the kernel, if the directory of
    /// --reference or --record has them (--record measures them once), or the sourced table
    #[arg(long, value_enum, default_value_t = CostChoice::Measured)]
    pub costs: CostChoice,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,

    /// Print every counter in the table, not only a selection
    #[arg(long)]
    pub all: bool,

    /// Write a report that compares the kernel and the simulator to this HTML file, to open in a
    /// browser, mail or print (docs/outputs.md)
    #[arg(long, value_name = "OUT.html", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Compare with the runs that --record kept in this directory, with their seeds. Does not need
    /// QEMU
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub reference: Option<PathBuf>,

    #[command(flatten)]
    pub kernel: KernelArgs,

    /// Number of parallel runs [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_negative_numbers = true)]
    #[arg(default_value_t = cpus(), hide_default_value = true)]
    pub jobs: NonZeroUsize,
}

/// The source of operation costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostChoice {
    /// Measured on the kernel
    Measured,
    /// The sourced table of the simulator, or what the scenario states
    Sourced,
}

/// The kernel's side of `pagetide verify`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for the kernel's side")]
#[group(id = "kernel_side", multiple = true, conflicts_with = "reference")]
pub struct KernelArgs {
    /// The kernel to boot, with its modules in ../lib/modules/VERSION; `proposals` is the kernel
    /// built by `make proposals` [default: the newest kernel that `make kernel` fetched, else the
    /// newest in /boot]
    #[arg(long, value_name = "VMLINUZ|proposals", value_hint = ValueHint::FilePath)]
    pub kernel: Option<PathBuf>,

    /// Keep the kernel's counters of all runs in this directory, for --reference
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub record: Option<PathBuf>,

    /// Boot the kernel so often for each variant (at most once for each of --repeats), and deal its
    /// runs out to the boots. The runs of one boot start with the same memory; where programs
    /// compete, boots differ more than such runs
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN)]
    pub boots: NonZeroU32,

    /// How QEMU executes the guest
    #[arg(long, value_enum, default_value_t = AccelChoice::Emulation)]
    pub accel: AccelChoice,

    /// Time limit for booting, and for each run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,

    /// The program that runs in the guest [default: the result of `make guest`, near this command]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub guest: Option<PathBuf>,

    /// Keep the guest's reports and consoles in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
}

/// How QEMU executes the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccelChoice {
    /// Translation. The clock counts instructions. Works everywhere, and runs are repeatable
    Emulation,
    /// Virtualisation by the host, if available. Faster, but runs are less repeatable
    Kvm,
}

/// `pagetide check`
#[derive(Debug, Args)]
#[command(after_help = after_help("check"))]
pub struct CheckArgs {
    /// Scenario files, names of shipped experiments, or `-` for stdin
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

/// `pagetide schema`
#[derive(Debug, Args)]
#[command(after_help = after_help("schema"))]
pub struct SchemaArgs {
    /// The command to print the schema of `--format json` for [default: scenario files]
    #[arg(long, value_enum, value_name = "COMMAND")]
    pub of: Option<SchemaOf>,
}

/// A command whose output has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// `pagetide run`, `pagetide sweep`
    Run,
    /// `pagetide find --emit json`
    Find,
    /// `pagetide fuzz`
    Fuzz,
    /// `pagetide verify`
    Verify,
    /// `pagetide mrc`
    Mrc,
    /// `pagetide inspect`
    Inspect,
    /// `pagetide metrics`
    Metrics,
    /// `pagetide explain`
    Explain,
}

/// `pagetide metrics`
#[derive(Debug, Args)]
#[command(after_help = after_help("metrics"))]
pub struct MetricsArgs {
    /// A metric, a part of its name, or a pattern with `*` [default: all]
    #[arg(value_name = "PATTERN")]
    pub pattern: Option<String>,

    /// How to print them
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,
}

/// `pagetide explain`
#[derive(Debug, Args)]
#[command(after_help = after_help("explain"))]
pub struct ExplainArgs {
    /// The name, with or without the task or group before it; a part of names; or a pattern with
    /// `*`, which lists names
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// How to print it
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    pub format: TextFormat,
}

/// Output format of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// Plain text
    Text,
    /// JSON, for programs
    Json,
}

/// `pagetide mrc`
#[derive(Debug, Args)]
#[command(after_help = after_help("mrc"))]
pub struct MrcArgs {
    /// The page trace (see `pagetide trace import`)
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub trace: PathBuf,

    /// Sizes of the page cache: FROM..TO/N, or a list such as 64MiB,1GiB
    #[arg(long, value_name = "SIZES")]
    pub sizes: String,

    /// Set KEY of the machine that replays the trace to VALUE, in all runs. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Compare with another page cache: a name, and the keys it sets. May be repeated
    #[arg(long, value_name = "NAME:KEY=VALUE[,KEY=VALUE...]")]
    pub add_variant: Vec<AddedVariant>,

    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,

    /// Write a report with the curve to this HTML file, to open in a browser, mail or print
    /// (docs/outputs.md)
    #[arg(long, value_name = "OUT.html", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Seed of the runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Number of parallel runs [default: the number of CPUs]. Does not change the result
    #[arg(long, value_name = "N", value_parser = parse_jobs, allow_negative_numbers = true)]
    #[arg(default_value_t = cpus(), hide_default_value = true)]
    pub jobs: NonZeroUsize,
}

/// `pagetide trace`
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Convert a recording of a program or a cache to a page trace
    Import(Box<ImportArgs>),
    /// Print the contents of a page trace
    Info(InfoArgs),
}

/// `pagetide trace import`
#[derive(Debug, Args)]
#[command(after_help = after_help("import"))]
pub struct ImportArgs {
    /// Format of the input
    #[arg(value_parser = formats())]
    pub format: TraceFormat,

    /// The input, `-` for stdin
    #[arg(default_value = "-", value_hint = ValueHint::FilePath)]
    pub input: PathBuf,

    /// The page trace to write
    #[arg(short, long, value_name = "OUT.ptt", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Description of the origin, stored in the trace; for example the recording command
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,

    /// For lackey: /proc/PID/maps of the recorded program, to tell files from anonymous memory
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub maps: Option<PathBuf>,

    /// For csv and oracle-general: N seconds of input become one second of the trace; 0 drops the
    /// time
    #[arg(long, value_name = "N")]
    pub time_divisor: Option<u64>,

    #[command(flatten)]
    pub columns: CsvArgs,
}

/// The names of the formats, with their descriptions, for clap.
fn formats() -> impl TypedValueParser<Value = TraceFormat> {
    let value = |format: &TraceFormat| PossibleValue::new(format.name()).help(format.what());
    PossibleValuesParser::new(TraceFormat::ALL.iter().map(value))
        .try_map(|name| name.parse::<TraceFormat>())
}

/// The columns of a csv file, with libCacheSim's names and numbers.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Options for csv, columns counted from 1")]
pub struct CsvArgs {
    /// Column of the time, in seconds [default: all references at one time]
    #[arg(long, value_name = "N")]
    pub time_col: Option<String>,
    /// Column of the object's id [default: the only column]
    #[arg(long, value_name = "N")]
    pub obj_id_col: Option<String>,
    /// Column of the object's size, in bytes [default: every object is one page]
    #[arg(long, value_name = "N")]
    pub obj_size_col: Option<String>,
    /// Column of the operation, a read or a write [default: all are reads]
    #[arg(long, value_name = "N")]
    pub op_col: Option<String>,
    /// Column of the tenant; each tenant has its own objects [default: one tenant]
    #[arg(long, value_name = "N")]
    pub tenant_col: Option<String>,
    /// Character between columns, `\t` for a tab [default: guessed from the first line]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,
    /// Whether the first line has the names of the columns [default: guessed from that line]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub has_header: Option<String>,
    /// Whether object ids must be numbers [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub obj_id_is_num: Option<String>,
    /// All options for csv in one text, in libCacheSim's form: `time-col=1,obj-id-col=2,...`
    #[arg(short = 't', long, value_name = "KEY=VALUE,...")]
    pub trace_type_params: Option<String>,
}

/// `pagetide trace info`
#[derive(Debug, Args)]
#[command(after_help = after_help("info"))]
pub struct InfoArgs {
    /// The page trace
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// `pagetide import`
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Generate a scenario with the machine, knobs and memory groups of this system, or of a saved
    /// copy
    Host(ImportHostArgs),
    /// Generate a scenario with the machine and the failed request of a report in a kernel log: an
    /// allocation failure, or the OOM killer
    Report(ImportReportArgs),
}

/// `pagetide import report`
#[derive(Debug, Args)]
#[command(after_help = after_help("report"))]
pub struct ImportReportArgs {
    /// The log: `dmesg`, `journalctl -k`, /var/log/kern.log, or a part of it; `-` is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Number of the report in the log, from 1 [default: the first]
    #[arg(long, value_name = "N")]
    pub report: Option<usize>,

    /// The scenario file to write; it must not exist yet [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// `pagetide import host`
#[derive(Debug, Args)]
#[command(after_help = after_help("host"))]
pub struct ImportHostArgs {
    /// Root of the system's files: `/`, or a copy with DIR/proc/zoneinfo, DIR/sys/fs/cgroup and so
    /// on
    #[arg(long, value_name = "DIR", default_value = "/", value_hint = ValueHint::DirPath)]
    pub root: PathBuf,

    /// The scenario file to write; it must not exist yet [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Start with the memory that is free now [default: the memory that is free when no program
    /// runs]
    #[arg(long)]
    pub as_is: bool,

    /// Keep memory groups that set no limit and no protection, too
    #[arg(long)]
    pub all_groups: bool,

    /// Measure the costs of kernel operations on this machine and write them to [machine.costs].
    /// Takes less than a minute and up to 152 MiB of free memory; temporary groups and files are
    /// removed again. Measuring reclaim in a group needs root, or a group delegated to you
    /// (docs/tutorials/import-a-machine.md)
    #[arg(long, conflicts_with = "root")]
    pub measure: bool,

    /// The program that performs the measured operations [default: the result of `make guest`, near
    /// this command]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "measure")]
    pub guest: Option<PathBuf>,
}

/// `pagetide inspect`
#[derive(Debug, Args)]
#[command(after_help = after_help("inspect"))]
pub struct InspectArgs {
    #[command(flatten)]
    pub scenario: ScenarioArgs,

    /// Files to print, for example `zoneinfo` [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// The variant to run [default: the first]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,

    /// Seed of the run [default: the scenario's first]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Print only this file, without a heading, so that a parser of the kernel's file can read it
    #[arg(long, value_name = "NAME", conflicts_with = "names")]
    pub only: Option<String>,

    /// Print the files as of this virtual time, such as 1.5s [default: the end of the run]
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub at: Option<u64>,

    /// Instead of files, draw the memory of every group and the fragmentation of every node over
    /// time, with the pages that reclaim and compaction scanned, took and moved
    #[arg(long, conflicts_with_all = ["names", "only", "at"])]
    pub timeline: bool,

    /// How to print them
    #[arg(long, value_enum, default_value_t = InspectFormat::Text)]
    #[arg(requires_if("csv", "timeline"))]
    pub format: InspectFormat,
}

/// Output format of files and timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InspectFormat {
    /// Files as the kernel prints them, timelines as charts
    Text,
    /// Files by path, or all samples, for programs
    Json,
    /// With --timeline: a line for each sample and owner
    Csv,
}

/// `pagetide completions`
#[derive(Debug, Args)]
#[command(after_help = after_help("completions"))]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("give KEY=VALUE, for example vm.swappiness=10".to_owned()),
    }
}

/// `pagetide man`
#[derive(Debug, Args)]
#[command(after_help = after_help("man"))]
pub struct ManArgs {
    /// Write a page for each subcommand to this directory, which must exist
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
}
