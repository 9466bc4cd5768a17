//! A real Slurm cluster for a test: a controller and two nodes on this machine, stopped when the test ends.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use posenc_files::testing::{Need, skip};

use crate::common::kill;

const TEMPLATE: &str = include_str!("slurm.conf.in");

/// One cluster at a time: two would share two cores.
static ONE: Mutex<()> = Mutex::new(());

/// A controller and two nodes of one core each, `n1` and `n2`.
pub struct Cluster {
    directory: tempfile::TempDir,
    daemons: Vec<(String, Child)>,
    _only: MutexGuard<'static, ()>,
}

fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    places.map(|place| place.join(name)).find(|file| file.is_file())
}

fn said(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

impl Cluster {
    /// Starts a cluster. If it does not start, skips the calling test with the reason.
    pub fn start() -> Option<Self> {
        match Self::try_start() {
            Ok(cluster) => Some(cluster),
            Err(why) => {
                skip(Need::Slurm, format!("{why:#}"));
                None
            }
        }
    }

    fn try_start() -> Result<Self> {
        let only = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let find = |name: &str| tool(name).with_context(|| format!("{name} is not installed"));
        let [munged, controller, node] = ["munged", "slurmctld", "slurmd"].map(find);
        let (munged, controller, node) = (munged?, controller?, node?);
        for client in ["sbatch", "squeue", "scancel", "scontrol", "sinfo"] {
            find(client)?;
        }
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        // munged requires folders that all users can enter.
        for folder in ["", "munge", "state", "spool.n1", "spool.n2"] {
            std::fs::create_dir_all(at(folder))?;
            std::fs::set_permissions(at(folder), std::fs::Permissions::from_mode(0o755))?;
        }
        let listeners: Vec<TcpListener> =
            (0..3).filter_map(|_| TcpListener::bind("127.0.0.1:0").ok()).collect();
        let mut conf = TEMPLATE
            .replace("DIRECTORY", &directory.path().display().to_string())
            .replace("HOST", said("hostname", "-s").split('.').next().unwrap_or_default())
            .replace("USER", &said("id", "-un"));
        for (index, listener) in listeners.iter().enumerate() {
            let port = listener.local_addr()?.port();
            conf = conf.replace(&format!("PORT{index}"), &port.to_string());
        }
        drop(listeners);
        std::fs::write(at("slurm.conf"), conf)?;
        // Any bytes suffice as the key of a cluster that runs for seconds.
        std::fs::write(at("munge/key"), directory.path().display().to_string().repeat(8))?;
        std::fs::set_permissions(at("munge/key"), std::fs::Permissions::from_mode(0o600))?;
        let mut cluster = Cluster { directory, daemons: Vec::new(), _only: only };
        let munge = cluster.path().join("munge");
        let option = |name: &str, file: &str| format!("--{name}={}", munge.join(file).display());
        let mut command = Command::new(munged);
        command.arg("--foreground").args([
            option("key-file", "key"),
            option("socket", "socket"),
            option("pid-file", "pid"),
            option("log-file", "log"),
            option("seed-file", "seed"),
        ]);
        cluster.spawn("munged", command)?;
        let started = Instant::now();
        while !munge.join("socket").exists() {
            if started.elapsed() > Duration::from_secs(10) {
                bail!("munged does not start here");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut command = Command::new(controller);
        command.arg("-D");
        cluster.spawn("slurmctld", command)?;
        for name in ["n1", "n2"] {
            let mut command = Command::new(&node);
            command.args(["-D", "-N", name]);
            cluster.spawn(name, command)?;
        }
        let idle = |cluster: &Cluster| {
            cluster.ask("sinfo", &["-h", "-N", "-o", "%T"]).matches("idle").count()
        };
        let started = Instant::now();
        while idle(&cluster) < 2 {
            if started.elapsed() > Duration::from_secs(30) {
                let log = std::fs::read_to_string(cluster.path().join("controller.log"));
                let log = log.unwrap_or_default();
                let last = log.lines().last().unwrap_or_default();
                bail!("the nodes of a test cluster do not come up here: {last}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(cluster)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The configuration file for clients of this cluster.
    pub fn conf(&self) -> PathBuf {
        self.path().join("slurm.conf")
    }

    fn spawn(&mut self, name: &str, mut command: Command) -> Result<()> {
        command.env("SLURM_CONF", self.conf());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("{name} cannot be started"))?;
        self.daemons.push((name.to_owned(), child));
        Ok(())
    }

    /// Standard output of a Slurm command.
    pub fn ask(&self, name: &str, arguments: &[&str]) -> String {
        let output = Command::new(name).args(arguments).env("SLURM_CONF", self.conf()).output();
        output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).into_owned())
    }

    /// Pending and running jobs and tasks.
    pub fn queue(&self) -> String {
        self.ask("squeue", &["-h", "-r", "-o", "%i %T %N"])
    }

    /// Processes of jobs on one node, each with its parent: process ids.
    pub fn processes(&self, node: &str) -> Vec<(i64, i64)> {
        let wanted =
            [format!("SLURM_CONF={}", self.conf().display()), format!("SLURMD_NODENAME={node}")];
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(process) = entry.file_name().to_string_lossy().parse::<i64>() else { continue };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let variables: Vec<&[u8]> = environment.split(|b| *b == 0).collect();
            if wanted.iter().all(|wanted| variables.contains(&wanted.as_bytes())) {
                let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
                let after = stat.rsplit(')').next().unwrap_or_default();
                let parent = after.split_whitespace().nth(1).and_then(|p| p.parse().ok());
                found.push((process, parent.unwrap_or(0)));
            }
        }
        found
    }

    /// Kills a node: its daemon, the processes that supervise its jobs, and its jobs, without any cleanup.
    pub fn kill_node(&mut self, node: &str) {
        for (name, child) in &mut self.daemons {
            if name == node {
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
        for (process, parent) in self.processes(node) {
            // The parent of a job's first process is slurmstepd.
            let command =
                std::fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
            if command.starts_with("slurmstepd") {
                kill("-KILL", parent);
            }
            kill("-KILL", process);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for file in ["controller.log", "n1.log", "n2.log"] {
                let text = std::fs::read_to_string(self.path().join(file)).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                eprintln!("{file}:\n{}", lines[lines.len().saturating_sub(15)..].join("\n"));
            }
        }
        for node in ["n1", "n2"] {
            self.kill_node(node);
        }
        for (_, child) in self.daemons.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
