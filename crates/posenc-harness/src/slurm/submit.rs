//! Submits a plan as Slurm jobs.

use std::cell::RefCell;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail, ensure};

use super::client::{self, Job};
use super::files::{self, Claim, ClusterRun, FORMAT, Folder, Round};
use super::shares;
use crate::device::{CPU, Devices, GPU, Request};
use crate::options::Reproduce;
use crate::plan::PlannedJob;
use crate::repository::Repository;
use crate::timings::Timings;

/// The devices on which training will run. The submitting machine need not have the devices of the nodes, so the class is not verified. A
/// node with another class refuses its share.
pub fn devices(options: &Reproduce) -> Result<Devices> {
    Ok(Devices::of_class(match &request(options) {
        Request::Auto | Request::Cpu => CPU,
        Request::Gpu => GPU,
        // Only opening the adapter shows whether it is a GPU.
        named @ Request::Named(_) => Devices::open(named).map_or(GPU, |devices| devices.training()),
    }))
}

/// The device request of tasks. Without a GPU in `--gres` they use the CPU; with one they must use it.
fn request(options: &Reproduce) -> Request {
    let has_gpu = options.executor.slurm.gres.as_ref().is_some_and(|gres| gres.contains("gpu"));
    match &options.device {
        Request::Auto if has_gpu => Request::Gpu,
        Request::Auto => Request::Cpu,
        other => other.clone(),
    }
}

/// Arguments with the same meaning on every machine, in every environment and working directory.
pub fn arguments(repository: &Repository, options: &Reproduce) -> Result<Vec<String>> {
    let full = |path: &Path| -> Result<String> {
        let path = std::path::absolute(path)
            .with_context(|| format!("{} has no full path", path.display()))?;
        Ok(client::text(&path)?.to_owned())
    };
    let mut all = vec![format!("--root={}", full(repository.root())?), "reproduce".to_owned()];
    let mut add = |name: &str, value: &str| all.push(format!("--{name}={value}"));
    add("profile", &options.profile);
    add("seed", &options.seed.to_string());
    add("device", &request(options).to_string());
    let environment = std::env::var_os(posenc_data::ENVIRONMENT_VARIABLE);
    let environment = environment.filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(data) = options.data.data.clone().or(environment) {
        add("data", &full(&data)?);
    }
    for images in &options.data.images {
        let Some((set, path)) = images.split_once('=') else {
            bail!("--images {images}: allowed is SET=DIR, such as div2k-test=photos");
        };
        add("images", &format!("{set}={}", full(Path::new(path))?));
    }
    if let Some(out) = &options.out {
        add("out", &full(out)?);
    }
    if let Some(jobs) = options.jobs {
        add("jobs", &jobs.to_string());
    }
    if let Some(memory) = options.memory {
        add("memory", &format!("{}MiB", (memory.0 >> 20).max(1)));
    }
    let flags = [("--record", options.record), ("--allow-dirty", options.allow_dirty)];
    all.extend(flags.iter().filter(|(_, given)| *given).map(|(name, _)| (*name).to_owned()));
    all.push("--".to_owned());
    all.extend(options.selectors.iter().cloned());
    Ok(all)
}

/// Creates the directory of a new run with all files that its tasks read except the shares, and claims `out` for it.
pub fn begin(
    out: &Path,
    root: &Path,
    arguments: Vec<String>,
    options: &Reproduce,
    units: usize,
) -> Result<(Folder, ClusterRun)> {
    let directory = files::slurm_directory(out);
    posenc_files::make_folder(&directory)
        .with_context(|| format!("{} cannot be created", directory.display()))?;
    let id = next_id(&directory);
    let claim = Claim { id: id.clone(), by: owner() };
    claim_for(out, &claim)?;
    let folder = Folder::of(out, &id);
    let prepare = || -> Result<ClusterRun> {
        let run = ClusterRun {
            format: FORMAT,
            id: id.clone(),
            arguments,
            slurm: options.executor.slurm.clone(),
            units,
        };
        files::write(&folder.file("run.json"), &run)?;
        let script = client::script(&run, &client::copy_binary(&folder)?, root)?;
        posenc_files::write_new(&folder.file("task.sh"), script.as_bytes())
            .with_context(|| format!("{} cannot be written", folder.file("task.sh").display()))?;
        Ok(run)
    };
    let run = prepare().inspect_err(|_| release(out, &id))?;
    Ok((folder, run))
}

