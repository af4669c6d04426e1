"""Rollouts of several turns with environments that read text: a `rollout_func` for ACPOTrainer."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from .chat import Chat
from .codec import without_surrogates
from .collate import to_rollout
from .options import check_number, check_whole
from .running import Policy, Running, describe, opened
from .sampling import sample
from .stepping import EnvironmentPool, StepTimeout, Worker

logger = logging.getLogger(__name__)

ROLES = (None, "user", "tool")


class MultiTurnRollout:
    """A `rollout_func` for [`ACPOTrainer`]: the policy speaks, its environment answers, until one of them ends.

    Each row of the batch has an environment of its own. All rows that still run are continued by one generation call,
    and their environments step beside each other. What the policy sampled is trained on as it was sampled. An
    environment that raises or hangs ends its own episode, which nobody scores; the batch goes on.

    Args:
        environment: gives an `acpo_trl.envs.StepEnvironment`; for pickling, a class or a `functools.partial`.
        max_turns: of an episode; then it stops as it is, with stop reason `turns`.
        max_turn_tokens: of a turn; one that is cut off there still goes to the environment. None: what is left.
        stop_strings: end a turn. The token that completes one stays whole, tokens behind it are dropped.
        step_limit_s: seconds for a step, and for making and resetting an environment.
        num_workers: steps at a time.
        observation_role: None puts observations behind the turn as they are, inside the same message; `user` or `tool`
            makes each a message of this role, in the form of the chat template.

    Raises:
        ValueError, TypeError: an option that cannot work, or an environment without `reward_kinds`, `reset` or `step`.

    Example:

    ```python
    from acpo_trl.envs import Search, TaggedTools

    rollout = MultiTurnRollout(
        functools.partial(TaggedTools, Search), max_turns=4, stop_strings=["</search>", "</answer>"]
    )
    trainer = ACPOTrainer(model, args=args, train_dataset=dataset, rollout_func=rollout)
    ```
    """

    def __init__(
        self,
        environment: Callable[[], Any],
        *,
        max_turns: int,
        max_turn_tokens: int | None = None,
        stop_strings: Sequence[str] = (),
        step_limit_s: float = 30.0,
        num_workers: int = 64,
        observation_role: str | None = None,
    ) -> None:
        check_whole("max_turns", max_turns)
        check_whole("max_turn_tokens", 1 if max_turn_tokens is None else max_turn_tokens)
        check_number("step_limit_s", step_limit_s)
        check_whole("num_workers", num_workers)
        if observation_role not in ROLES:
            raise ValueError(f"observation_role {observation_role!r}: unknown; expected one of {list(ROLES)}.")
        is_list = isinstance(stop_strings, list | tuple)
        if not is_list or not all(isinstance(stop, str) and stop for stop in stop_strings):
            raise TypeError(
                f"stop_strings {stop_strings!r}: each must be a text of one or more letters; expected a list of them."
            )
        self.max_turns = max_turns
        self.max_turn_tokens = max_turn_tokens
        self.stop_strings = tuple(stop_strings)
        self.observation_role = observation_role
        self._pool = EnvironmentPool(environment, step_limit_s, num_workers)
        self._name, self.reward_kinds = self._look()
        """The class of the environment, and the kinds of rewards that it gives; the trainer reads them."""

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """Give TRL's rollout of one episode for each prompt, with the fields of `to_rollout`."""
        if trainer.tools:
            raise ValueError(
                "tools: TRL would run its own tool loop behind this rollout; expected none; let the environment read "
                "calls, or leave rollout_func out."
            )
        chat = Chat(trainer._tokenizer, chat_template=trainer.chat_template, **trainer.chat_template_kwargs)
        policy = Policy(
            chat, trainer.eos_token_ids, self.stop_strings, self.observation_role, self._name, self.reward_kinds
        )
        episodes = self._begin(prompts, trainer)
        while self._take_turn(episodes, trainer, policy):
            pass
        self._tell_limits(episodes, policy)
        self._pool.give_back([episode.worker for episode in episodes if episode.error is None])
        self._warn(episodes)
        finished = [episode.finish() for episode in episodes]
        return to_rollout(finished, eos_token_id=trainer._tokenizer.eos_token_id)

    def _look(self) -> tuple[str, tuple[str, ...]]:
        """Make the first environment, and give its name and kinds; an episode gets it later."""
        workers = self._pool.take(1)
        (found,) = self._pool.call(workers, [_reward_kinds])
        if isinstance(found, StepTimeout):
            raise ValueError(
                f"environment: it was not made within step_limit_s, {self._pool.limit_s} s; expected one that is ready "
                "by then; raise step_limit_s, or prepare once for all environments what takes so long."
            ) from found
        if isinstance(found, BaseException):
            raise found
        self._pool.give_back(workers)
        return found

    def _begin(self, prompts: Sequence[Any], trainer: Any) -> list[Running]:
        workers = self._pool.take(len(prompts))
        texts = self._pool.call(workers, [partial(_reset, row) for row in trainer.rollout_rows])
        texts = [without_surrogates(text) if isinstance(text, str) else text for text in texts]
        shown = [None if isinstance(text, BaseException) else text for text in texts]
        prompts = [opened(prompt, text, self._name) for prompt, text in zip(prompts, shown, strict=True)]
        prompt_ids, images, _ = trainer._tokenize_prompts(prompts)
        if images is not None:
            raise ValueError("prompt with images: MultiTurnRollout has text only; expected prompts without images.")
        episodes = []
        for worker, ids, text in zip(workers, prompt_ids, texts, strict=True):
            room = min(trainer.max_completion_length, context_length(trainer) - len(ids))
            failed = isinstance(text, BaseException)
            episodes.append(Running(worker, list(ids), room, None if failed else text))
            if failed:
                episodes[-1].fail(text)
        return episodes

    def _take_turn(self, episodes: list[Running], trainer: Any, policy: Policy) -> bool:
        """One turn of every episode that still runs; False once none does, on no process."""
        running = [episode for episode in episodes if episode.stop_reason is None]
        limits = [min(episode.room, self.max_turn_tokens or episode.room) for episode in running]
        contexts = [episode.context for episode in running]
        samples = sample(trainer, contexts, limits, spare=episodes[0].prompt_ids)
        if samples is None:
            return False
        actions = [episode.speak(sampled, policy) for episode, sampled in zip(running, samples, strict=True)]
        workers: list[Worker] = [episode.worker for episode in running]
        steps = self._pool.call(workers, [partial(_step, action) for action in actions])
        for episode, step in zip(running, steps, strict=True):
            if isinstance(step, BaseException):
                episode.fail(step)
            else:
                episode.hear(step, policy, self.max_turns)
        return True

    def _tell_limits(self, episodes: list[Running], policy: Policy) -> None:
        """Let the environment judge an episode that a limit ended: what it pays at the end only is not unknown then."""
        ended = [episode for episode in episodes if episode.stop_reason in ("turns", "tokens") and episode.num_turns]
        calls = [partial(_cut_off, episode.stop_reason) for episode in ended]
        for episode, rewards in zip(ended, self._pool.call([e.worker for e in ended], calls), strict=True):
            if isinstance(rewards, BaseException):
                episode.fail(rewards)
            else:
                episode.add_rewards({} if rewards is None else rewards, policy)

    def _warn(self, episodes: list[Running]) -> None:
        errors = [episode.error for episode in episodes if episode.error is not None]
        if errors:
            logger.warning(
                "the environment failed in %d of %d episodes, which stay unscored (%d gave no answer within %s s; %d "
                "threads still wait for one): first %s",
                len(errors),
                len(episodes),
                sum(isinstance(error, StepTimeout) for error in errors),
                self._pool.limit_s,
                self._pool.num_hanging,
                describe(errors[0]),
            )


