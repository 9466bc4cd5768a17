//! Commands that are printed to be copied into a shell.

/// A text as one word of a POSIX shell command, quoted if necessary. Every path, name and argument in a
/// printed command goes through here: a name such as `$(reboot)` must not run when its command is repeated.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a word that a shell reads as something else.
    #[test]
    #[cfg(unix)]
    fn a_shell_reads_back_what_was_quoted() {
        for word in [
            "",
            "a b",
            "it's ''",
            "$(reboot) `x` $HOME",
            "a;b&c|d<e>",
            "*",
            "~",
            "#x",
            "\\\"!x",
            "a\nb",
            "-n",
            "{a,b}",
            "ü→ %PATH%",
        ] {
            let script = format!("printf '%s|' {}", quoted(word));
            let output = std::process::Command::new("sh").arg("-c").arg(&script).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{word}|"), "{script}");
        }
        assert_eq!(quoted("--out=a/b.c"), "--out=a/b.c");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
