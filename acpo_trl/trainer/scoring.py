"""Rewards of completions and turns, by kind, and the advantages of turns that follow from them."""

from typing import Any

import torch
from torch import Tensor

from ..advantages import TurnRewards
from ..rewards.declare import declaration_of
from ..turns import spread_turns
from .completions import align_extra_columns, keep_extra_columns
from .environment import EnvironmentReward, judge_turns
from .findings import KnownTurns
from .guard import GuardedReward, guard
from .inputs import check_rewards, check_turn_advantages
from .keys import turn_keys
from .kinds import RewardTable, kind_metrics
from .turn_choices import TurnCredit
from .turn_hint import TurnHint
from .turn_metrics import is_valid, turn_metrics


class ScoredTurns(KnownTurns):
    """GRPOTrainer that keeps rewards apart by kind and turn, and can give each turn an advantage of its own."""

    reward_funcs: list[Any]
    reward_table: RewardTable
    """What the reward functions said about the last generation batch, over all processes."""
    turn_scores: list[dict[int, list[float | None]]]
    """For each local completion of the last generation batch what functions for turns said, by their place."""
    turn_hint: TurnHint

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
        by_function = {
            index: function.turn_scores
            for index, function in enumerate(self.reward_funcs)
            if declaration_of(function).level == "turn"
        }
        self.turn_scores = [
            {index: scores[row] for index, scores in by_function.items()} for row in range(len(self.recorded.rows))
        ]
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
        if self.turn_credit is not None:
            batch["advantages"] = self._credit_turns(batch, self.turn_credit)
        return batch

    @property
    def _group_size(self) -> int:
        return self.num_generations if self.model.training else self.num_generations_eval

    def _credit_turns(self, batch: dict[str, Any], credit_of: TurnCredit) -> Tensor:
        """(B, T) advantages of this process, from the rewards of all."""
        turns, local = self._turns(), self._local_rows
        if self.model.training:
            self.turn_hint.measure(turns.num_turns.tolist())
        turns = self._find_out(turns, batch, credit_of.needs)
        scores = {
            index: self._gather(
                [row[index] for row in self.turn_scores], turns.values.size(1), torch.nan, torch.float32
            )
            for index, declaration in enumerate(self.reward_declarations)
            if declaration.level == "turn"
        }
        tables = self.reward_table.by_turn(scores, turns)
        credit = credit_of.combine(tables, self.reward_table.weights_by_kind())
        check_turn_advantages(credit.advantages, turns, self.args.turn_estimator, credit_of.needs)
        self._log({f"turns/advantage_share/{kind}": share for kind, share in credit.shares.items()})
        if credit.targets is not None and self.critic is not None:
            self._teach_turns(turns, batch, credit.targets)
        if "tokens" in credit_of.needs:
            return credit.advantages[local, : batch["turn_ids"].size(1)]
        return spread_turns(credit.advantages[local], batch["turn_ids"])

    def _turns(self) -> TurnRewards:
        """What is known of the turns of all processes without asking anybody, but their rewards."""
        counts = torch.tensor(self.recorded.num_turns, device=self.accelerator.device)
        num_turns = self.accelerator.gather(counts)
        width = max(int(num_turns.max()), 1)
        states, actions = turn_keys(self.recorded.rows, self.recorded.num_turns, self.state_keys)
        sizes = [[turn.span[1] - turn.span[0] for turn in views] for views in self.recorded.views]
        valid = [
            [is_valid(turn, judged) for turn, judged in zip(*row, strict=True)]
            for row in zip(self.recorded.views, self._judged, strict=True)
        ]
        is_cut = [
            is_truncated or reason in ("tokens", "turns")
            for is_truncated, reason in zip(self.recorded.is_truncated, self.recorded.stop_reasons, strict=True)
        ]
        return TurnRewards(
            torch.full((len(num_turns), width), torch.nan, device=counts.device),
            num_turns,
            self._group_size,
            self._gather(states, width, -1, torch.long),
            self._gather(actions, width, -1, torch.long),
            num_tokens=self._gather(sizes, width, 0, torch.long),
            is_valid=self._gather(valid, width, False, torch.bool),
            is_truncated=self.accelerator.gather(torch.tensor(is_cut, device=counts.device)),
        )

    def _log(self, metrics: dict[str, float]) -> None:
        mode = "train" if self.model.training else "eval"
        for name, value in metrics.items():
            self._metrics[mode][name].append(value)
