"""What a model card says beyond TRL's: the credit settings and the version of acpo_trl."""

from pathlib import Path

from trl import GRPOConfig

from .. import __version__

_VERSIONS = "### Framework versions\n\n"


def annotate_card(path: Path, args: GRPOConfig) -> None:
    """Add credit settings and version to the card at `path`, and name a local base model as such."""
    settings = (
        f"Token credit: `credit_rule={args.credit_rule}`, `credit_mix={args.credit_mix}`, "
        f"`credit_normalization={args.credit_normalization}`; loss `{args.loss_type}`.\n\n"
    )
    text = path.read_text(encoding="utf-8")
    text = text.replace(_VERSIONS, f"{settings}{_VERSIONS}- acpo_trl: {__version__}\n", 1)
    text = text.replace("[None](https://huggingface.co/None)", "a local model").replace('model="None"', 'model="."')
    path.write_text(text, encoding="utf-8")
