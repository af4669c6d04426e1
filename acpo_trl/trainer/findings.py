"""What estimators want to know, found out for the turns of all processes; and what their critic learns from it."""

from collections.abc import Set
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from ..advantages import TokenTable, TurnRewards
from .beliefs import beliefs_of
from .turn_choices import CRITIC_NEEDS, BeliefOptions, options_of


def find_out(trainer: Any, turns: TurnRewards, batch: dict[str, Any], needs: Set[str]) -> TurnRewards:
    """The table with what estimators need to know.

    Args:
        trainer: a `ScoredTurns`.
        turns: (N, K), over all processes.
        batch: the generation batch of this process.
        needs: names of `acpo_trl.advantages.NEEDS`.
    """
    width = turns.values.size(1)
    if "observations" in needs:
        turns = turns._replace(observations=gather_object(observations_of(trainer)))
    if "beliefs" in needs:
        beliefs = beliefs_of(trainer, options_of(trainer.args, "belief_options", BeliefOptions))
        turns = turns._replace(beliefs=trainer._gather(beliefs, width, torch.nan, torch.float32))
    if not needs & {"tokens", *CRITIC_NEEDS}:
        return turns
    look = trainer._look_again(batch)
    values, gather = look.values, trainer.accelerator.gather
    if "tokens" in needs:
        turns = turns._replace(tokens=_tokens(trainer, batch, look.entropies, values))
    if values is None:
        return turns
    starts, ends = _positions(trainer, width)
    length = batch["completion_mask"].sum(dim=1, keepdim=True)
    turns = turns._replace(end_values=gather(values.gather(1, length).squeeze(1)))
    if "state_values" in needs:
        turns = turns._replace(state_values=gather(values.gather(1, starts)))
    if "contributions" in needs:
        turns = turns._replace(contributions=gather(values.gather(1, ends)))
    trainer.critic_reading = values
    return turns


def teach(trainer: Any, turns: TurnRewards, batch: dict[str, Any], targets: Tensor | None) -> None:
    """Lay the critic's lessons into the batch, and log how well it foretold them.

    Args:
        trainer: a `ScoredTurns`.
        turns: (N, K), with what the critic said.
        batch: the generation batch of this process.
        targets: over all processes: (N, K) or (N, T) for its values, (N,) for the sum of its contributions.
    """
    if targets is None or trainer.critic is None or turns.num_tokens is None:
        return
    said = turns.contributions if turns.contributions is not None else turns.state_values
    if turns.tokens is not None and turns.tokens.values is not None:
        said = turns.tokens.values
    trainer._log_critic(said, targets)
    own, values = targets[trainer._local_rows], trainer.critic_reading
    lessons = torch.full_like(values, torch.nan)
    if turns.contributions is None and turns.state_values is None:
        own = own[:, : values.size(1) - 1]
        lessons[:, : own.size(1)] = own
    else:
        starts, ends = _positions(trainer, turns.values.size(1))
        is_total = own.dim() == 1
        where = ends if is_total else starts
        has_tokens = turns.num_tokens[trainer._local_rows] > 0
        rows, places = has_tokens.nonzero(as_tuple=True)
        lessons[rows, where[rows, places]] = own[rows] if is_total else own[rows, places]
    trainer._teach(batch, values, lessons)


def observations_of(trainer: Any) -> list[list[str]]:
    """What was shown before each turn: the environment's name of the state, else the text since the turn before."""
    shown = []
    rows = zip(trainer.recorded.rows, trainer.recorded.views, trainer.state_keys, strict=True)
    for row, views, names in rows:
        texts = [trainer._tokenizer.decode(row.prompt_ids), *("\n".join(view.results) for view in views[:-1])]
        shown.append([text if name is None else str(name) for text, name in zip(texts, names, strict=False)])
    return shown


def _positions(trainer: Any, width: int) -> tuple[Tensor, Tensor]:
    """(B, K) each: the first token of a turn and the one behind its last; 0 for turns that do not exist."""
    spans = [[turn.span for turn in views] for views in trainer.recorded.views]
    table = torch.zeros(len(spans), width, 2, dtype=torch.long, device=trainer.accelerator.device)
    for row, turns in zip(table, spans, strict=True):
        row[: len(turns)] = torch.tensor(turns, dtype=torch.long).view(-1, 2)
    return table[..., 0], table[..., 1]


def _tokens(trainer: Any, batch: dict[str, Any], entropies: Tensor, values: Tensor | None) -> TokenTable:
    def everywhere(local: Tensor, missing: float) -> Tensor:
        padded = trainer.accelerator.pad_across_processes(local, dim=1, pad_index=missing)
        return trainer.accelerator.gather(padded)

    turn_ids = everywhere(batch["turn_ids"], -1)
    entropies = everywhere(entropies.float(), 0.0)
    if trainer.initial_entropy is None and trainer.model.training:
        trainer.initial_entropy = entropies[turn_ids >= 0].mean().item()
    initial = entropies[turn_ids >= 0].mean().item() if trainer.initial_entropy is None else trainer.initial_entropy
    ids = everywhere(batch["completion_ids"], 0)
    return TokenTable(turn_ids, ids, entropies, initial, None if values is None else everywhere(values[:, :-1], 0.0))
