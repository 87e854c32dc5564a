"""The checker of bfcl-eval itself, where its unpacked wheel is at hand, and outputs that are nearly right."""

from __future__ import annotations

import copy
import os
import random
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentbench_lab.cases import Call
from agentbench_lab.expect import BfclTruth
from agentbench_lab.grading.bfcl import language_of

VARIABLE = "AGENTBENCH_LAB_BFCL_EVAL"


def wheel() -> Path | None:
    """The folder of the unpacked wheel that the environment names."""
    folder = Path(os.environ.get(VARIABLE, ""))
    return folder if os.environ.get(VARIABLE) and (folder / "bfcl_eval").is_dir() else None


def their_checker(folder: Path) -> Callable[[BfclTruth, list[Call]], bool]:
    """Their verdict on calls. The table of models, which imports every vendor's package, is a stand-in; their checker's
    own code is untouched. Where it raises an error nothing has passed."""
    name = "bfcl_eval.constants.model_config"
    stand_in: Any = types.ModuleType(name)
    stand_in.MODEL_CONFIG_MAPPING = {"none": types.SimpleNamespace(underscore_to_dot=False)}
    sys.modules[name] = stand_in
    sys.path.insert(0, str(folder))
    try:
        from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]
        from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(folder))

    def verdict(truth: BfclTruth, calls: list[Call]) -> bool:
        output = [{call.name: copy.deepcopy(call.input)} for call in calls]
        language = Language(language_of(truth.category))
        try:
            said = ast_checker(
                list(truth.functions), output, list(truth.ground_truth), language, truth.category, "none"
            )
        except (AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError):
            return False
        return bool(said["valid"])

    return verdict


def mutated(calls: tuple[Call, ...], truth: BfclTruth, dice: random.Random) -> list[Call]:
    """The calls with one or two things about them changed, some of which must not matter."""
    made = [Call(call.name, copy.deepcopy(call.input)) for call in calls]
    for _ in range(dice.choice((1, 1, 1, 2))):
        _change(made, truth, dice)
    return made


def _change(made: list[Call], truth: BfclTruth, dice: random.Random) -> None:
    whole = dice.random()
    if whole < 0.08 and made:
        del made[dice.randrange(len(made))]
    elif whole < 0.14 and made:
        made.append(copy.deepcopy(dice.choice(made)))
    elif whole < 0.22:
        dice.shuffle(made)
    elif made:
        at = dice.randrange(len(made))
        made[at] = _changed(made[at], truth, dice)


def _changed(call: Call, truth: BfclTruth, dice: random.Random) -> Call:
    input = dict(call.input)
    what = dice.random()
    if what < 0.05:
        return Call(dice.choice([call.name.upper(), call.name.replace(".", "_"), "other"]), input)
    if what < 0.12 and input:
        del input[dice.choice(list(input))]
    elif what < 0.2:
        known = [key for function in truth.functions for key in function["parameters"]["properties"]]
        input[dice.choice([*known, "made_up"])] = dice.choice(["", 1, True, "x", [], {}])
    elif what < 0.4:
        for each in truth.ground_truth:
            for name, answers in each.items():
                options = {key: values for key, values in answers.items() if values}
                if name == call.name and options:
                    key = dice.choice(list(options))
                    input[key] = copy.deepcopy(dice.choice(options[key]))
    elif input:
        key = dice.choice(list(input))
        input[key] = _near(input[key], dice)
    return Call(call.name, input)


def _near(value: Any, dice: random.Random) -> Any:
    """A value near this one: of another type, spelt otherwise, or with one place within it changed."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        key = dice.choice(list(value))
        how = dice.random()
        if how < 0.25:
            return {name: item for name, item in value.items() if name != key}
        if how < 0.35:
            return {**value, "made_up": 1}
        return {**value, key: _near(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.8:
        how, at = dice.random(), dice.randrange(len(value))
        if how < 0.2:
            return value[::-1]
        if how < 0.35:
            return [*value, copy.deepcopy(value[at])]
        if how < 0.5:
            return value[:at] + value[at + 1 :]
        return [*value[:at], _near(value[at], dice), *value[at + 1 :]]
    return dice.choice(list(_spellings(value)))


def _spellings(value: Any) -> Iterator[Any]:
    yield from (None, True, 0, 1.5, "", [], {}, [value], str(value), {"value": value})
    if isinstance(value, bool):
        yield from (int(value), not value, str(value).lower())
    elif isinstance(value, int | float):
        yield from (float(value), int(value), value + 1, -value, f"{value}", f"{value}L", f"{value}f")
    elif isinstance(value, str):
        yield from (
            value.upper(),
            value.lower(),
            f" {value}.",
            value.replace(" ", "-"),
            f"'{value}'",
            value + "s",
        )
        yield from (f'"{value}"', value[1:], value.replace('"', "'"), f"{value}n", value.strip("\"'"))
        yield from (f"new ArrayList<>(Arrays.asList({value}))", f"[{value}]", f"{{{value}: {value}}}")
