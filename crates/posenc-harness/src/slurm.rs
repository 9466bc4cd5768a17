//! Running a plan as jobs of Slurm (`--slurm`): an array whose tasks run one share each, and a job after it that runs what is left,
//! collects and renders. Slurm watches, requeues and cancels them; nothing here waits.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use posenc_experiments::shell::quoted;

use crate::device::{Devices, GPU, Request};
use crate::lock;
use crate::options::{Again, Reproduce};
use crate::plan::{PlannedJob, lookup};
use crate::repository::Repository;
use crate::share::{checksum, deal};
use crate::store::{Store, write_file};
use crate::timings::Timings;

/// Environment variables of Slurm that say which cluster to use. The others describe an enclosing job and must not reach a new one.
const KEPT: [&str; 3] = ["SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT"];

/// The device of all tasks. Nodes that choose one each would have different plans, so without a request it is the CPU.
fn device(request: &Request) -> Request {
    if *request == Request::Auto { Request::Cpu } else { request.clone() }
}

/// The devices of the tasks, which this machine need not have.
pub fn devices(request: &Request) -> Devices {
    match &device(request) {
        Request::Auto | Request::Cpu => Devices::cpu(),
        Request::Gpu => Devices::of_class(GPU),
        // Only opening the adapter shows whether it is a GPU.
        named @ Request::Named(_) => {
            Devices::open(named).unwrap_or_else(|_| Devices::of_class(GPU))
        }
    }
}

/// Submits a plan in `tasks` tasks and says how to follow it. Returns false if no unit is left to run.
pub fn submit(
    repository: &Repository,
    out: &Path,
    planned: &[PlannedJob<'_>],
    store: &Store,
    options: &Reproduce,
    tasks: usize,
) -> Result<bool> {
    let pending = |planned| lookup(planned, store, Again::None, false).len();
    let pending: Vec<usize> = planned.iter().map(pending).collect();
    let units: usize = pending.iter().sum();
    if units == 0 {
        return Ok(false);
    }
    let out = std::path::absolute(out)?;
    let name = format!("posenc-{}", &blake3::hash(utf8(&out)?.as_bytes()).to_hex()[..8]);
    let queued = ["--noheader", "--format=%A", &format!("--name={name}")];
    ensure!(
        call(command("squeue").args(queued))?.trim().is_empty(),
        "jobs of Slurm already run this in {}; wait for them (squeue --name={name}), cancel them (scancel --name={name}), \
         or use another --out DIR",
        out.display()
    );
    let lock = lock::take(&out, None)?;

    let timings = Timings::of_record(&repository.record(), planned);
    let waiting =
        deal(planned, &timings, tasks).into_iter().zip(&pending).filter(|(_, units)| **units > 0);
    let waiting: BTreeSet<usize> = waiting.map(|(share, _)| share).collect();

    let folder = out.join("slurm");
    let owned = |text: OsString| utf8(&text).map(str::to_owned);
    let is_ours = |name: &OsStr| name.to_string_lossy().starts_with("POSENC_");
    let variables = std::env::vars_os().filter(|(name, _)| is_ours(name));
    let script = script(&Scene {
        binary: utf8(&copy_binary(&folder)?)?,
        folder: utf8(&std::env::current_dir().context("the current directory is unknown")?)?,
        variables: variables
            .map(|(n, value)| Ok((owned(n)?, owned(value)?)))
            .collect::<Result<_>>()?,
        arguments: std::env::args_os().skip(1).map(owned).collect::<Result<_>>()?,
        device: device(&options.device),
        jobs: options.jobs,
        plan: checksum(planned),
        shares: tasks,
    });
    let file = folder.join("job.sh");
    write_file(&file, script.as_bytes())?;
    let logs = pattern(&folder)?;
    // Tasks may start at once, and need the folder.
    drop(lock);
    let sbatch = |own: &[String], log: &str| {
        let mut sbatch = command("sbatch");
        // sbatch uses the last of two equal options, and its own are needed here.
        sbatch.args(&options.sbatch_args).args(own);
        sbatch.args(["--parsable", "--requeue", "--open-mode=append"]);
        sbatch.args([format!("--job-name={name}"), format!("--output={logs}/{log}.log")]);
        let answer = call(sbatch.arg(&file)).with_context(|| {
            format!("Slurm rejected {}; `sinfo` lists partitions and limits", file.display())
        })?;
        // <number>, or <number>;<cluster>.
        let number = answer.trim().split(';').next().unwrap_or_default();
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        ensure!(is_number, "sbatch printed `{}` instead of a job number", answer.trim());
        Ok(number.to_owned())
    };
    let mut own = Vec::new();
    if !waiting.is_empty() {
        let numbers: Vec<String> = waiting.iter().map(usize::to_string).collect();
        let array = sbatch(&[format!("--array={}", numbers.join(","))], "%A-%a")?;
        eprintln!("submitted {array}: an array of {} tasks for {units} units", numbers.len());
        own.push(format!("--dependency=afterany:{array}"));
    }
    let last = sbatch(&own, "%A").inspect_err(|_| {
        let _ = call(command("scancel").arg(format!("--name={name}")));
    })?;
    eprintln!("submitted {last}: a job that runs what is left and writes the report");
    eprintln!("logs:   {}/*.log", quoted(utf8(&folder)?));
    eprintln!("queue:  squeue --name={name}");
    eprintln!("cancel: scancel --name={name}");
    Ok(true)
}

/// What all tasks share.
struct Scene<'a> {
    binary: &'a str,
    folder: &'a str,
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
    device: Request,
    jobs: Option<u16>,
    plan: String,
    /// Number of shares of the plan.
    shares: usize,
}

