"""What goes into the trainer and into its loss, checked where a mistake is cheap."""

from collections.abc import Sequence, Set
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from trl import GRPOConfig

from ..advantages import TurnRewards

NONE: Set[str] = frozenset()


class CreditedInputs(dict[str, Any]):
    """A copy of a batch that knows whether the loss read the advantages after credit was given.

    TRL replays its buffered batch, so credit goes into a copy; and a TRL that read the advantages before its forward
    would train without credit and say nothing.
    """

    def __init__(self, batch: dict[str, Any]) -> None:
        super().__init__(batch)
        self.is_credited = False
        self._reads: list[bool] = []

    def __getitem__(self, key: str) -> Any:
        if key == "advantages":
            self._reads.append(self.is_credited)
        return super().__getitem__(key)

    def uncredited_advantages(self) -> Tensor:
        """(B,) or (B, T), as the rollout left them."""
        return super().__getitem__("advantages")

    def give(self, advantages: Tensor) -> None:
        """Set the (B,) or (B, T) advantages that the loss has to use."""
        self["advantages"] = advantages
        self.is_credited = True

    def check_used(self) -> None:
        """Raise RuntimeError unless every read of the advantages, at least one, came after credit."""
        if not self._reads or not all(self._reads):
            seen = "before credit was given" if self._reads else "never"
            raise RuntimeError(
                f"Credit did not reach the loss: the loss read the advantages {seen}. acpo_trl expects TRL's loss to "
                "run its forward first and to read `advantages` afterwards; use a tested TRL version "
                "(docs/reference/dependencies.md) or check an own `_compute_loss` or "
                "`_get_per_token_logps_and_entropies`."
            )


def check_dataset(dataset: Any, name: str, needs_prompts: bool) -> None:
    """Raise ValueError for a dataset without rows or, unless an environment brings the prompts, without `prompt`."""
    columns = getattr(dataset, "column_names", None)
    if needs_prompts and isinstance(columns, list) and "prompt" not in columns:
        raise ValueError(
            f"{name} has the columns {columns}: the trainer reads prompts from 'prompt'; expected a column of that "
            "name; rename yours with dataset.rename_column(...)."
        )
    if hasattr(dataset, "__len__") and len(dataset) == 0:
        raise ValueError(f"{name} is empty: there is nothing to train on; expected at least one row.")


def check_reward_funcs(reward_funcs: Any, dataset: Any) -> None:
    """Let each reward that has a method `check_columns` refuse a dataset that lacks its columns."""
    columns = getattr(dataset, "column_names", None)
    for function in reward_funcs if isinstance(reward_funcs, list) else [reward_funcs]:
        if isinstance(columns, list) and hasattr(function, "check_columns"):
            function.check_columns(columns)


def check_enough_prompts(dataset: Any, args: GRPOConfig) -> None:
    """Raise ValueError for a dataset that does not fill one generation batch; TRL would stop after zero steps."""
    needed = args.generation_batch_size // args.num_generations
    if len(dataset) < needed:
        raise ValueError(
            f"train_dataset holds {len(dataset)} prompts: one generation batch needs {needed} (generation_batch_size "
            f"{args.generation_batch_size} / num_generations {args.num_generations}), so no step would be trained; "
            "add prompts, or lower per_device_train_batch_size or gradient_accumulation_steps."
        )


def check_rewards(rewards: Tensor, names: Sequence[str]) -> None:
    """Raise ValueError for an infinite reward in the (N, functions) table; NaN means unscored."""
    infinite = rewards.isinf().nonzero()
    if len(infinite):
        row, column = infinite[0].tolist()
        raise ValueError(
            f"reward function {names[column]!r} returned {rewards[row, column].item()} for completion {row}: its whole "
            "group would silently get no advantage; expected finite numbers, or None where it cannot tell."
        )


def check_turn_advantages(advantages: Any, turns: TurnRewards, estimator: str | None, needs: Set[str] = NONE) -> None:
    """Raise ValueError unless there is one finite advantage for each turn or, from one that needs `tokens`, token."""
    is_of_tokens = turns.tokens is not None and "tokens" in needs
    exists = turns.tokens.turn_ids >= 0 if turns.tokens is not None and is_of_tokens else turns.exists
    what = "token" if is_of_tokens else "turn"
    shape = tuple(getattr(advantages, "shape", ()))
    if shape != exists.shape:
        given = f"advantages of shape {shape}" if shape else repr(advantages)[:200]
        raise ValueError(
            f"turn_estimator {estimator!r} gave {given}; expected the shape {tuple(exists.shape)}, one advantage for "
            f"each completion and {what}."
        )
    broken = (~advantages.isfinite() & exists).nonzero()
    if len(broken):
        row, place = broken[0].tolist()
        raise ValueError(
            f"turn_estimator {estimator!r} gave {advantages[row, place].item()} for {what} {place} of completion "
            f"{row}: it would destroy the model; "
            "expected finite numbers, 0 where a turn is unscored (NaN in turns.values)."
        )


def check_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise ValueError for a model that nothing would update or a tokenizer that cannot pad."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(
            "The model has no trainable parameter: training would run and change nothing; expected at least one with "
            "requires_grad; load an adapter with is_trainable=True or unfreeze the model."
        )
    if tokenizer.pad_token_id is None:
        raise ValueError(
            "The tokenizer has neither a pad nor an eos token: completions of different length cannot be padded; "
            "set tokenizer.pad_token."
        )
