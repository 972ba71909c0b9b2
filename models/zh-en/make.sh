#!/usr/bin/env bash
# From the corpus of data.py to the small model: a teacher, what it makes of the sources, and who learns from that.
#
#     models/zh-en/make.sh CORPUS RUNS [--set A.B=C …]
#
# Started again, it goes on where it was; settings are for both models. The teacher translates for an hour at most, or
# for SECONDS_TO_TRANSLATE; what is left then stands there as it was.
set -euo pipefail

corpus=$1 runs=$2
shift 2
here=$(dirname "$0")
regard() { python3 -m regard "$@"; }

learn() { # CONFIG RUN SETTINGS…
    local config=$1 run=$2
    shift 2
    regard train "$corpus"/train.{zh,en}.xz --valid "$corpus"/valid.{zh,en} --test "$corpus"/test.{zh,en} \
        --config "$here/$config" --out "$run" "$@"
}

learn teacher.toml "$runs/teacher" "$@"
if [ ! -e "$runs/small/data/key" ]; then
    rm -rf "$runs/diversified"
    python3 "$here/diversify.py" "$runs/teacher" "$runs/teacher/data" "$runs/diversified" --seconds "${SECONDS_TO_TRANSLATE:-3600}"
    mkdir -p "$runs/small"
    mv "$runs/diversified" "$runs/small/data"
fi
learn small.toml "$runs/small" "$@"
