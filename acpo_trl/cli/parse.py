"""`--config` files and command line, merged and checked, as the dataclasses of a `TrlParser`."""

import argparse
import dataclasses
import difflib
import json
import os
import sys
from collections.abc import Callable, Iterable
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import yaml  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from trl import TrlParser

Config = dict[str, Any]


def parse(make_parser: Callable[[], "TrlParser"], arguments: list[str]) -> tuple[Any, ...]:
    """One object per dataclass of the parser, from YAML files and, winning over them, command-line options.

    Raises:
        ValueError: a key or option that the parser does not know, or a value that a dataclass refuses.
        OSError: a `--config` file cannot be read.
    """
    parser, options = configure(make_parser, arguments)
    try:
        return parser.parse_args_into_dataclasses(options)
    except json.JSONDecodeError as error:
        given = vars(parser.parse_args(options))
        names = [name for name, value in given.items() if value == error.doc]
        raise ValueError(
            f"{', '.join(names)} {error.doc!r}: is no JSON ({error}); expected a JSON object such as "
            "'{\"gamma\": 0.95}'; correct it."
        ) from error


def configure(make_parser: Callable[[], "TrlParser"], arguments: list[str]) -> tuple["TrlParser", list[str]]:
    """The parser with the content of the `--config` files as its defaults, and the arguments left for it.

    `--config` may be given several times; a later file wins key by key. Dotted paths are looked up in the current
    directory too.

    Raises:
        ValueError: a key or option that the parser does not know.
        OSError: a `--config` file cannot be read.
    """
    files, options = read_configs(arguments)
    config = merge_configs(keys for _, keys in files)
    # Before the parser is made: that imports libraries which read their environment variables on import.
    set_environment(config.pop("env", {}))
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    parser = make_parser()
    for path, keys in files:
        check_keys(parser, keys, path)
        check_types(parser, keys, path)
    check_options(parser, options)
    parser.set_defaults_with_config(**config)
    return parser, options


def read_configs(arguments: list[str]) -> tuple[list[tuple[str, Config]], list[str]]:
    """Path and content of every `--config` file, in order, and the arguments without them."""
    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    reader.add_argument("--config", action="append", default=[])
    found, rest = reader.parse_known_args(arguments)
    files = []
    for path in found.config:
        with open(path, encoding="utf-8") as file:
            try:
                keys = as_mapping(yaml.safe_load(file), path)
            except (yaml.YAMLError, UnicodeDecodeError) as error:
                raise ValueError(f"{path}: is no valid YAML in UTF-8: {error}") from error
        files.append((path, {**keys, "env": as_mapping(keys.get("env"), f"{path}: env")}))
    return files, rest


def as_mapping(content: Any, name: str) -> Config:
    """`content`, or an empty mapping for None; raises ValueError for anything else."""
    if content is not None and not isinstance(content, dict):
        raise ValueError(f"{name}: is a {type(content).__name__}; expected a YAML mapping of `key: value` lines.")
    return content or {}


def merge_configs(configs: Iterable[Config]) -> Config:
    """One mapping in which a later config wins key by key, also inside `env`."""
    merged: Config = {"env": {}}
    for config in configs:
        merged = {**merged, **config, "env": {**merged["env"], **config["env"]}}
    return merged


def set_environment(variables: Config) -> None:
    """Set environment variables, and unset those that are null; raises ValueError for what cannot be one."""
    for name, value in variables.items():
        try:
            if isinstance(value, dict | list):
                raise TypeError(f"text expected, not {type(value).__name__}")
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = str(value)
        except (TypeError, ValueError, OSError) as error:
            raise ValueError(
                f"env: {name!r}: {value!r}: cannot be set ({error}); expected lines `NAME: text`, or null to unset."
            ) from error


def check_keys(parser: "TrlParser", keys: Iterable[str], path: str) -> None:
    """Raise ValueError for the first key of a config file that is no option, with the nearest one."""
    for key in keys:
        if key not in option_names(parser) and key != "env":
            raise ValueError(f"{path}: unknown key {key!r}; {nearest(parser, key)}")


def check_types(parser: "TrlParser", keys: Config, path: str) -> None:
    """Raise ValueError for the first value of a config file whose form its option cannot have.

    Text is left to the parser, which reads it as it does on the command line.
    """
    hints = {name: hint for kind in parser.dataclass_types for name, hint in get_type_hints(kind).items()}
    for key, value in keys.items():
        if key != "env" and not fits(value, hint := hints[key]):
            what = "null" if value is None else f"a {type(value).__name__}"
            expected = hint.__name__ if isinstance(hint, type) else hint
            raise ValueError(f"{path}: {key} {value!r}: is {what}; expected {expected}; correct it.")


def fits(value: Any, hint: Any) -> bool:
    """Whether an option of this type takes null, a list, a mapping or a scalar, whichever `value` is."""
    members = get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
    kinds = {get_origin(member) or member for member in members}
    if value is None or isinstance(value, list):
        return type(value) in kinds
    if isinstance(value, dict):
        return bool(kinds & {dict, list})  # one mapping may stand for a list of one
    return isinstance(value, str) or bool(kinds - {dict, list, type(None)})


def check_options(parser: "TrlParser", options: list[str]) -> None:
    """Raise ValueError for the first command-line option that is none, with the nearest one."""
    _, unknown = parser.parse_known_args(options)
    if unknown:
        key = unknown[0].partition("=")[0].lstrip("-").replace("-", "_")
        raise ValueError(f"unknown argument {unknown[0]!r}; {nearest(parser, key, '--')}")


def option_names(parser: "TrlParser") -> list[str]:
    """Every option the parser's dataclasses take."""
    return [field.name for kind in parser.dataclass_types for field in dataclasses.fields(kind) if field.init]


def nearest(parser: "TrlParser", key: str, prefix: str = "") -> str:
    """The hint of an error about `key`."""
    near = difflib.get_close_matches(str(key), option_names(parser), n=1)
    return f"did you mean {prefix + near[0]!r}?" if near else f"`{parser.prog} --help` lists every option."
