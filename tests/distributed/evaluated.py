"""Evaluate a tiny model, in as many processes as were launched: evaluated.py FILE FOLDER."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from accelerate import PartialState
from tiny import byte_tokenizer, qwen2

from acpo_trl.evaluation.benchmarks import Benchmark, Source
from acpo_trl.evaluation.evaluate import EvalOptions, evaluate, prepare
from acpo_trl.evaluation.generate import Sampling, TransformersGenerator

torch.set_num_threads(1)
file, folder = sys.argv[1:]
options = EvalOptions(num_samples=3, batch_size=2, sampling=Sampling(max_new_tokens=6, temperature=1.0))
benchmark = Benchmark("sums", source=Source(file), template="{problem}")
evaluation = prepare([benchmark], byte_tokenizer(), options, {"name": "tiny"})
state = PartialState(cpu=True)
generator = TransformersGenerator(qwen2(seed=3).eval(), byte_tokenizer(), options.sampling)
results = evaluate(evaluation, generator, Path(folder), state)
assert (results is not None) == state.is_main_process
state.destroy_process_group()
