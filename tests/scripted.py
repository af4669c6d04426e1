"""A trainer in TRL's real tool loop whose policy says what a script tells it."""

from pathlib import Path

import trl
from datasets import Dataset
from tiny import byte_tokenizer, qwen2

from acpo_trl import ACPOConfig, ACPOTrainer

TEMPLATE = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()


def call(name, **arguments):
    """A tool call as Qwen3 writes it."""
    inner = ", ".join(f'"{key}": {value!r}'.replace("'", '"') for key, value in arguments.items())
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{{inner}}}}}\n</tool_call>'


class Scripted(ACPOTrainer):
    """Each generation call takes the next list of the script: one text for each row that still speaks.

    A text is closed by the end-of-turn token unless it ends with an ellipsis (cut off by a limit).
    """

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        texts = self.script.pop(0)
        assert len(texts) == len(prompt_ids), f"{len(prompt_ids)} rows speak, the script has {len(texts)}"
        encode = self.processing_class.encode
        end = [self.processing_class.eos_token_id]
        rows = [encode(t[:-1]) if t.endswith("…") else encode(t) + end for t in texts]
        return rows, None


def double(x: int) -> int:
    """
    Double a number.

    Args:
        x: The number.
    """
    return 2 * x


class Doubler:
    """An environment whose only tool doubles a number."""

    def reset(self, **row):
        return None

    def double(self, x: int) -> int:
        """
        Double a number.

        Args:
            x: The number.
        """
        return 2 * x


def length(completions, **kwargs):
    return [float(len(completion[-1]["content"] or "")) for completion in completions]


def scripted_trainer(output_dir, script, reward_funcs=length, cls=Scripted, question="What is 2 x 21?", **options):
    """A trainer of one step over one group that follows the script; its batches are kept in `batches`."""
    keys = ("tools", "environment_factory", "rollout_func", "callbacks")
    trainer_options = {key: options.pop(key) for key in keys if key in options}
    rows = options.pop("rows", None) or [{}]
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    num_rows = len(script[0]) if script else 2
    settings = {
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "per_device_train_batch_size": num_rows,
        "num_generations": num_rows,
        "max_completion_length": 400,
        "max_steps": 1,
        "logging_steps": 1,
        "save_strategy": "no",
        "disable_tqdm": True,
    }
    dataset = Dataset.from_list([{"prompt": [{"role": "user", "content": question}], **row} for row in rows])
    trainer = cls(
        qwen2(),
        reward_funcs,
        ACPOConfig(str(output_dir), **{**settings, **options}),
        dataset,
        processing_class=tokenizer,
        **trainer_options,
    )
    trainer.script = [list(texts) for texts in script]
    trainer.batches = []
    generate = trainer._generate_and_score_completions
    trainer._generate_and_score_completions = lambda inputs: (
        trainer.batches.append(generate(inputs)) or trainer.batches[-1]
    )
    return trainer
