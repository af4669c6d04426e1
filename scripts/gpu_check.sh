#!/usr/bin/env bash
# Checks that need GPUs: gpu_check.sh [cuda] [vllm] [ddp] [fsdp2] [zero2] [zero3], and each of them but zero2 with agent_
# in front for rollouts of several turns; critics_cuda, critics_ddp, critics_fsdp2, critics_zero3 for estimators that ask
# a critic or for beliefs; evaluate_cuda, evaluate_vllm; all of them without arguments.
# Needs an environment with acpo-trl installed (extras vllm and deepspeed for those checks) and no network: the model is
# the embedded one of the quick start. Each check trains a few steps or compares numbers and stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."
export HF_HUB_OFFLINE=1
out=outputs/gpu_check
config=configs/quickstart.yaml

train() { # train NAME [launch arguments --] [script arguments]
    local name=$1
    shift
    local launch=()
    while [ $# -gt 0 ] && [ "$1" != "--" ]; do
        launch+=("$1")
        shift
    done
    [ $# -gt 0 ] && shift
    echo "== $name"
    accelerate launch "${launch[@]}" scripts/train.py --config "$config" --use_cpu false --bf16 true \
        --max_steps 3 --logging_steps 1 --save_strategy no --output_dir "$out/$name" "$@"
}

gpus=$(python -c "import torch; print(torch.cuda.device_count())")
[ "$gpus" -gt 0 ] || { echo "no CUDA device is visible to PyTorch; these checks need one" >&2; exit 1; }
python -m acpo_trl.quickstart build
python -m acpo_trl.quickstart build --multi-turn
all="cuda vllm ddp fsdp2 zero2 zero3 agent_cuda agent_vllm agent_ddp agent_fsdp2 agent_zero3"
all="$all critics_cuda critics_ddp critics_fsdp2 critics_zero3 evaluate_cuda evaluate_vllm"
for check in "${@:-$all}"; do
    for name in $check; do
        config=configs/quickstart.yaml
        [ "${name#agent_}" = "$name" ] || config=configs/quickstart_multi_turn.yaml
        [ "${name#critics_}" = "$name" ] || config=configs/quickstart_multi_turn.yaml
        case $name in
        cuda)
            python scripts/gpu_check.py --dtype float32
            python scripts/gpu_check.py --dtype bfloat16
            train cuda --num_processes 1
            ;;
        agent_cuda) train "$name" --num_processes 1 ;;
        vllm | agent_vllm) train "$name" --num_processes 1 -- --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.3 ;;
        critics_*)  # a critic of turns, one of tokens, a progress estimator, beliefs
            where=${name#critics_}
            for method in turn_ppo ppo spa_rl igpo; do
                method_config="configs/methods/turns_$method.yaml"
                if [ "$where" = cuda ]; then
                    train "${name}_$method" --num_processes 1 -- --config "$method_config"
                else
                    train "${name}_$method" --config_file "configs/accelerate/$where.yaml" --num_processes "$gpus" -- --config "$method_config"
                fi
            done
            ;;
        evaluate_cuda | evaluate_vllm)
            backend=()
            [ "$name" = evaluate_cuda ] || backend=(--use_vllm true --vllm_options '{"gpu_memory_utilization": 0.3}')
            rm -rf "${out:?}/$name"
            acpo-trl evaluate --model outputs/quickstart/start/model --data gsm8k=outputs/quickstart/start/test.jsonl \
                --max_new_tokens 56 --num_samples 4 --output_dir "$out/$name" "${backend[@]}"
            ;;
        ddp | fsdp2 | zero2 | zero3 | agent_ddp | agent_fsdp2 | agent_zero3)
            train "$name" --config_file "configs/accelerate/${name#agent_}.yaml" --num_processes "$gpus"
            ;;
        *) echo "unknown check $name; expected some of $all" >&2; exit 1 ;;
        esac
    done
done
echo "all checks passed"