fn script(scene: &Scene<'_>) -> String {
    let Scene { binary, folder, device, plan, shares, .. } = scene;
    let (mut arguments, mut last, mut selectors) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = scene.arguments.iter();
    while let Some(word) = all.next() {
        let (name, value) = word.split_once('=').unzip();
        match name.unwrap_or(word) {
            "--" => selectors.extend(std::iter::once(word).chain(all.by_ref())),
            "--slurm" | "--sbatch-arg" | "--device" | "--jobs" if value.is_some() => {}
            "--slurm" | "--sbatch-arg" | "--device" | "--jobs" => drop(all.next()),
            // Only complete results are recorded, and shares write no report.
            "--record" | "--allow-dirty" => last.push(word),
            _ => arguments.push(word),
        }
    }
    let words = |words: &[&String]| -> String {
        words.iter().map(|word| format!(" {}", quoted(word))).collect()
    };
    let exports: String = scene
        .variables
        .iter()
        .map(|(name, value)| format!("export {name}={}\n", quoted(value)))
        .collect();
    format!(
        "#!/bin/sh\n\
         # Written by `cargo xtask reproduce --slurm`: a task of the array runs a share, the job after it what is left.\n\
         cd {folder} || exit\n\
         {exports}\
         cores=\"${{SLURM_CPUS_PER_TASK:-${{SLURM_CPUS_ON_NODE:-1}}}}\"\n\
         export RAYON_NUM_THREADS=\"${{RAYON_NUM_THREADS:-$cores}}\"\n\
         if [ -n \"$SLURM_ARRAY_TASK_ID\" ]; then set -- \"--share=$SLURM_ARRAY_TASK_ID/{shares}\"; else set --{last}; fi\n\
         exec {binary}{arguments} {device} --jobs={jobs} --plan={plan} \"$@\"{selectors}\n",
        folder = quoted(folder),
        last = words(&last),
        binary = quoted(binary),
        arguments = words(&arguments),
        device = quoted(&format!("--device={device}")),
        jobs = scene.jobs.map_or("\"$cores\"".to_owned(), |jobs| jobs.to_string()),
        selectors = words(&selectors),
    )
}

fn utf8<T: AsRef<OsStr> + ?Sized>(text: &T) -> Result<&str> {
    let text = text.as_ref();
    text.to_str().with_context(|| format!("{} is not UTF-8", text.display()))
}

