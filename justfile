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

# What only a GPU can finish, in order of value; what does not fit into the time resumes with the next call.
gpu time="9m" *arguments:
    cargo xtask reproduce --device wgpu --profile paper --budget {{time}} --record {{arguments}} \
        'rethinking/fig10/{peppers,house-repeats}' trading/table1/simple-centers 'fourier-features/table1/{natural,text}' \
        trading/table2/simple trading/table3/simple trading/table4/simple rethinking/fig5-2d 'trading/fig{8,10,11,12}/simple'

# A reader of files under libFuzzer, for so many seconds (needs cargo-fuzz and a nightly compiler; targets: docs/TRUST.md).
fuzz target seconds="1200":
    fuzz/run {{target}} {{seconds}}

# Licenses and advisories of the dependencies (needs cargo-deny).
deny:
    cargo deny check
    cargo deny --manifest-path fuzz/Cargo.toml check
