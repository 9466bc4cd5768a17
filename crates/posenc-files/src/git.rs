//! git, in a repository whose configuration may come from others.

use std::io::{Error, Result};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs git in `root`.
///
/// The configuration of a repository may name programs. None of them starts:
/// - the file monitor and hooks are off, and git does not write the index, which would run a hook;
/// - filters, which `status` and `diff` run on files with other times, get empty commands;
/// - no transport is allowed, so a missing object starts no ssh, proxy, remote helper or credential helper;
/// - the output is no terminal, so no pager starts.
///
/// Only `diff` runs drivers of diffs; pass `--no-ext-diff --no-textconv`. A submodule has a configuration of its own; pass
/// `--ignore-submodules=all` to `diff` and `status`. The user's own configuration applies, since it decides on line ends.
///
/// # Errors
///
/// git cannot be started, or a filter has a name that cannot be overridden.
pub fn git(root: &Path, arguments: &[&str]) -> Result<Output> {
    let filters = r"^filter\..*\.(clean|smudge|process|required)$";
    let filters = ["config", "--null", "--name-only", "--get-regexp", filters];
    let filters = run(root, &[], &filters)?;
    // With status 1, there are no filters.
    if !matches!(filters.status.code(), Some(0 | 1)) {
        return Ok(filters);
    }
    let names = String::from_utf8(filters.stdout).map_err(Error::other)?;
    let mut settings = Vec::new();
    for name in names.split_terminator('\0') {
        if name.contains('=') {
            return Err(Error::other(format!(
                "the name of the git setting {name:?} contains `=`; rename the filter"
            )));
        }
        settings.push(format!("{name}={}", if name.ends_with(".required") { "false" } else { "" }));
    }
    run(root, &settings, arguments)
}

fn run(root: &Path, settings: &[String], arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new("git");
    command.args(["--no-pager", "--no-optional-locks", "-C"]).arg(root);
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    settings.iter().for_each(|setting| _ = command.args(["-c", setting]));
    command.args(arguments).env("GIT_ALLOW_PROTOCOL", "none").env("GIT_NO_LAZY_FETCH", "1");
    command.stdin(Stdio::null()).output()
}
