//! A temporary repository for each test, and the real binary that runs in it.

#![allow(dead_code)]

pub mod guide;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use posenc_experiments::Experiment;
use posenc_experiments::record::is_of_machine;
use posenc_experiments::yaml::Document;
use posenc_files::testing::files_below;
pub use posenc_files::testing::has;

/// A copy of the repository's definitions in a temporary directory.
pub struct Repository {
    directory: tempfile::TempDir,
    /// Folder for temporary files of its commands.
    pub temporary: tempfile::TempDir,
}

pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Requires that standard error contains all of `needles`.
    #[track_caller]
    pub fn says(&self, needles: &[&str]) -> &Self {
        has(&self.stderr, needles);
        self
    }

    /// As [`Run::says`], for standard output.
    #[track_caller]
    pub fn prints(&self, needles: &[&str]) -> &Self {
        has(&self.stdout, needles);
        self
    }

    /// Requires this exit status.
    #[track_caller]
    pub fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self
    }
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
        return;
    }
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// Files in a folder and below with this extension.
pub fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = files_below(folder);
    found.retain(|path| path.extension().is_some_and(|e| e == extension));
    found
}

/// The two tables in the folder of an item as one, with the paper and the item first.
pub fn joined(folder: &Path) -> String {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let units = text("units.csv");
    let units: BTreeMap<&str, Vec<&str>> = units
        .lines()
        .filter_map(|l| Some((l.split_once(',')?.0, l.split(',').collect())))
        .collect();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (paper, item) = (name(folder.parent().unwrap()), name(folder));
    let mut rows = String::new();
    for (place, line) in text("values.csv").lines().enumerate() {
        let value: Vec<&str> = line.split(',').collect();
        let unit = &units[value[0]];
        let names = if place == 0 { ["paper", "item"] } else { [&*paper, &*item] };
        let rest = [&unit[1..5], &value[1..], &unit[5..]].concat();
        rows += &format!("{},{}\n", names.join(","), rest.join(","));
    }
    rows
}

/// A JSON file of a record without its checksum, as earlier versions wrote it, for tests that edit it.
pub fn without_checksum(text: &str) -> String {
    let (checksum, rest) = text.split_once(",\n").unwrap();
    assert!(checksum.starts_with("{\n  \"checksum\": \""), "{checksum}");
    format!("{{\n{rest}")
}

/// Complete lines of what a run with `--verbose` printed; a kill may have truncated the last line.
fn whole_lines(log: &str) -> impl Iterator<Item = &str> {
    log.rfind('\n').map_or("", |end| &log[..end]).lines()
}

/// Paths and numbers of units of the jobs that a run with `--verbose` began.
pub fn begun(log: &str) -> impl Iterator<Item = (&str, usize)> {
    whole_lines(log).filter_map(|line| {
        let (path, rest) = line.strip_prefix("begins ")?.split_once(" seed ")?;
        let units = rest.split_once(": ")?.1.split_once(" units")?.0;
        Some((path, units.parse().ok()?))
    })
}

/// Names and training steps of the units that a run with `--verbose` finished.
pub fn finished(log: &str) -> impl Iterator<Item = (&str, u64)> {
    whole_lines(log).filter_map(|line| {
        let (name, rest) = line.strip_prefix('[')?.split_once("] ")?.1.split_once(": ")?;
        let steps = rest.rsplit(", ").find_map(|part| part.strip_suffix(" steps"))?;
        Some((name, steps.parse().ok()?))
    })
}

/// Values of a metric in rows, of one group and one method unless these are empty.
pub fn values(rows: &[String], [group, method, metric]: [&str; 3]) -> Vec<f64> {
    let cells = rows.iter().map(|row| row.split(',').collect::<Vec<_>>());
    let is_of = |cells: &Vec<&str>| {
        let fits = |name: &str, cell: usize| name.is_empty() || cells[cell] == name;
        fits(group, 2) && fits(method, 3) && cells[6] == metric
    };
    cells.filter(is_of).map(|cells| cells[9].parse().unwrap()).collect()
}

/// The first of [`values`].
#[track_caller]
pub fn value(rows: &[String], method: &str, metric: &str) -> f64 {
    let all = values(rows, ["", method, metric]);
    *all.first().unwrap_or_else(|| panic!("{method} {metric}: {rows:#?}"))
}

/// The error of an experiment file `a.yaml` with this text.
pub fn parse_error(text: &str) -> String {
    let document = Document::parse(Path::new("a.yaml"), text).unwrap();
    Experiment::from_document(&document, posenc_protocols::KINDS).unwrap_err().to_string()
}