/// Submits a round: the array, the job that measures time, and the collecting step after both. If Slurm rejects one, the others are
/// cancelled.
pub fn round(
    folder: &Folder,
    run: &ClusterRun,
    root: &Path,
    work: Vec<PlannedJob<'_>>,
    round: usize,
) -> Result<Round> {
    let timings = Timings::of_record(&root.join("report/record"), &work);
    let split = shares::split(work, &timings, run.slurm.array_size.map(usize::from));
    for (number, share) in split.tasks.iter().enumerate() {
        files::write(
            &folder.share(&files::name(round, Some(number))),
            &shares::written(share, &timings),
        )?;
    }
    if !split.clock.is_empty() {
        files::write(
            &folder.share(&files::name(round, None)),
            &shares::written(&split.clock, &timings),
        )?;
    }
    let obtained = RefCell::new(Vec::new());
    let submit = |job: Job<'_>| {
        let number = client::submit(run, folder, root, round, &job)?;
        obtained.borrow_mut().push(number.clone());
        Ok::<_, anyhow::Error>(number)
    };
    let all = || -> Result<Round> {
        let tasks = split.tasks.len();
        let array = (tasks > 0).then(|| submit(Job::Array(tasks))).transpose()?;
        let clock = (!split.clock.is_empty()).then(|| submit(Job::Clock)).transpose()?;
        let before: Vec<&str> = array.iter().chain(&clock).map(String::as_str).collect();
        let collect = submit(Job::Collect(&before))?;
        Ok(Round { array: array.map(|array| (array, tasks)), clock, collect })
    };
    let submitted = all().inspect_err(|_| {
        if round == 1 {
            let _ = client::cancel(&run.job_name());
        }
        // The collecting step of an earlier round has the same name and is this process. It must survive to report the error.
        for number in obtained.borrow().iter().filter(|_| round > 1) {
            let _ = client::cancel_job(number);
        }
    })?;
    let mut state = folder.state()?;
    state.rounds.push(submitted.clone());
    files::write(&folder.file("state.json"), &state)?;
    Ok(submitted)
}

/// `<number>-<eight digits>`: the number orders the runs of a directory, the digits distinguish directories.
fn next_id(directory: &Path) -> String {
    let entries = posenc_files::entries(directory).unwrap_or_default().into_iter();
    let number = |name: &str| name.split('-').next()?.parse::<usize>().ok();
    let last = entries.filter_map(|e| number(&e.name.to_string_lossy())).max().unwrap_or(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = format!("{} {} {}", directory.display(), owner(), now.as_nanos());
    format!("{}-{}", last + 1, &blake3::hash(seed.as_bytes()).to_hex()[..8])
}

fn owner() -> String {
    format!("process {} on {}", std::process::id(), posenc_files::host())
}

/// Claims `out` by creating a file. Exclusive creation also works on shared file systems, while kernel locks are not visible to other
/// machines.
fn claim_for(out: &Path, claim: &Claim) -> Result<()> {
    let file = files::claim_file(out);
    let text = serde_json::to_string_pretty(claim)?;
    match posenc_files::create_new(&file) {
        Ok(mut opened) => opened
            .write_all(text.as_bytes())
            .and_then(|()| opened.sync_all())
            .with_context(|| format!("{} cannot be written", file.display())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("another process has just taken {}; run the same command again", out.display())
        }
        Err(error) => Err(error).with_context(|| format!("{} cannot be written", file.display())),
    }
}

/// Releases the claim on `out` if this run holds it.
pub fn release(out: &Path, id: &str) {
    if matches!(files::claim(out), Ok(Some(claim)) if claim.id == id) {
        let _ = posenc_files::remove(&files::claim_file(out));
    }
}

/// The active run of `out`, if any. Releases the claim of a run that ended without doing so.
pub fn alive(out: &Path) -> Result<Option<(Folder, ClusterRun)>> {
    let file = files::claim_file(out);
    let claim = files::claim(out)
        .with_context(|| format!("remove {} if no Slurm run is active", file.display()))?;
    let Some(claim) = claim else { return Ok(None) };
    let folder = Folder::of(out, &claim.id);
    let unknown = || {
        format!(
            "{}: Slurm run {} is marked as active in {}; if it is not, remove this file",
            file.display(),
            claim.id,
            out.display()
        )
    };
    let name = files::job_name(&claim.id);
    let waits = client::queue(&name).with_context(unknown)?;
    let ended = folder.ending().with_context(unknown)?.is_some();
    let submitted = folder.state().with_context(unknown)?.rounds;
    if ended || waits.is_empty() {
        ensure!(
            ended
                || !submitted.is_empty()
                || claim.by.ends_with(&format!(" on {}", posenc_files::host())),
            "{} is submitting to Slurm from {}; if that process is gone, remove {}",
            claim.by,
            out.display(),
            file.display()
        );
        release(out, &claim.id);
        return Ok(None);
    }
    if submitted.is_empty() {
        // The submitter was killed between the array and its collecting step, so nothing would collect the results. The lock on the
        // directory shows that a submitter on this machine is gone.
        eprintln!("note: run {} was only partly submitted; cancelling it", claim.id);
        client::cancel(&name)?;
        release(out, &claim.id);
        return Ok(None);
    }
    Ok(Some((folder.clone(), folder.run()?)))
}
