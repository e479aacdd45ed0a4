#!/usr/bin/env bash
# Builds the core as a static library without the standard library, links it into a C program, runs it.
set -euo pipefail
cd "$(dirname "$0")"
cargo build --locked --release --quiet
cc -o target/check main.c target/release/libfastgame_no_std.a
if nm --undefined-only target/release/libfastgame_no_std.a 2>/dev/null | grep -q 'getrandom\|pthread\|malloc'; then
    echo "no-std: the core asks for the operating system" >&2
    exit 1
fi
target/check
echo "no-std: the core links and runs without the standard library"
