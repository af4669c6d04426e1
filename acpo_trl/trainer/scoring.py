"""Rewards of completions and turns, by kind, and the advantages of turns that follow from them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..advantages import TurnRewards
from ..rewards.declare import declaration_of
from ..turns import spread_turns
from .choices import TurnAdvantages
from .completions import align_extra_columns, keep_extra_columns
from .environment import EnvironmentReward, judge_turns
from .guard import GuardedReward, guard
from .inputs import check_rewards, check_turn_advantages
from .keys import turn_keys
from .kinds import RewardTable, kind_metrics
from .recording import RecordedRollouts
from .turn_metrics import turn_metrics


class ScoredTurns(RecordedRollouts):
    """GRPOTrainer that keeps rewards apart by kind and turn, and can give each turn an advantage of its own."""

    reward_funcs: list[Any]
    reward_table: RewardTable
    """What the reward functions said about the last generation batch, over all processes."""
    state_keys: list[list[Any]]
    """Of each local completion of the last generation batch and each of its turns; None where it has no name."""
    turn_advantages: TurnAdvantages | None = None
    """Advantages of turns from rewards by kind; None: TRL's advantages of whole completions."""

    def _guard_rewards(self, on_error: str, use_declared_weights: bool) -> None:
        names = self.reward_func_names
        self.reward_funcs = guard(self.reward_funcs, on_error)
        for index, function in enumerate(self.reward_funcs):
            if isinstance(function, GuardedReward) and names[index] == function.__wrapped__.__name__:
                names[index] = function.__name__
        self.reward_declarations = [declaration_of(function) for function in self.reward_funcs]
        if use_declared_weights:
            self.reward_weights = torch.tensor([declaration.weight for declaration in self.reward_declarations])

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Tensor:
        self._hand_out_turns()
        rewards = super()._calculate_rewards(*args, **kwargs)
        has_failed = torch.tensor([reason == "error" for reason in self.recorded.stop_reasons], device=rewards.device)
        rewards[self.accelerator.gather(has_failed)] = torch.nan
        check_rewards(rewards, self.reward_func_names)
        kinds = [declaration.kind for declaration in self.reward_declarations]
        self.reward_table = RewardTable(rewards, self.reward_weights.to(rewards.device), kinds)
        keep_extra_columns(self, len(self.recorded.rows))
        return rewards

    def _hand_out_turns(self) -> None:
        kinds = [reward.kind for reward in self._environment_rewards]
        self._judged, self.state_keys = judge_turns(self.recorded, self.environments, kinds)
        for function in self.reward_funcs:
            if isinstance(function, GuardedReward):
                function.views = self.recorded.views
        for reward in self._environment_rewards:
            reward.judged = self._judged

    @property
    def _environment_rewards(self) -> list[EnvironmentReward]:
        functions = [getattr(function, "function", None) for function in self.reward_funcs]
        return [function for function in functions if isinstance(function, EnvironmentReward)]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        align_extra_columns(self)
        self._log(kind_metrics(self.reward_table, self._group_size))
        if self.tools or self.rollout_func is not None:
            self._log(turn_metrics(self.recorded, self._judged))
        if self.turn_advantages is not None:
            batch["advantages"] = spread_turns(self._advantages_of_turns(self.turn_advantages), batch["turn_ids"])
        return batch

    @property
    def _group_size(self) -> int:
        return self.num_generations if self.model.training else self.num_generations_eval

    def _advantages_of_turns(self, turn_advantages: TurnAdvantages) -> Tensor:
        """(B, K) of this process, from the rewards of all."""
        num_local = len(self.recorded.rows)
        turns = self._turns()
        scores = {
            index: self._gather(function.turn_scores, turns.values.size(1), torch.nan, torch.float32)
            for index, function in enumerate(self.reward_funcs)
            if declaration_of(function).level == "turn"
        }
        tables = self.reward_table.by_turn(scores, turns)
        advantages, shares = turn_advantages(tables, self.reward_table.weights_by_kind())
        check_turn_advantages(advantages, turns, self.args.turn_estimator)
        self._log({f"turns/advantage_share/{kind}": share for kind, share in shares.items()})
        start = self.accelerator.process_index * num_local
        return advantages[start : start + num_local]

    def _turns(self) -> TurnRewards:
        """All about the turns of all processes but their rewards."""
        counts = torch.tensor(self.recorded.num_turns, device=self.accelerator.device)
        num_turns = self.accelerator.gather(counts)
        width = max(int(num_turns.max()), 1)
        states, actions = turn_keys(self.recorded.rows, self.recorded.num_turns, self.state_keys)
        return TurnRewards(
            torch.full((len(num_turns), width), torch.nan, device=counts.device),
            num_turns,
            self._group_size,
            self._gather(states, width, -1, torch.long),
            self._gather(actions, width, -1, torch.long),
        )

    def _gather(self, rows: Sequence[Sequence[Any]], width: int, missing: float, dtype: torch.dtype) -> Tensor:
        """(N, width) over all processes from lists of numbers, or None, of this one."""
        local = torch.full((len(rows), width), missing, dtype=dtype, device=self.accelerator.device)
        for row, values in zip(local, rows, strict=True):
            row[: len(values)] = torch.tensor([missing if v is None else v for v in values], dtype=dtype)
        return self.accelerator.gather(local)

    def _log(self, metrics: dict[str, float]) -> None:
        mode = "train" if self.model.training else "eval"
        for name, value in metrics.items():
            self._metrics[mode][name].append(value)
