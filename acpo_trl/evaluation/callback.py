"""Benchmarks in the course of a training run."""

import shutil
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import DistributedType, broadcast_object_list
from transformers import Trainer, TrainerCallback
from trl.models import unwrap_model_for_generation

from .evaluate import Evaluation, evaluate
from .generate import TransformersGenerator
from .results import BenchmarkResult

FOLDER = "benchmarks"


class BenchmarkCallback(TrainerCallback):
    """Evaluates every so many steps and at the end, all processes together, and logs `eval_<benchmark>/mean@k`.

    Trackers show it as `eval/<benchmark>/mean@k`. Samples and results of step n are in `benchmarks/step-n` of the
    output folder. The random state of the training stays as it is.

    Args:
        trainer: whose model is evaluated.
        evaluation: what `prepare` gave for its tokenizer.
        every: steps from one evaluation to the next.

    Raises:
        ValueError: `every` is no number of steps, or the weights are sharded so that one process alone cannot generate.
    """

    def __init__(self, trainer: Trainer, evaluation: Evaluation, every: int) -> None:
        if type(every) is not int or every < 1:
            raise ValueError(f"eval_every {every!r}: expected a number of steps, 1 or more.")
        check_sharding(trainer)
        self.trainer, self.evaluation, self.every = trainer, evaluation, every
        self.last_step: int | None = None

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step % self.every == 0:
            self._evaluate(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step != self.last_step:
            self._evaluate(state.global_step)

    def _evaluate(self, step: int) -> None:
        trainer, processes = self.trainer, PartialState()
        folder = Path(str(trainer.args.output_dir)) / FOLDER / f"step-{step}"
        if processes.is_main_process:
            shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed, whose weights may be others
        processes.wait_for_everyone()
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model:
            was_training = model.training
            model.eval()
            generator = TransformersGenerator(model, tokenizer, self.evaluation.options.sampling)
            results = evaluate(self.evaluation, generator, folder, processes)
            model.train(was_training)
        (logs,) = broadcast_object_list([metrics_of(results or [])])
        should_log = trainer.control.should_log
        # Not by the trainer's own `log`, which would end the window that its training metrics are averaged over.
        Trainer.log(trainer, logs)
        trainer.control.should_log = should_log  # the log of this step's training is still to come
        self.last_step = step


def metrics_of(results: list[BenchmarkResult]) -> dict[str, float]:
    """What is logged, without what is unknown."""
    found: dict[str, float | None] = {}
    for result in results:
        k = result.num_samples
        found |= {
            f"eval_{result.name}/mean@{k}": result.mean_at_k.mean if result.mean_at_k else None,
            f"eval_{result.name}/truncated": result.truncation_rate,
            f"eval_{result.name}/tokens": result.mean_tokens,
            f"eval_{result.name}/unscored": result.num_unscored,
        }
    return {name: value for name, value in found.items() if value is not None}


def check_sharding(trainer: Trainer) -> None:
    """Raise ValueError where processes could not generate each for itself."""
    kind = trainer.accelerator.distributed_type
    gathers = getattr(trainer.args, "ds3_gather_for_generation", True)
    is_split = kind == DistributedType.DEEPSPEED and trainer.accelerator.state.deepspeed_plugin.zero_stage == 3
    if kind == DistributedType.FSDP or (is_split and not gathers):
        raise ValueError(
            f"eval_benchmarks with weights sharded by {kind.value}: each process generates a share of its own, and "
            "needs the whole model for it; expected DDP, or ZeRO-3 with ds3_gather_for_generation; evaluate the saved "
            "model with `acpo-trl evaluate`."
        )
