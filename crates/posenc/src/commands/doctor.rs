//! `doctor`: prints what this machine supports, what is disabled and how to enable it.

use std::process::ExitCode;

use anyhow::Result;
use posenc_experiments::Catalog;

use super::bench::{Framework, Peer};
use crate::arguments::Doctor;
use posenc_harness::data::source;
use posenc_harness::device::{self, Devices};
use posenc_harness::machine;
use posenc_harness::repository::Repository;
use posenc_protocols::KINDS;

pub fn doctor(repository: &Repository, options: &Doctor) -> Result<ExitCode> {
    let versions = machine::versions();
    let version = |name: &str| versions.get(name).map_or("?", String::as_str);
    println!("posenc      {} (rustc {})", version("posenc"), version("rustc"));
    println!("repository  {}", repository.root().display());
    println!("processor   {}, {} cores", machine::processor(), machine::cores());
    println!("system      {}", machine::system());
    let catalog = Catalog::read(repository.root(), KINDS)?;
    println!(
        "experiments {} of {} items in {} papers",
        catalog.experiments.len(),
        catalog.papers.iter().map(|p| p.items.len()).sum::<usize>(),
        catalog.papers.len()
    );
    println!();
    println!("device      CPU: runs everything; with an adapter, training also runs on wgpu");
    for adapter in device::adapters() {
        println!("wgpu        {adapter}");
    }
    if let Some(request) = &options.device {
        let devices = Devices::open(request)?;
        println!("            --device {request} trains on: {}", devices.label(devices.training()));
    }
    match posenc_data::ffmpeg_version() {
        Some(version) => println!("video       {version}: reads mp4 and whatever else it decodes"),
        None => println!(
            "video       off: generated clips, npz arrays and folders of frames still work; {}",
            posenc_data::VIDEO_CURE
        ),
    }
    match Peer::find(repository, Framework::Torch) {
        Ok(peer) => println!("peers       PyTorch {} ({})", peer.version, peer.python),
        Err(why) => println!(
            "peers       off: {why}; benchmarks show only our times. To compare: pip install torch, and set POSENC_PYTHON to that Python"
        ),
    }
    if posenc_files::git(repository.root(), &["--version"]).is_err() {
        println!("git         missing: provenance will have no commit; install git");
    }
    println!();
    let source = source(repository, &options.data)?;
    println!("data        {}", source.directory().path().display());
    for status in posenc_data::list(source.manifest(), source.directory()) {
        for line in status.to_string().lines() {
            println!("  {line}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