/// Copies this program for the tasks, because a build during the run would replace the original.
fn copy_binary(folder: &Path) -> Result<PathBuf> {
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let copy = folder.join("posenc");
    posenc_files::make_folder(folder)
        .and_then(|()| posenc_files::remove(&copy))
        .and_then(|_| posenc_files::open(&own))
        .and_then(|mut own| std::io::copy(&mut own, &mut posenc_files::create_program(&copy)?))
        .with_context(|| format!("{} cannot be copied to {}", own.display(), copy.display()))?;
    Ok(copy)
}

/// A folder in a pattern of Slurm for file names.
fn pattern(folder: &Path) -> Result<String> {
    let path = utf8(folder)?;
    ensure!(
        !path.contains(|c: char| c == '\\' || c.is_control()),
        "{path} contains a backslash or a control character, which Slurm does not accept in the name of a log; use another \
         --out DIR"
    );
    Ok(path.replace('%', "%%"))
}

/// A Slurm command without the variables of an enclosing job.
fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    for (variable, _) in std::env::vars_os() {
        let text = variable.to_string_lossy();
        if text.starts_with("SLURM_") && !KEPT.contains(&&*text) {
            command.env_remove(&variable);
        }
    }
    command
}

/// Runs a Slurm command and returns its output.
fn call(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "Slurm's {name} was not found; run this on a node with Slurm's commands (a login node), or remove --slurm"
        ),
        Err(error) => return Err(error).with_context(|| format!("{name} cannot be started")),
    };
    let message = posenc_files::one_line(&output.stderr);
    let message = if message.is_empty() { output.status.to_string() } else { message };
    ensure!(output.status.success(), "{name} failed: {message}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Catches names and values that the shell of a node expands or splits, options of Slurm that reach the tasks, and tasks that
    /// record.
    #[test]
    fn tasks_get_the_folder_the_variables_and_the_arguments() {
        let scratch = tempfile::tempdir().unwrap();
        let hostile = "it's \"$HOME\" `x`\n100% \\ \u{fc};&";
        let folder = scratch.path().join(hostile);
        std::fs::create_dir(&folder).unwrap();
        let binary = folder.join("po senc");
        let print =
            "#!/bin/sh\nprintf '%s|' \"$(pwd)\" \"$POSENC_DATA\" \"$RAYON_NUM_THREADS\" \"$@\"\n";
        std::fs::write(&binary, print).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&binary, mode).unwrap();
        let arguments = "--root HOSTILE reproduce --slurm 4 --record lff/* --sbatch-arg --record --sbatch-arg=--time=1 --device=auto \
                         --jobs 3 -- --slurm HOSTILE";
        let arguments = arguments.split(' ').map(|word| word.replace("HOSTILE", hostile));
        let scene = Scene {
            binary: utf8(&binary).unwrap(),
            folder: utf8(&folder).unwrap(),
            variables: vec![("POSENC_DATA".to_owned(), hostile.to_owned())],
            arguments: arguments.collect(),
            device: Request::Named("a b".to_owned()),
            jobs: None,
            plan: "0123".to_owned(),
            shares: 5,
        };
        let run = |task: Option<&str>| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &script(&scene), "job"]).env_remove("RAYON_NUM_THREADS");
            shell
                .env("SLURM_CPUS_ON_NODE", "7")
                .envs(task.map(|task| ("SLURM_ARRAY_TASK_ID", task)));
            let output = shell.output().unwrap();
            assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let told = |own: &str| {
            let folder = folder.display();
            format!(
                "{folder}|{hostile}|7|--root|{hostile}|reproduce|lff/*|--device=wgpu:a b|--jobs=7|--plan=0123|{own}|--|--slurm|{hostile}|"
            )
        };
        assert_eq!(run(Some("2")), told("--share=2/5"));
        assert_eq!(run(None), told("--record"));
        for (name, is_fine) in [("a %b", true), ("a\\b", false), ("a\nb", false)] {
            assert_eq!(pattern(Path::new(name)).is_ok(), is_fine, "{name}");
        }
    }
}
