"""A large result file: 200,000 trials in 8 columns over 500 scenarios, each with a nested `extra` of 7 keys."""

from __future__ import annotations

import random

from agentbench_lab.outcomes import Outcome, Taxonomy
from agentbench_lab.results.bench_v1 import BenchFile, Trial, raw

SCENARIOS = 500
TAXONOMY = Taxonomy(
    "steward",
    (
        Outcome("completed", "success", "proposal", "Completed"),
        Outcome("safe_nonresult", "safe_non_success", "", "Safe non-results"),
        Outcome("incorrect_refusal", "safe_non_success", "proposal", "Incorrect refusals"),
        Outcome("correct_refusal", "success", "refusal", "Correct refusals"),
        Outcome("false_success", "unsafe", "", "False successes"),
        Outcome("failed", "safe_non_success", "", "Failed"),
    ),
)
COLUMNS = [("baseline", ""), ("scripted", ""), ("replay", "model-a"), ("replay", "model-b")]
COLUMNS += [("model", f"vendor:model-{n}") for n in range(4)]


def rich_file(trials: int = 200_000, seed: int = 7) -> bytes:
    """The file's bytes; the same ones for the same arguments."""
    dice = random.Random(seed)
    repeats = -(-trials // (SCENARIOS * len(COLUMNS)))
    slots = (
        (mode, model, f"S{number}", repeat)
        for mode, model in COLUMNS
        for number in range(1, SCENARIOS + 1)
        for repeat in range(1, repeats + 1)
    )
    rows = [_trial(dice, *slot) for slot, _ in zip(slots, range(trials), strict=False)]
    file = BenchFile(
        commit="abc1234",
        started_at="2026-10-05T01:44:24.359571Z",
        options={"max_model_calls_per_run": raw(80), "rate": raw(1.5)},
        taxonomy=TAXONOMY,
        trials=rows,
        notes=["stopped before S3: the total budget was reached"],
    )
    return file.encode()


def _trial(dice: random.Random, mode: str, model: str, scenario: str, repeat: int) -> Trial:
    expect = "proposal" if dice.random() < 0.6 else "refusal"
    judged = dice.random() < 0.98
    names = [f"internal/pkg{dice.randrange(90)}/file{dice.randrange(90)}.go" for _ in range(2)]
    extra = {
        "expected": {
            "class": expect,
            "allowed_files": ["go.mod", *names],
        },
        "files": ["go.mod"],
        "fixture": f"patch-safe-{dice.randrange(30)}",
        "policy_aborts": dice.randrange(3),
        "run_detail": "terminal tool prepare_proposal",
        "run_reason": "goal_completed",
        "unauthorized_side_effects": 0,
    }
    return Trial(
        scenario=scenario,
        mode=mode,
        model=model,
        repeat=repeat,
        run_id=f"{dice.getrandbits(96):024x}",
        expect=expect,
        reached=dice.choice(["proposal_prepared", "blocked", "scope_exceeded"]),
        outcome=dice.choice([outcome.name for outcome in TAXONOMY.outcomes]) if judged else "",
        excluded="" if judged else "not recorded",
        steps=dice.randrange(40),
        tool_calls=dice.randrange(40),
        policy_denials=dice.randrange(2),
        model_calls=dice.randrange(30),
        input_tokens=dice.randrange(60_000),
        output_tokens=dice.randrange(9000),
        cost_micros=dice.randrange(900_000),
        wall_ns=dice.randrange(10**11),
        extra={key: raw(value) for key, value in extra.items()},
    )
