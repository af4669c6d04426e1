"""Which part of a response is the program."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from acpo_trl.rewards.extract import after_thinking
from acpo_trl.rewards.syntax import parse
from acpo_trl.sandbox.inside.names import free_names

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?:[-*+] +|\d+[.)] +)?(?P<marks>`{3,}|~{3,})(?P<info>.*)$")
# A fence behind prose opens a block only if it says that the block is Python.
_LATE_FENCE = re.compile(r"(?<!`)(?P<marks>`{3,})(?P<info>[ \t]*(?:python|py)[\d.]*[ \t]*)$", re.IGNORECASE)
_PYTHON = re.compile(r"^[{.\s]*(?:i?python|py)[\d.]*\b", re.IGNORECASE)


class Block(NamedTuple):
    """A fenced block whose language may be Python."""

    code: str
    is_tagged: bool


def program_of(response: str, entry_point: str = "", starter: str = "") -> str | None:
    """Give the program in a response, or None if there is none.

    The text behind the last closing thinking tag counts; with an open thinking block there is none. Of its Python or
    untagged fenced blocks the last one that defines the entry point counts, together with the earlier blocks whose
    names it uses. Without an entry point, or if no block defines it, the last tagged block counts, else the last one.
    Text before the first fence counts if it is the program itself, as after a prompt that opened the fence.

    Args:
        response: the text of the last assistant message.
        entry_point: the name that the program has to define, or an expression that begins with it.
        starter: code that the response may continue.
    """
    text = after_thinking(response)
    if text is None:
        return None
    text = text.replace("\r\n", "\n")
    name = root_name(entry_point)
    blocks, before = fenced_blocks(text)
    chosen = [index for index, block in enumerate(blocks) if name in defined_names(block.code)]
    if chosen:
        return _with_earlier(blocks, chosen[-1])
    if _is_program(before, name) or _is_body(before, starter):
        return before
    tagged = [index for index, block in enumerate(blocks) if block.is_tagged] or range(len(blocks))
    program = _with_earlier(blocks, tagged[-1]) if tagged else ""
    return program if program.strip() else None


def root_name(entry_point: str) -> str:
    """Give the name at the beginning of an entry point: `Solution` of `Solution().solve`."""
    found = re.match(r"\w*", entry_point)
    return found[0] if found else ""


def fenced_blocks(text: str) -> tuple[list[Block], str]:
    """Give the fenced blocks that are Python or untagged, and the text before the first fence.

    Fences as in CommonMark: a block ends at a line of at least as many of the same marks and nothing else, indented by
    at most three columns more than its first line; a block that does not end runs to the end.
    """
    blocks: list[Block] = []
    before: list[str] = []
    has_fence = False
    lines = iter(text.split("\n"))
    for line in lines:
        opening = _opening(line)
        if opening is None:
            if not has_fence:
                before.append(line)
            continue
        has_fence = True
        marks, info, indent = opening
        code = _content(lines, marks, indent)
        is_tagged = bool(_PYTHON.match(info))
        if code.strip() and (is_tagged or not info):
            blocks.append(Block(code, is_tagged))
    return blocks, "\n".join(before)


def _opening(line: str) -> tuple[str, str, int] | None:
    """Give the marks, the info text and the indentation of the fence that the line opens, if it does."""
    fence = _FENCE.match(line)
    if fence and not (fence["marks"][0] == "`" and "`" in fence["info"]):
        return fence["marks"], fence["info"].strip(), fence.start("marks")
    late = _LATE_FENCE.search(line)
    return (late["marks"], late["info"].strip(), 0) if late else None


def _content(lines: Iterator[str], marks: str, indent: int) -> str:
    """Take the lines of a block up to its closing fence, without the indentation of its first line."""
    closing = re.compile(rf"^[ \t]{{0,{indent + 3}}}{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$")
    taken = []
    for line in lines:
        if closing.match(line):
            break
        taken.append(line[min(indent, len(line) - len(line.lstrip())) :])
    return "\n".join(taken) + "\n" if taken else ""


def _with_earlier(blocks: list[Block], index: int) -> str:
    """Give a block behind the earlier ones that define what it uses."""
    taken = [blocks[index].code]
    missing = used_names(taken[0])
    for block in reversed(blocks[:index]):
        defined = defined_names(block.code)
        if defined & missing:
            taken.insert(0, block.code)
            missing = (missing | used_names(block.code)) - defined
    return "\n".join(taken)


_DEFINITION = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def defined_names(code: str) -> set[str]:
    """Give the names that the code binds at its top level; of code that does not compile, those that lines define."""
    tree = parse(code)
    if tree is None:
        return {first or second for first, second in _DEFINITION.findall(code)}
    names = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def used_names(code: str) -> set[str]:
    """Give the names that the code uses and does not define; none of code that does not compile."""
    tree = parse(code)
    return free_names(tree) if tree else set()


def _is_program(text: str, name: str) -> bool:
    """Is the text code, and more than a remark that happens to be?"""
    if not text.strip() or parse(text) is None:
        return False
    return name in defined_names(text) if name else bool(_CALL_OR_ASSIGNMENT.search(text))


_CALL_OR_ASSIGNMENT = re.compile(r"\w\(|=|^[ \t]*import\b", re.MULTILINE)


def _is_body(text: str, starter: str) -> bool:
    """Does the text continue the starter's last function?"""
    return text[:1] in (" ", "\t") and bool(starter.strip()) and parse(f"{starter}\n{text}") is not None
