"""What estimators want to know, found out for the turns of all processes; and what their critic learns from it."""

from collections.abc import Sequence, Set
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from ..advantages import TokenTable, TurnRewards
from .beliefs import beliefs_of
from .learning import LearnedCritic, SecondLook
from .turn_choices import CRITIC_NEEDS, BeliefOptions, options_of


class KnownTurns(LearnedCritic):
    """GRPOTrainer that finds out about its turns what an estimator needs."""

    state_keys: list[list[Any]]
    """Of each local completion of the last generation batch and each of its turns; None where it has no name."""
    _values_said: Tensor

    @property
    def _local_rows(self) -> slice:
        """Which rows of a table over all processes are this one's."""
        start = self.accelerator.process_index * len(self.recorded.rows)
        return slice(start, start + len(self.recorded.rows))

    def _gather(self, rows: Sequence[Sequence[Any]], width: int, missing: float, dtype: torch.dtype) -> Tensor:
        """(N, width) over all processes from lists of numbers, or None, of this one."""
        local = torch.full((len(rows), width), missing, dtype=dtype, device=self.accelerator.device)
        for row, values in zip(local, rows, strict=True):
            row[: len(values)] = torch.tensor([missing if v is None else v for v in values], dtype=dtype)
        return self.accelerator.gather(local)

    def _find_out(self, turns: TurnRewards, batch: dict[str, Any], needs: Set[str]) -> TurnRewards:
        """The (N, K) table with what is needed, names of `acpo_trl.advantages.NEEDS`, for the generation batch."""
        width = turns.values.size(1)
        if "observations" in needs:
            turns = turns._replace(observations=gather_object(self._observations()))
        if "beliefs" in needs:
            beliefs = beliefs_of(self, options_of(self.args, "belief_options", BeliefOptions))
            turns = turns._replace(beliefs=self._gather(beliefs, width, torch.nan, torch.float32))
        if not needs & {"tokens", *CRITIC_NEEDS}:
            return turns
        look = self._look_again(batch)
        if "tokens" in needs:
            turns = turns._replace(tokens=self._tokens(batch, look))
        return turns if look.values is None else self._ask_critic(turns, batch, look.values, needs)

    def _ask_critic(self, turns: TurnRewards, batch: dict[str, Any], values: Tensor, needs: Set[str]) -> TurnRewards:
        """The table with what the critic said of the (B, T + 1) states of this process."""
        self._values_said = values
        starts, ends = self._positions(turns.values.size(1))
        length = batch["completion_mask"].sum(dim=1, keepdim=True)
        turns = turns._replace(end_values=self.accelerator.gather(values.gather(1, length).squeeze(1)))
        if "state_values" in needs:
            turns = turns._replace(state_values=self.accelerator.gather(values.gather(1, starts)))
        if "contributions" in needs:
            turns = turns._replace(contributions=self.accelerator.gather(values.gather(1, ends)))
        return turns

    def _teach_turns(self, turns: TurnRewards, batch: dict[str, Any], targets: Tensor) -> None:
        """Lay the critic's lessons into the batch, and log how well it foretold them.

        Args:
            turns: (N, K), with what the critic said.
            batch: the generation batch of this process.
            targets: over all processes: (N, K) or (N, T) for its values, (N,) for the sum of its contributions.
        """
        own, lessons = targets[self._local_rows], torch.full_like(self._values_said, torch.nan)
        starts, ends = self._positions(turns.values.size(1))
        assert turns.num_tokens is not None
        rows, places = (turns.num_tokens[self._local_rows] > 0).nonzero(as_tuple=True)
        if turns.contributions is not None:
            self._log_critic(turns.contributions, targets)
            lessons[rows, ends[rows, places]] = own[rows]
        elif turns.state_values is not None:
            self._log_critic(turns.state_values, targets)
            lessons[rows, starts[rows, places]] = own[rows, places]
        elif turns.tokens is not None and turns.tokens.values is not None:
            self._log_critic(turns.tokens.values, targets)
            lessons[:, :-1] = own[:, : lessons.size(1) - 1]
        self._teach(batch, self._values_said, lessons)

    def _observations(self) -> list[list[str]]:
        """What was shown before each turn: the environment's name of the state, else the text since the turn before."""
        shown = []
        for row, views, names in zip(self.recorded.rows, self.recorded.views, self.state_keys, strict=True):
            texts = [self._tokenizer.decode(row.prompt_ids), *("\n".join(view.results) for view in views[:-1])]
            shown.append([text if name is None else str(name) for text, name in zip(texts, names, strict=False)])
        return shown

    def _positions(self, width: int) -> tuple[Tensor, Tensor]:
        """(B, K) each: the first token of a turn and the one behind its last; 0 for turns that do not exist."""
        table = torch.zeros(len(self.recorded.views), width, 2, dtype=torch.long, device=self.accelerator.device)
        for row, views in zip(table, self.recorded.views, strict=True):
            row[: len(views)] = torch.tensor([view.span for view in views], dtype=torch.long).view(-1, 2)
        return table[..., 0], table[..., 1]

    def _tokens(self, batch: dict[str, Any], look: SecondLook) -> TokenTable:
        def everywhere(local: Tensor, missing: float) -> Tensor:
            padded = self.accelerator.pad_across_processes(local, dim=1, pad_index=missing)
            return self.accelerator.gather(padded)

        turn_ids = everywhere(batch["turn_ids"], -1)
        entropies = everywhere(look.entropies.float(), 0.0)
        now = entropies[turn_ids >= 0].mean().item()
        if self.initial_entropy is None and self.model.training:
            self.initial_entropy = now
        initial = now if self.initial_entropy is None else self.initial_entropy
        values = None if look.values is None else everywhere(look.values[:, :-1], 0.0)
        return TokenTable(turn_ids, everywhere(batch["completion_ids"], 0), entropies, initial, values)
