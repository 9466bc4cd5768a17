//! Documents that a test follows to the letter.
//!
//! A comment above each code block is a directive:
//!
//! | directive | meaning |
//! |---|---|
//! | `run` | runs the commands, which must succeed |
//! | `run, exit N` | runs the commands, which must exit with status N |
//! | `run attention` | as `run`; skipped if the binary has no attention models |
//! | `compile` | commands to run after the workspace is built |
//! | `output` | the block is the output of the last command |
//! | `output, in part` | the block has some lines of the output of the last `run` or of all `compile` commands |
//! | `write: FILE` | writes the block to a file |
//! | `append: FILE` | appends the block to a file |
//! | `insert: FILE after "TEXT"` or `before` | inserts the block after the line that has this text |
//! | `shown: FILE` | the file contains the block |
//!
//! Three directives have no block: `replace: FILE "OLD" with "NEW"` changes a file, `in the report: A, B` requires these texts in
//! the report, and `paste: FILE …` replaces a placeholder of zeros in the manifest by the SHA-256 of the last output.
//!
//! `POSENC_UPDATE=1` writes the output of this run into the `output` blocks of the document.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Repository, files_in};

#[derive(Debug, Clone)]
pub struct Step {
    /// First character of the section's heading.
    pub section: char,
    pub directive: String,
    /// The block without its indentation, with a final line end.
    pub block: String,
    /// Lines of the block in the document, from 0, without its fences.
    lines: Range<usize>,
    indent: usize,
}

/// A document, followed in a repository.
pub struct Guide {
    file: PathBuf,
    pub steps: Vec<Step>,
    pub output: String,
    /// New content of `output` blocks.
    fresh: Vec<(Range<usize>, Vec<String>)>,
}

impl Guide {
    /// Reads the directives of a document. Panics on a code block without a directive.
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap();
        let all: Vec<&str> = text.lines().collect();
        let (mut steps, mut section, mut open, mut at) = (Vec::new(), ' ', None, 0);
        while let Some(line) = all.get(at) {
            let trimmed = line.trim();
            at += 1;
            if let Some(heading) = line.strip_prefix("## ") {
                section = heading.chars().next().unwrap();
            } else if let Some(directive) =
                trimmed.strip_prefix("<!-- ").and_then(|d| d.strip_suffix(" -->"))
            {
                let directive = directive.to_owned();
                if ["replace", "in the report", "paste"].iter().any(|d| directive.starts_with(d)) {
                    let block = String::new();
                    steps.push(Step { section, directive, block, lines: at..at, indent: 0 });
                } else {
                    open = Some(directive);
                }
            } else if trimmed.starts_with("```") {
                let indent = line.len() - line.trim_start().len();
                let length = all[at..].iter().position(|l| l.trim() == "```").unwrap();
                let lines = at..at + length;
                at += length + 1;
                let block: Vec<&str> =
                    all[lines.clone()].iter().map(|l| l.get(indent..).unwrap_or("")).collect();
                let directive = open
                    .take()
                    .unwrap_or_else(|| panic!("no directive above {}", block.join("\n")));
                let block = block.join("\n") + "\n";
                steps.push(Step { section, directive, block, lines, indent });
            }
        }
        assert!(open.is_none(), "no block after {open:?}");
        Guide { file: file.to_owned(), steps, output: String::new(), fresh: Vec::new() }
    }

    /// Follows one step that needs no compiler.
    pub fn follow(&mut self, repository: &Repository, step: &Step) {
        let directive = step.directive.as_str();
        let (verb, rest) = directive.split_once(": ").unwrap_or((directive, ""));
        match verb {
            _ if verb.starts_with("run") => {
                if verb == "run attention" && !cfg!(feature = "attention") {
                    self.output.clear();
                    return;
                }
                let expected = verb.strip_prefix("run, exit ").map_or(0, |n| n.parse().unwrap());
                for words in commands(&step.block) {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    let run = repository.run(&words);
                    assert_eq!(run.code, expected, "{words:?}: {}{}", run.stdout, run.stderr);
                    self.output = run.stderr + &run.stdout;
                }
            }
            "output" | "output, in part" => self.compare(repository, step),
            "in the report" => {
                let pages = files_in(&repository.path().join("out/report"), "md");
                let pages: String =
                    pages.iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
                for text in rest.split(", ") {
                    assert!(pages.contains(text), "the report does not contain {text}");
                }
            }
            "paste" => {
                let is_sum = |w: &&str| w.len() == 64 && w.chars().all(|c| c.is_ascii_hexdigit());
                let words = self.output.split(|c: char| !c.is_ascii_alphanumeric());
                let sum = words
                    .filter(is_sum)
                    .find(|w| !w.starts_with("000"))
                    .unwrap_or_else(|| panic!("{}", self.output));
                let manifest = repository.read("data/manifest.yaml");
                repository.write("data/manifest.yaml", &manifest.replace(&"0".repeat(64), sum));
            }
            _ => edit(repository, step),
        }
    }

    /// Compares a block with the last output.
    fn compare(&mut self, repository: &Repository, step: &Step) {
        if self.output.is_empty() {
            return;
        }
        let folder = repository.path().canonicalize().unwrap();
        let printed = (self.output)
            .replace(&*folder.to_string_lossy(), "~/posenc")
            .replace(&*repository.path().to_string_lossy(), "~/posenc");
        if is_update() && step.directive == "output" {
            let lines = printed.trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
            self.fresh.push((step.lines.clone(), lines));
            return;
        }
        shows(&printed, &step.block);
    }

    /// Writes the new outputs into the document if `POSENC_UPDATE` is set.
    pub fn finish(self) {
        if !is_update() {
            return;
        }
        let text = std::fs::read_to_string(&self.file).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (range, block) in self.fresh.into_iter().rev() {
            let step = self.steps.iter().find(|step| step.lines == range).unwrap();
            let indent = " ".repeat(step.indent);
            let indented = block.into_iter().map(|line| match line.as_str() {
                "" => line,
                _ => format!("{indent}{line}"),
            });
            lines.splice(range, indented);
        }
        std::fs::write(&self.file, lines.join("\n") + "\n").unwrap();
    }
}

