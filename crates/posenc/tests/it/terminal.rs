//! Escaping of text of files and of other programs on its way to the terminal.

use std::process::Output;

use crate::common::{Repository, experiment};

/// Escape sequences, a carriage return, a line that looks like one of ours, and a reversed reading direction; as YAML and JSON
/// write them in double quotes.
const HOSTILE: &str = r"a\u001b[2J\r\nerror: forged\u202e\u009b\u2028";

fn posenc(repository: &Repository, arguments: &[&str]) -> Output {
    repository.command(arguments).output().unwrap()
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

/// A repository with one experiment, whose title is hostile, and an item without experiment whose title is.
fn repository(method: &str) -> Repository {
    let group = format!(
        "  - id: g\n    protocol: {{ kind: stable-rank, samples: [4] }}\n    variants:\n      \
         - {{ id: \"{method}\", embedder: {{ kind: gaussian, dimension: 8, sigma: 0.1 }} }}\n"
    );
    let title = format!("title: \"{HOSTILE}\"");
    let repository =
        Repository::with_experiment(&experiment(&group).replace("title: A test", &title));
    let (paper, anchor) = ("experiments/extensions/paper.yaml", "  # new items: above this line");
    let item = format!("  - {{ item: fig2, name: F, {title} }}\n{anchor}");
    repository.write(paper, &repository.read(paper).replace(anchor, &item));
    repository
}

/// Catches text of an experiment, of a record or of a file's name that changes the terminal or forges a line.
#[cfg(unix)]
#[test]
fn text_of_files_is_escaped_on_the_terminal() {
    // A hostile method name is rejected, since names are part of selectors and tables.
    let hostile = repository("M\u{2067}");
    assert!(check(&posenc(&hostile, &["list"]), false).contains("U+2067"));
    let repository = repository("M");
    let (root, posenc) = (repository.path(), |arguments: &[&str]| posenc(&repository, arguments));
    check(&posenc(&["list"]), true);

    let run = ["reproduce", "--profile", "smoke"];
    let done = posenc(&[&run[..], &["--verbose"]].concat());
    check(&done, false);
    assert!(done.status.success(), "{done:?}");

    // The record of the run in a folder whose name is hostile, with other methods and a damaged line.
    let name = "a\u{1b}[2J\r\nerror: forged\u{202e}\u{9b}\u{2028}";
    let other = root.join(name);
    let item = "extensions/mexican-hat";
    std::fs::create_dir_all(other.join(item)).unwrap();
    let folder = root.join("out/record").join(item);
    std::fs::copy(folder.join("values.csv"), other.join(item).join("values.csv")).unwrap();
    let record = std::fs::read_to_string(folder.join("units.csv")).unwrap();
    let file = other.join(item).join("units.csv");
    let write = |from: &str, to: &str| {
        assert!(record.contains(from), "{record}");
        std::fs::write(&file, record.replace(from, to)).unwrap();
    };
    let diff = ["diff", "out/record", other.to_str().unwrap()];
    write(",M,", &format!(",\"{name}\","));
    // `diff` wraps lines at words, so line breaks in names become spaces.
    assert!(check(&posenc(&diff), false).contains(r"a\u{1b}[2J"));
    write(",paper,cpu", &format!(",\"{name}\",cpu"));
    check(&posenc(&diff), true);

    // A unit's record that cannot be used.
    let raw = root.join("out/raw").join(item);
    for entry in std::fs::read_dir(&raw).unwrap() {
        std::fs::write(entry.unwrap().path(), format!("{{\"{HOSTILE}\": 1}}")).unwrap();
    }
    check(&posenc(&run), true);

    for wrong in [&["reproduce", name][..], &["fit", name, "--out", "x.png"], &["diff", name, name]]
    {
        let output = posenc(wrong);
        assert!(!output.status.success());
        check(&output, false);
    }
}

/// Catches output of git, Python or Slurm that reaches the terminal unescaped, or on several lines.
#[cfg(unix)]
#[test]
fn output_of_other_programs_is_escaped() {
    use std::os::unix::fs::PermissionsExt;
    let repository = repository("M");
    let programs = repository.path().join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    let script = "#!/bin/sh\nprintf 'a\\033[2J\\r\\nerror: forged\\342\\200\\256' >&2\nexit 1\n";
    for program in ["git", "squeue", "python3"] {
        let file = programs.join(program);
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for arguments in [&["reproduce", "--slurm", "2"][..], &["doctor"]] {
        let output = repository.command(arguments).env("PATH", &path).output().unwrap();
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
    use std::os::unix::process::ExitStatusExt;
    // The writing end of a pipe that nobody reads.
    let closed = std::io::pipe().unwrap().1;
    let status = repository("M").command(&["list"]).stdout(closed).status().unwrap();
    assert!(status.code() == Some(141) || status.signal() == Some(13), "{status}");
}
