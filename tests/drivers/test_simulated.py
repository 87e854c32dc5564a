"""The closed form of the error model, worked out by hand, and how its parameters are given."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.drivers.faulty import faulty
from agentbench_lab.drivers.loading import load_driver
from agentbench_lab.drivers.simulated import Parameters, expected, parameters, pays_from
from agentbench_lab.errors import LabError

PLAIN = Parameters(
    success=0.9,
    window=1_000,
    attention=500,
    prompt=800,
    brief=50,
    part=10,
    turn=100,
    told=5,
    output=20,
    input_price=2,
    output_price=3,
)


def test_one_part_by_hand() -> None:
    """Two steps at 810 and 910 tokens, both within the window, and a last model call at 1010."""
    found = expected(PLAIN, 1, 2)
    assert found.success == pytest.approx(0.9 * 0.9)
    assert found.input_tokens == 810 + 910 + 1010
    assert found.output_tokens == 3 * 20
    assert found.model_calls == 3
    assert found.cost_micros == 2 * 2730 + 3 * 60
    assert found.tokens == 2790
    assert found.cost_per_solved == pytest.approx(5640 / 0.81)


def test_attention_by_hand() -> None:
    """Four steps at 820, 920, 1020, 1120: the last two lie 20 and 120 beyond the window."""
    found = expected(PLAIN, 2, [1, 3])
    assert found.success == pytest.approx(0.9**4 * math.exp(-20 / 500) * math.exp(-120 / 500))
    assert found.input_tokens == 820 + 920 + 1020 + 1120 + 1220


def test_decomposition_by_hand() -> None:
    """linear: 860, 960, 1060 and, told of one part, 865, 965, 1065. fan_out: twice the first, and 880 to put together."""
    linear = expected(PLAIN, 2, 2, "linear")
    assert linear.success == pytest.approx(0.9**4)
    assert linear.input_tokens == 860 + 960 + 1060 + 865 + 965 + 1065
    assert linear.model_calls == 6
    fanned = expected(PLAIN, 2, 2, "fan_out_4")
    assert fanned.success == pytest.approx(0.9**4)
    assert fanned.input_tokens == 2 * (860 + 960 + 1060) + 880
    assert (fanned.model_calls, fanned.output_tokens) == (7, 140)
    planned = expected(PLAIN, 2, 2, "fan_out_4:plan")
    assert planned.input_tokens - fanned.input_tokens == 800 + 50 + 20
    assert planned.output_tokens - fanned.output_tokens == 20
    for scaffold in ("linear", "fan_out_8", "durable:linear", "durable:once"):
        assert expected(PLAIN, 1, 3, scaffold) == expected(PLAIN, 1, 3)
    assert expected(PLAIN, 4, 2, "durable:linear") == expected(PLAIN, 4, 2, "linear")


def test_crashes_by_hand() -> None:
    """One part of one call: an account, which may crash after it, a call, which may crash before it, an account. Bare, all
    three points are passed with the probability 0.8^3; durable, the first account is made 1 / 0.8^3 times."""
    bare = expected(PLAIN, 1, 1, crash=0.2)
    assert bare.success == pytest.approx(0.9 * 0.8**3)
    assert bare.model_calls == pytest.approx(1 + 0.8**2)
    assert bare.input_tokens == pytest.approx(810 + 0.8**2 * 910)
    durable = expected(PLAIN, 1, 1, "durable:once", crash=0.2)
    assert durable.success == pytest.approx(0.9)
    assert durable.model_calls == pytest.approx(1 / 0.8**3 + 1 / 0.8)
    # of two parts one after the other, the second of a bare trial is only begun where the first was done
    two = expected(PLAIN, 2, 1, "linear", crash=0.2)
    assert two.model_calls == pytest.approx((1 + 0.8**2) * (1 + 0.8**3))
    # side by side both parts come to their end, and the synthesis is asked where neither crashed
    side = expected(PLAIN, 2, 1, "fan_out_2", crash=0.2)
    assert side.model_calls == pytest.approx(2 * (1 + 0.8**2) + 0.8**6)
    assert side.success == pytest.approx(0.81 * 0.8**7)
    assert expected(PLAIN, 2, 1, "durable:linear", crash=0.2).model_calls == pytest.approx(
        2 * durable.model_calls
    )


@given(
    st.builds(
        Parameters,
        success=st.floats(0.5, 1),
        window=st.integers(0, 3_000),
        attention=st.floats(100, 50_000),
        prompt=st.integers(0, 3_000),
        brief=st.integers(0, 300),
        part=st.integers(0, 100),
        turn=st.integers(0, 300),
        told=st.integers(0, 100),
    ),
    st.lists(st.integers(0, 5), min_size=1, max_size=16),
    st.sampled_from(["once", "linear", "fan_out_2", "linear:plan", "fan_out_4:plan"]),
)
def test_the_closed_form_is_the_sum_over_the_steps(
    known: Parameters, sizes: list[int], scaffold: str
) -> None:
    """The series are those that are summed step by step."""
    width = len(sizes)
    workers: list[tuple[int, int]] = []
    extra = extra_output = 0
    if scaffold.endswith(":plan"):
        extra, extra_output = known.prompt + known.brief + width * known.part, width * known.part
    if scaffold == "once" or width == 1:
        workers = [(known.prompt + width * known.part, sum(sizes))]
    else:
        first = known.prompt + known.brief + known.part
        told = known.told if scaffold.startswith("linear") else 0
        workers = [(first + at * told, size) for at, size in enumerate(sizes)]
        if scaffold.startswith("fan_out"):
            extra += known.prompt + known.brief + width * (known.part + known.told)
            extra_output += known.output
    success, tokens, output = 1.0, float(extra), float(extra_output)
    for first, steps in workers:
        for step in range(steps + 1):
            context = first + step * known.turn
            tokens, output = tokens + context, output + known.output
            if step < steps:
                success *= known.success * math.exp(-max(0, context - known.window) / known.attention)
    found = expected(known, width, sizes, scaffold)
    assert found.success == pytest.approx(success)
    assert found.input_tokens == pytest.approx(tokens)
    assert found.output_tokens == pytest.approx(output)


def test_the_defaults_ask_an_interesting_question() -> None:
    """Decomposition pays from width 4 on; fan_out is the dearer one at small widths and the cheaper one at 16."""
    known = Parameters()
    widths = (1, 2, 4, 8, 16)
    assert pays_from(known, widths, 2, "fan_out_4") == 4
    assert pays_from(known, widths, 2, "once") is None
    once, fanned = (
        [expected(known, width, 2, scaffold) for width in widths] for scaffold in ("once", "fan_out_4")
    )
    assert [round(each.success, 2) for each in once] == [0.99, 0.99, 0.93, 0.61, 0.08]
    assert [round(each.success, 2) for each in fanned] == [0.99, 0.99, 0.98, 0.95, 0.91]
    dearer = [b.cost_micros > a.cost_micros for a, b in zip(once, fanned, strict=True)]
    assert dearer == [False, True, True, True, False]


def test_parameters_are_given_by_name_and_printed() -> None:
    assert parameters("") == Parameters()
    assert parameters("success=0.5, turn=7") == Parameters(success=0.5, turn=7)
    driver = load_driver("simulated:success=0.5")
    assert (driver.name, driver.evidence) == ("simulated:success=0.5", "simulated")
    for name in Parameters.__struct_fields__:
        assert f"{name}=" in driver.banner
    assert "success=0.5" in driver.banner


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sucess=1", r"no parameter 'sucess' \(did you mean 'success'\?\)"),
        ("success", "'success' needs a value"),
        ("success=1.2", r"success is a number above 0 and at most 1, not 1\.2 \(did you mean 1\?\)$"),
        ("success=95", r"success is a number above 0 and at most 1, not 95 \(did you mean 0\.95\?\)$"),
        ("success=0", "success is a number above 0 and at most 1, not 0$"),
        ("success=nan", "success is a number above 0 and at most 1, not nan$"),
        ("attention=-1", r"attention is a number above 0, not -1$"),
        ("turn=many", "turn is a whole number from 0 to 1,000,000,000, not 'many'$"),
        ("turn=-1", r"turn is a whole number from 0 .*, not -1 \(did you mean 0\?\)$"),
        ("turn=1.6", r"turn is a whole number from 0 .*, not 1\.6 \(did you mean 2\?\)$"),
        ("turn=1e23", r"\(did you mean 1000000000\?\)$"),
        ("prompt=inf", r"\(did you mean 1000000000\?\)$"),
        ("turn=5,turn=6", "turn is given twice"),
        ("[success=0.5]", "write simulated:success=0.5$"),
        ("[success=0.5]:turn=2", "write simulated:success=0.5,turn=2$"),
    ],
)
def test_wrong_parameters_are_one_line(text: str, message: str) -> None:
    with pytest.raises(LabError, match=message):
        load_driver(f"simulated:{text}")


def test_parameters_have_their_ranges_in_python_too() -> None:
    with pytest.raises(LabError, match="success is a number above 0 and at most 1, not 2"):
        Parameters(success=2)
    for p in (1.5, math.nan, "0.1"):
        with pytest.raises(LabError, match=f"faulty: p is a number from 0 to 1, not {p!r}"):
            faulty("stub", p)  # type: ignore[arg-type]
    assert Parameters(success=1, attention=math.inf).attention == math.inf


@pytest.mark.parametrize(
    ("width", "sizes", "scaffold", "crash"),
    [
        (2, [1], "once", 0),
        (0, 1, "once", 0),
        (2, 1, "tree", 0),
        (2, 1, "once:plan", 0),
        (2, 1, "durable:fan_out_2", 0.1),
    ],
)
def test_what_nothing_is_known_of(width: int, sizes: int | list[int], scaffold: str, crash: float) -> None:
    with pytest.raises(LabError, match="expected: "):
        expected(PLAIN, width, sizes, scaffold, crash=crash)


def test_the_table_in_the_docs_is_the_closed_form() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "drivers.md").read_text(encoding="utf-8")
    for width in (1, 2, 4, 8, 16):
        found = [expected(Parameters(), width, 2, name) for name in ("once", "linear", "fan_out_4")]
        cells = [f"{each.success:.1%}, {each.cost_micros / 1000:.1f}" for each in found]
        assert f"| {width} | {' | '.join(cells)} |" in text
    table = text[text.index("| parameter |") :]
    for name, value in msgspec.structs.asdict(Parameters()).items():
        (line,) = [line for line in table.splitlines() if line.startswith("| ") and f"`{name}`" in line]
        assert f"{value:g}" in line