fn is_update() -> bool {
    std::env::var_os("POSENC_UPDATE").is_some_and(|value| value == "1")
}

/// Checks that the output contains each line of a block, apart from times, sizes, numbers of cores and digits after the sixth.
pub fn shows(printed: &str, block: &str) {
    let found: Vec<String> = printed.lines().map(steady).collect();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        assert!(found.contains(&steady(line)), "the output has no line\n{line}\nbut is\n{printed}");
    }
}

/// A line without the parts that differ between machines and runs.
fn steady(line: &str) -> String {
    const UNITS: [&str; 8] = ["ms", "s", "min", "h", "MiB", "GiB", "workers", "units at a time"];
    let mut words: Vec<String> = Vec::new();
    let mut rest = line.split_whitespace().peekable();
    while let Some(word) = rest.next() {
        let bare = word.trim_start_matches('(');
        let number = bare.parse::<f64>();
        let next = rest.peek().map(|next| next.trim_end_matches([',', ';', ')', '.', ':']));
        let is_measured = next.is_some_and(|next| UNITS.contains(&next))
            || (words.last().is_some_and(|last| last == "to") && line.ends_with("units at a time"));
        match number {
            Ok(_) if is_measured => {
                // "1 min 20 s" and "80 s" are the same.
                if words.last().is_none_or(|last| last != "…") {
                    words.push("…".to_owned());
                }
                if !line.ends_with("units at a time") {
                    rest.next();
                }
            }
            Ok(number) if bare.len() > 8 && bare.contains('.') => {
                words.push(format!("{number:.5e}"));
            }
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// The commands of a block, in words without `cargo xtask`. Environment variables come first.
pub fn commands(block: &str) -> Vec<Vec<String>> {
    let words = |line: &str| {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ' ' if !quoted => {
                    words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()))
                }
                '#' if !quoted && word.is_empty() => break,
                c => word.push(c),
            }
        }
        words.extend(Some(word).filter(|w| !w.is_empty()));
        words
    };
    let all = block.lines().map(words).filter(|w: &Vec<String>| !w.is_empty());
    let stripped = |mut words: Vec<String>| {
        let start = words.iter().position(|word| word == "cargo").unwrap();
        assert_eq!(words[start + 1], "xtask", "{words:?}");
        words.drain(start..start + 2);
        words
    };
    all.map(stripped).collect()
}

/// Follows a step that changes a file.
pub fn edit(repository: &Repository, step: &Step) {
    let (verb, rest) = step.directive.split_once(": ").unwrap();
    match verb {
        "write" => repository.write(rest, &step.block),
        "append" => repository.write(rest, &(repository.read(rest) + &step.block)),
        "shown" => {
            let text = repository.read(rest);
            assert!(text.contains(step.block.trim()), "{rest} has no {}", step.block);
        }
        "replace" => {
            let mut parts = rest.splitn(2, ' ');
            let (file, change) = (parts.next().unwrap(), parts.next().unwrap());
            let (old, new) = change.trim_matches('"').split_once("\" with \"").unwrap();
            let text = repository.read(file);
            assert_eq!(text.matches(old).count(), 1, "`{old}` in {file}");
            repository.write(file, &text.replace(old, new));
        }
        "insert" => {
            let (file, place) = rest.split_once(' ').unwrap();
            let (side, needle) = place.split_once(' ').unwrap();
            let needle = needle.trim_matches('"');
            let text = repository.read(file);
            // A line that equals the text is preferred to lines that contain it.
            let places = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
                (text.lines().enumerate()).filter(|(_, l)| fits(l)).map(|(i, _)| i).collect()
            };
            let whole = places(&|l| l == needle);
            let found = if whole.is_empty() { places(&|l| l.contains(needle)) } else { whole };
            assert_eq!(found.len(), 1, "`{needle}` in {file}");
            let at = found[0] + usize::from(side == "after");
            let mut lines: Vec<&str> = text.lines().collect();
            let block: Vec<&str> = step.block.lines().collect();
            lines.splice(at..at, block);
            repository.write(file, &(lines.join("\n") + "\n"));
        }
        other => panic!("unknown directive {other}"),
    }
}