def context_length(trainer: Any) -> float:
    """How many tokens prompt and completion may have together, as far as this process knows."""
    if trainer.use_vllm and trainer.vllm_mode == "colocate":
        return trainer.vllm_generation.llm.llm_engine.model_config.max_model_len
    return getattr(trainer.model.config.get_text_config(), "max_position_embeddings", math.inf)


def _reward_kinds(environment: Any) -> tuple[str, tuple[str, ...]]:
    missing = [name for name in ("reward_kinds", "reset", "step") if not hasattr(environment, name)]
    if missing:
        raise TypeError(
            f"environment {environment!r}: it has no {missing[0]}; expected an acpo_trl.envs.StepEnvironment; tool "
            "environments go to environment_factory, or into acpo_trl.envs.TaggedTools."
        )
    if not isinstance(environment.reward_kinds, list | tuple):
        raise TypeError(
            f"environment {environment!r}: its reward_kinds {environment.reward_kinds!r} are no tuple; expected one "
            "such as ('outcome',)."
        )
    return type(environment).__name__, tuple(environment.reward_kinds)


def _reset(row: Mapping[str, Any], environment: Any) -> Any:
    return environment.reset(**row)


def _step(action: str, environment: Any) -> Any:
    return environment.step(action)


def _cut_off(reason: str | None, environment: Any) -> Any:
    return environment.cut_off(reason) if hasattr(environment, "cut_off") else {}
