#!/usr/bin/env bash
# Fuzzes each target for FUZZ_SECONDS (600) with libFuzzer; stops at the first input that fails.
#
#   fuzz/run.sh [TARGET...]                all targets by default
#   fuzz/run.sh --minimise [TARGET...]     afterwards: the fewest inputs with all coverage, from build/fuzz to fuzz/seeds
#
# It does what cargo-fuzz does, without having to install it and on the stable toolchain: the coverage that libFuzzer is guided
# by comes from flags of the compiler. No sanitiser of memory: the crates forbid unsafe code.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${FUZZ_SECONDS:-600}
# Longer inputs are slower and say no more; kept inputs are to be small.
declare -A longest=([calls]=1024 [decode_raw]=4096)
minimise=false
if [[ "${1:-}" == --minimise ]]; then
    minimise=true
    shift
fi
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(calls decode_raw)

# With a target named, build scripts and macros are not instrumented.
host=$(rustc -vV | sed -n 's/^host: //p')
CARGO_ENCODED_RUSTFLAGS=$(printf '%s\x1f' \
    --cfg=fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares | sed 's/\x1f$//')
export CARGO_ENCODED_RUSTFLAGS
cargo build --locked --release --quiet --target "$host"
binaries="${CARGO_TARGET_DIR:-target}/$host/release"

for target in "${targets[@]}"; do
    corpus="../build/fuzz/$target"
    mkdir -p "$corpus" artifacts "seeds/$target"
    if $minimise; then
        # Those with a name that a person gave them stay. Put in place at the end: nothing is lost if this is stopped.
        kept="$corpus.kept"
        rm -rf "$kept" && mkdir -p "$kept"
        find "seeds/$target" -type f -regextype posix-extended -not -regex '.*/[0-9a-f]{40}' -exec cp -t "$kept" {} +
        "$binaries/$target" -set_cover_merge=1 -use_counters=0 -max_len="${longest[$target]:-4096}" \
            "$kept" "seeds/$target" "$corpus"
        rm -rf "seeds/$target" && mv "$kept" "seeds/$target"
        continue
    fi
    "$binaries/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -max_len="${longest[$target]:-4096}" -len_control=0 -artifact_prefix="artifacts/$target-" "$corpus" "seeds/$target"
done
