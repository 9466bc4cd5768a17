//! Escaping of text of files and of other programs on its way to the terminal.

use std::path::Path;
use std::process::{Command, Output};

/// Escape sequences, a carriage return, a line that looks like one of ours, and a reversed reading direction; as YAML and JSON
/// write them in double quotes.
const HOSTILE: &str = r"a\u001b[2J\r\nerror: forged\u202e\u009b\u2028";

fn posenc(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posenc"));
    command.arg("--root").arg(root).args(arguments);
    command.env_remove("POSENC_DATA").output().unwrap()
}

/// Checks that the output has no hidden characters except the program's line breaks and, if `shown`, contains the escaped hostile
/// text.
#[track_caller]
fn check(output: &Output, shown: bool) -> String {
    let mut all = String::new();
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).unwrap();
        let hidden = text.chars().find(|c| *c != '\n' && posenc_files::is_hidden(*c));
        assert_eq!(hidden, None, "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{text}");
        all += text;
    }
    assert!(!shown || all.contains(r"a\u{1b}[2J\r\nerror: forged\u{202e}\u{9b}\u{2028}"), "{all}");
    all
}

/// A repository with one experiment, whose texts are hostile.
fn repository(root: &Path, method: &str) {
    let folder = root.join("experiments/demo");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(root.join("data")).unwrap();
    std::fs::write(root.join("data/manifest.yaml"), "sets: []\n").unwrap();
    let paper = format!(
        "key: demo\ntitle: \"{HOSTILE}\"\nauthors: [A]\nvenue: V\nyear: 2020\nsummary: S\nitems:\n  \
         - {{ item: fig1, name: F, title: T }}\n  - {{ item: fig2, name: F, title: \"{HOSTILE}\" }}\n"
    );
    std::fs::write(folder.join("paper.yaml"), paper).unwrap();
    let experiment = format!(
        "paper: demo\nitem: fig1\nkind: figure\ntitle: \"{HOSTILE}\"\nshows: S\ngroups:\n  - id: g\n    \
         protocol: {{ kind: stable-rank, samples: [4] }}\n    variants:\n      \
         - {{ id: \"{method}\", embedder: {{ kind: gaussian, dimension: 8, sigma: 0.1 }} }}\n"
    );
    std::fs::write(folder.join("fig1.yaml"), experiment).unwrap();
}

/// Catches text of an experiment, of a record or of a file's name that changes the terminal or forges a line.
#[cfg(unix)]
#[test]
fn text_of_files_is_escaped_on_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    repository(root, "M\u{2067}");
    // A hostile method name is rejected, since names are part of selectors and tables.
    assert!(check(&posenc(root, &["list"]), false).contains("U+2067"));
    repository(root, "M");
    check(&posenc(root, &["list"]), true);

    let run = ["reproduce", "--profile", "smoke", "--device", "cpu"];
    let done = posenc(root, &[&run[..], &["--verbose"]].concat());
    check(&done, false);
    assert!(done.status.success(), "{done:?}");

    // The record of the run in a folder whose name is hostile, with other methods and a damaged line.
    let name = "a\u{1b}[2J\r\nerror: forged\u{202e}\u{9b}\u{2028}";
    let other = root.join(name);
    std::fs::create_dir_all(other.join("demo/fig1")).unwrap();
    let folder = root.join("out/record/demo/fig1");
    std::fs::copy(folder.join("values.csv"), other.join("demo/fig1/values.csv")).unwrap();
    let record = std::fs::read_to_string(folder.join("units.csv")).unwrap();
    let file = other.join("demo/fig1/units.csv");
    let write = |from: &str, to: &str| {
        assert!(record.contains(from), "{record}");
        std::fs::write(&file, record.replace(from, to)).unwrap();
    };
    let mine = root.join("out/record");
    let (mine, theirs) = (mine.to_str().unwrap(), other.to_str().unwrap());
    write(",M,", &format!(",\"{name}\","));
    // `diff` wraps lines at words, so line breaks in names become spaces.
    assert!(check(&posenc(root, &["diff", mine, theirs]), false).contains(r"a\u{1b}[2J"));
    write(",paper,cpu", &format!(",\"{name}\",cpu"));
    check(&posenc(root, &["diff", mine, theirs]), true);

    // A unit's record that cannot be used.
    let raw = root.join("out/raw/demo/fig1");
    for entry in std::fs::read_dir(&raw).unwrap() {
        std::fs::write(entry.unwrap().path(), format!("{{\"{HOSTILE}\": 1}}")).unwrap();
    }
    check(&posenc(root, &run), true);

    for wrong in [&["reproduce", name][..], &["fit", name, "--out", "x.png"], &["diff", name, name]]
    {
        let output = posenc(root, wrong);
        assert!(!output.status.success());
        check(&output, false);
    }
}

/// Catches output of git, Python or Slurm that reaches the terminal unescaped, or on several lines.
#[cfg(unix)]
#[test]
fn output_of_other_programs_is_escaped() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let (root, programs) = (directory.path().join("root"), directory.path().join("programs"));
    std::fs::create_dir_all(&programs).unwrap();
    repository(&root, "M");
    let script = "#!/bin/sh\nprintf 'a\\033[2J\\r\\nerror: forged\\342\\200\\256' >&2\nexit 1\n";
    for program in ["git", "squeue", "python3"] {
        let file = programs.join(program);
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for arguments in [&["reproduce", "--slurm", "2"][..], &["doctor"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posenc"));
        command.arg("--root").arg(&root).args(arguments).env("PATH", &path);
        let output = command.output().unwrap();
        let all = check(&output, false);
        if arguments != ["doctor"] {
            assert!(all.contains(r"a\u{1b}[2J | error: forged\u{202e}"), "{all}");
        }
    }
}

/// Catches a program that panics or continues when its output pipe is closed.
#[cfg(unix)]
#[test]
fn a_closed_output_pipe_ends_the_program() {
    let directory = tempfile::tempdir().unwrap();
    repository(directory.path(), "M");
    let output = Command::new("sh")
        .args(["-c", "\"$0\" --root \"$1\" list; echo $? >&2"])
        .arg(env!("CARGO_BIN_EXE_posenc"))
        .arg(directory.path())
        .stdout(closed())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text.trim(), "141", "{text}");
}

/// The writing end of a pipe that nobody reads.
#[cfg(unix)]
fn closed() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}
