# Shorthands; `just` without arguments lists them. Everything works without just: see README.md.

default:
    @just --list

# Run what has no record yet and render the report of this machine.
reproduce *arguments:
    cargo xtask reproduce {{arguments}}

# Render report/ from the reference records.
report *arguments:
    cargo xtask report {{arguments}}

# Report and documents as a site in out/book.
book *arguments:
    cargo xtask book {{arguments}}

# All tests.
test *arguments:
    cargo xtask test {{arguments}}

# Formatting, lints, freshness of the report.
check:
    cargo xtask check

# Speed against PyTorch and JAX.
bench *arguments:
    cargo xtask bench {{arguments}}

# A reader of files under libFuzzer, for so many seconds (needs cargo-fuzz and a nightly compiler; targets: docs/TRUST.md).
fuzz target seconds="1200":
    fuzz/run {{target}} {{seconds}}

# Licenses and advisories of the dependencies (needs cargo-deny).
deny:
    cargo deny check
    cargo deny --manifest-path fuzz/Cargo.toml check
