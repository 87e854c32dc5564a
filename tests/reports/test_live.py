"""The chart library is made once, and a cache that is missing, broken or closed changes nothing but the time."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from agentbench_lab.reports import live


def test_it_is_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it is the file's text; a file cut short is made anew; a folder that cannot be made is no matter."""
    import vl_convert

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = live._bundle()
    assert len(made) > 500_000
    (kept,) = (tmp_path / "agentbench-lab").iterdir()
    assert gzip.decompress(kept.read_bytes()).decode() == made
    whole = kept.read_bytes()
    kept.write_bytes(gzip.compress(b"other"))
    assert live._bundle() == "other"
    kept.write_bytes(whole[:1000])
    # which takes a second, and it is only asked whether it is made at all
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *_, **__: "anew")
    assert live._bundle() == "anew"
    assert gzip.decompress(kept.read_bytes()) == b"anew"
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert live._bundle() == "anew"