/// All files below a folder with their bytes, except unfinished ones.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_unfinished = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".writing-"))
    };
    let files = files_below(folder).into_iter().filter(|path| !is_unfinished(path));
    files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Raw records and pictures by path below `raw`, without what differs between two runs: the seconds and the peak memory of a record, and
/// its values of metrics of the machine.
pub fn records(raw: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let of = |(path, bytes): (PathBuf, Vec<u8>)| {
        let name = path.strip_prefix(raw).unwrap().to_owned();
        if path.extension().is_none_or(|e| e != "json") {
            return (name, bytes);
        }
        let mut record: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let body = record["body"].as_object_mut().unwrap();
        assert!(body.remove("seconds").is_some());
        body.remove("peak_memory");
        let values = body["values"].as_array_mut().unwrap();
        values.retain(|value| !is_of_machine(value["metric"].as_str().unwrap()));
        (name, record["body"].to_string().into_bytes())
    };
    contents(raw).into_iter().map(of).collect()
}

/// Runs git in a folder with an identity, and returns what it prints.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]);
    let output = command.arg("-C").arg(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Repository {
    /// All experiments, the manifest and the published values; no records, no data.
    pub fn new() -> Self {
        Repository::of(&["experiments"])
    }

    /// These parts of the repository, the manifest and the published values.
    fn of(parts: &[&str]) -> Self {
        let [directory, temporary] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        for part in parts.iter().chain(&["data/papers", "data/manifest.yaml"]) {
            copy(&source().join(part), &directory.path().join(part));
        }
        Repository { directory, temporary }
    }

    /// Only `extensions`, with the experiment given as text.
    pub fn with_experiment(text: &str) -> Self {
        let parts = ["metrics.yaml", "schema.json", "extensions/paper.yaml"];
        let parts = parts.map(|part| format!("experiments/{part}"));
        let repository = Repository::of(&parts.each_ref().map(String::as_str));
        repository.write("experiments/extensions/01-mexican-hat.yaml", text);
        // Generating 16 large images takes longer than all else that most tests do.
        let manifest = repository.read("data/manifest.yaml");
        let (before, set) = manifest.split_once("- id: div2k-test\n").unwrap();
        let few = set.replacen("count: 16", "count: 4", 1);
        repository.write("data/manifest.yaml", &format!("{before}- id: div2k-test\n{few}"));
        repository
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn write(&self, file: &str, text: &str) {
        let file = self.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// Saves a square picture with waves and an edge.
    pub fn picture(&self, file: &str, side: u32) {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let pixel = |x: u32, y: u32| {
            let wave = (f64::from(x) * 0.21).sin() * (f64::from(y) * 0.13).cos();
            let edge = if x > y { 60.0 } else { 0.0 };
            image::Rgb([(100.0 + 70.0 * wave + edge) as u8, (x % 251) as u8, (y % 241) as u8])
        };
        image::RgbImage::from_fn(side, side, pixel).save(path).unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.prepared(Command::new(env!("CARGO_BIN_EXE_posenc")), arguments)
    }

    /// A command with the environment of these tests.
    pub fn prepared(&self, mut command: Command, arguments: &[&str]) -> Command {
        command
            .args(arguments)
            .current_dir(self.path())
            .env_remove("POSENC_DATA")
            .env_remove("POSENC_ROOT")
            // A GPU of the machine must not change what tests see.
            .env("POSENC_DEVICE", "cpu")
            .env("TMPDIR", self.temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        Process::start(self.command(arguments)).ended()
    }

    /// As `run`, with an environment variable.
    pub fn run_with(&self, name: &str, value: &str, arguments: &[&str]) -> Run {
        let mut command = self.command(arguments);
        command.env(name, value);
        Process::start(command).ended()
    }

    /// As `run`, in a shell after another command, such as one that limits what a process may do.
    #[cfg(unix)]
    pub fn run_after(&self, first: &str, arguments: &[&str]) -> Run {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{first}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_posenc")]);
        Process::start(self.prepared(shell, arguments)).ended()
    }

    /// As `run`, and the run must succeed.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {}{}", run.stdout, run.stderr);
        run
    }

    /// As `run`, and the run must fail with a message that contains all of `needles`.
    #[track_caller]
    pub fn fails(&self, arguments: &[&str], needles: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_ne!(run.code, 0, "{arguments:?} succeeded: {}", run.stdout);
        let is_panic = [101, 134, 137].contains(&run.code);
        assert!(!is_panic, "{arguments:?} panicked: {}", run.stderr);
        run.says(needles);
        run
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// Starts a run with `--verbose`, whose standard error is the file `log`.
    pub fn start_verbose(&self, arguments: &[&str]) -> Child {
        let log = std::fs::File::create(self.path().join("log")).unwrap();
        self.command(&[arguments, &["--verbose"]].concat()).stderr(log).spawn().unwrap()
    }

    pub fn checkpoints(&self, out: &str) -> usize {
        self.checkpoint_files(out).len()
    }

    pub fn checkpoint_files(&self, out: &str) -> Vec<PathBuf> {
        files_in(&self.path().join(out).join("checkpoints"), "bin")
    }

    /// Runs everything into `out` and kills the run when its first checkpoint exists.
    pub fn kill_at_checkpoint(&self, device: &str, out: &str) {
        let mut child = self.start(&["reproduce", "--device", device, "--out", out]);
        wait("checkpoint", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended before its first checkpoint");
            self.checkpoints(out) > 0
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Raw records, by path below `out/raw`.
    pub fn raw(&self, out: &str) -> Vec<PathBuf> {
        files_in(&self.path().join(out).join("raw"), "json")
    }

    /// All rows of all records of `out`, except times, rates and memory.
    pub fn rows(&self, out: &str) -> Vec<String> {
        let is_measured = |line: &&str| line.split(',').nth(6).is_some_and(is_of_machine);
        let mut rows = Vec::new();
        for file in files_in(&self.path().join(out).join("record"), "csv") {
            if file.ends_with("values.csv") {
                let text = joined(file.parent().unwrap());
                rows.extend(text.lines().filter(|l| !is_measured(l)).map(str::to_owned));
            }
        }
        rows.sort();
        rows
    }

    /// The rows of `<directory>/extensions/mexican-hat`, as [`joined`] writes them.
    pub fn table(&self, directory: &str) -> String {
        joined(&self.path().join(directory).join("extensions/mexican-hat"))
    }
}

/// A command that takes longer counts as hanging. The limit is many times the longest duration.
const PATIENCE: Duration = Duration::from_secs(600);

#[track_caller]
pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a process, or to a group by its negative number; returns whether there is one.
#[cfg(unix)]
pub fn kill(signal: &str, process: i64) -> bool {
    let mut command = Command::new("kill");
    command.args([signal, "--", &process.to_string()]).stderr(Stdio::null());
    command.status().unwrap().success()
}

/// A command in flight, whose output goes to files, so that no full pipe blocks it.
pub struct Process {
    pub child: Child,
    output: [tempfile::NamedTempFile; 2],
}

impl Process {
    pub fn start(mut command: Command) -> Self {
        let output = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
        let [stdout, stderr] = [0, 1].map(|i| Stdio::from(output[i].reopen().unwrap()));
        Process { child: command.stdout(stdout).stderr(stderr).spawn().unwrap(), output }
    }

    /// Waits for the end, and kills a command that hangs.
    #[track_caller]
    pub fn ended(mut self) -> Run {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > PATIENCE {
                let _ = self.child.kill();
                panic!("a command hangs");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let text = |file: &tempfile::NamedTempFile| {
            String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned()
        };
        let [stdout, stderr] = [0, 1].map(|i| text(&self.output[i]));
        Run { code: status.code().unwrap_or(-1), stdout, stderr }
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub fn experiment(groups: &str) -> String {
    format!(
        "paper: extensions\nitem: mexican-hat\nkind: extra\ntitle: A test\nshows: A test\ngroups:\n{groups}"
    )
}

/// [`EXPERIMENT`] with a unit that fails when it runs: at the last value of its sweep, the features are 0 at all samples.
pub fn with_a_failing_unit() -> String {
    let failing = "{ kind: formula, dimension: 128, psi: \"max(0, 1-sigma*abs(u-0.001))\", sigma: 5 }, \
                   settings: { sweep: { parameter: sigma, values: [5, 1000000] } } }";
    EXPERIMENT.replace("{ kind: rff, dimension: 128, sigma: 5 } }", failing)
}

/// A group with two units that take no time.
pub const RANK: &str = "  - id: rank
    protocol: { kind: stable-rank, samples: [4, 16] }
    variants:
      - { id: Gaussian, embedder: { kind: gaussian, dimension: 128, sigma: 0.02 } }
      - { id: RFF, embedder: { kind: rff, dimension: 128, sigma: 5 } }
";

/// A small experiment: a built-in Gaussian, the same Gaussian as a formula, RFF, and a Mexican hat.
pub const EXPERIMENT: &str = include_str!("small.yaml");
