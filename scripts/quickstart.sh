#!/usr/bin/env bash
# From a fresh clone to a model that got better, on a CPU: set up, build a small model, train it with ACPO, report.
# `--multi-turn` trains an agent that looks things up over several turns instead of a model that adds.
# Other options are those of scripts/train.py: `bash scripts/quickstart.sh --seed 1 --credit_rule uniform`.
# Environment variables for the installation: see scripts/setup_env.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

multi_turn=""
for option in "$@"; do
    shift
    if [ "$option" = --multi-turn ]; then multi_turn=--multi-turn; else set -- "$@" "$option"; fi
done

stage() { printf '\n== %s (%s s since the start)\n' "$1" "$SECONDS"; }

stage "1/4 Environment"
. scripts/setup_env.sh plot
export HF_HUB_OFFLINE=1                          # everything is made here
export PYTHONWARNINGS=ignore::FutureWarning      # libraries' notes to each other
export OMP_WAIT_POLICY=PASSIVE                   # threads without work leave the core to the answer checkers

stage "2/4 Model and problems"
python -m acpo_trl.quickstart build $multi_turn "$@"

stage "3/4 Training"
accelerate launch --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no \
    scripts/train.py --config "configs/quickstart${multi_turn:+_multi_turn}.yaml" "$@"

stage "4/4 Held-out problems"
python -m acpo_trl.quickstart report $multi_turn "$@"
printf '\nFinished in %s s.\n' "$SECONDS"
