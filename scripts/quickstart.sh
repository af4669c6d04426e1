#!/usr/bin/env bash
# From a fresh clone to a model that got better, on a CPU: set up, build a small model, train it with ACPO, report.
# Options are those of scripts/train.py: `bash scripts/quickstart.sh --seed 1 --credit_rule uniform`.
# Environment variables for the installation: see scripts/setup_env.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

stage() { printf '\n== %s (%s s since the start)\n' "$1" "$SECONDS"; }

stage "1/4 Environment"
. scripts/setup_env.sh plot
export HF_HUB_OFFLINE=1                          # everything is made here
export PYTHONWARNINGS=ignore::FutureWarning      # libraries' notes to each other
export OMP_WAIT_POLICY=PASSIVE                   # threads without work leave the core to the answer checkers

stage "2/4 Model and problems"
python -m acpo_trl.quickstart build "$@"

stage "3/4 Training"
accelerate launch --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no \
    scripts/train.py --config configs/quickstart.yaml "$@"

stage "4/4 Held-out accuracy"
python -m acpo_trl.quickstart report "$@"
printf '\nFinished in %s s.\n' "$SECONDS"
