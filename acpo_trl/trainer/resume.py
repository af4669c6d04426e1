"""Exact resume: a run that was interrupted continues as if it had not been.

Transformers restores weights, optimizer and random states. What TRL adds on top lives only in memory: the rollouts of
the current generation window, the count of micro-steps that says where in the window the run is, metrics not yet
logged, and the order of prompts from the second epoch on.
"""

import logging
import os
from typing import Any

import torch
from torch.utils.data import Sampler
from trl import GRPOTrainer

logger = logging.getLogger(__name__)


class ExactResume(GRPOTrainer):
    """GRPOTrainer whose checkpoints also hold the generation window, so that k + k steps equal 2k."""

    def _window_path(self, checkpoint: str) -> str:
        return os.path.join(checkpoint, f"generation_window_{self.accelerator.process_index}.pt")

    def _window_shape(self) -> dict[str, int]:
        """Settings under which a stored window can be continued."""
        return {
            "steps_per_generation": self.args.steps_per_generation,
            "num_iterations": self.num_iterations,
            "gradient_accumulation_steps": self.args.gradient_accumulation_steps,
            "per_device_train_batch_size": self.args.per_device_train_batch_size,
            "num_generations": self.num_generations,
            "num_processes": self.accelerator.num_processes,
        }

    def _window_is_open(self) -> bool:
        return self._step % (self.args.steps_per_generation * self.num_iterations) != 0

    # Transformers calls these two on every rank, before it writes trainer_state.json and before the first resumed step.
    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        window = {
            "shape": self._window_shape(),
            "step": self._step,
            "rollouts": self._buffered_inputs if self._window_is_open() else None,
            "metrics": dict(self._metrics["train"]),
            "total_train_tokens": self._total_train_tokens,
        }
        torch.save(window, self._window_path(output_dir))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        super()._load_rng_state(checkpoint)
        if checkpoint is not None:
            self._restore_window(checkpoint)

    def _load_saved(self, path: str) -> dict[str, Any]:
        """What `torch.save` wrote, on the device of this process."""
        device = self.accelerator.device  # of two processes on a CPU it is cpu:0, a name that torch.load does not know
        return torch.load(path, map_location="cpu" if device.type == "cpu" else device, weights_only=True)

    def _restore_window(self, checkpoint: str) -> None:
        path = self._window_path(checkpoint)
        window: dict[str, Any] = {}
        if os.path.isfile(path):
            window = self._load_saved(path)
        if window.get("shape") != self._window_shape():
            # Keep the rhythm of generation in line with the data, which transformers fast-forwards by steps.
            self._step = self.state.global_step * self.args.gradient_accumulation_steps
            if self._window_is_open():
                logger.warning(
                    "%s holds no generation window for the current batch settings: its rollouts are generated anew, so "
                    "the run continues soundly but not bit for bit.",
                    checkpoint,
                )
            return
        self._step = window["step"]
        self._buffered_inputs = window["rollouts"]
        self._metrics["train"].update(window["metrics"])
        self._total_train_tokens = window["total_train_tokens"]

    def _get_train_sampler(self, dataset: Any = None) -> Sampler:
        self._train_sampler = super()._get_train_sampler(dataset)
        return self._train_sampler

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        sampler = getattr(self, "_train_sampler", None)
        if checkpoint is None or sampler is None or not self.shuffle_dataset:
            return
        # The sampler draws one permutation per epoch from its own generator, which starts anew in a new process.
        for _ in range(int(self.state.epoch or 0)):
            torch.randperm(sampler.num_samples, generator=sampler.generator)
