#!/usr/bin/env python3
"""The harness itself: harness_test.py WORK-FOLDER. Whoever ends a run of clients ends the client;
what a client did wrong is said; whose libgc it loaded is seen."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import runner  # noqa: E402
from harness.model import Client, Command, Failed  # noqa: E402

# It ends when it is killed.
SLEEPER = "echo $$ >started.new && mv started.new started && exec sleep 100000"


def run_sleeper(work: Path) -> None:
    runner.end_on_signals()
    client = Client(name="sleeper", title="", packages=[], programs=["sh"], seconds=100000,
                    command=lambda place: Command(["sh", "-c", SLEEPER]))
    # Which library is of no importance.
    library = runner.Library("ours", work / "none", work)
    runner.Runner(work, "small").run(client, library)


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def check(number: signal.Signals, work: Path) -> bool:
    shutil.rmtree(work / "clients", ignore_errors=True)
    harness = subprocess.Popen([sys.executable, __file__, "--sleep", str(work)])
    started = work / "clients/sleeper/run-ours/started"
    while not started.exists():
        if harness.poll() is not None:
            print(f"FAILED: the harness ended with {harness.returncode} before the client started")
            return False
        time.sleep(0.01)
    client = int(started.read_text())
    harness.send_signal(number)
    status = harness.wait()
    left = is_there(client)
    if left:
        os.kill(client, signal.SIGKILL)
    good = not left and status == 128 + number
    print(f"{'ok' if good else 'FAILED'}: {number.name}: status {status}, the client is "
          f"{'left' if left else 'gone'}")
    return good


def refuses_a_colon(work: Path) -> bool:
    folder = work / "a:b"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / runner.SONAME).touch()
    try:
        runner.make_library("ours", folder, folder)
    except SystemExit as why:
        if "LD_LIBRARY_PATH" in str(why):
            print("ok: a folder that LD_LIBRARY_PATH cannot name is refused")
            return True
    print("FAILED: a folder that LD_LIBRARY_PATH cannot name is taken")
    return False


def tells_what_went_wrong(work: Path) -> bool:
    harness = runner.Runner(work, "small")
    library = runner.Library("ours", work / "none", work)
    good = True
    for script, files, seconds, complaint in (
            ("echo a >f", ["f"], 60, ""),
            ("echo oops >&2; exit 3", [], 60, "it ended with status 3; stderr: oops"),
            ("kill -SEGV $$", [], 60, "it died of SIGSEGV"),
            ("exec sleep 1000", [], 1, "it did not end within 1 s"),
            ("true", ["f"], 60, "it did not write f")):
        client = Client(name="wrong", title="", packages=[], programs=["sh"], seconds=seconds,
                        command=lambda place: Command(["sh", "-c", script], files=files))
        try:
            harness.run(client, library)
            said = ""
        except Failed as failure:
            said = str(failure)
        as_told = said.startswith(f"on ours: {complaint}") if complaint else not said
        print(f"{'ok' if as_told else 'FAILED'}: {script}: {said or 'no complaint'}")
        good = good and as_told
    return good


def sees_whose_libgc(work: Path) -> bool:
    """A client that loads none has shown nothing; one that loads another's has shown that."""
    good = True
    system = runner.find_system_library()
    for what, env, complaint in (
            ("none", {}, "no process of this client loaded a libgc"),
            ("the system's", {"LD_PRELOAD": str(system)}, f"it loaded {system.resolve()} where")):
        client = Client(name="whose", title="", packages=[], programs=["true"],
                        command=lambda place: Command(["true"], env=env))
        try:
            runner.Runner(work, "small").verify(client, runner.Library("ours", work / "none", work))
            said = ""
        except Failed as failure:
            said = str(failure)
        as_told = said.startswith(complaint)
        print(f"{'ok' if as_told else 'FAILED'}: a client that loads {what}: {said or 'no complaint'}")
        good = good and as_told
    return good


def main() -> int:
    if sys.argv[1] == "--sleep":
        run_sleeper(Path(sys.argv[2]))
        return 1
    work = Path(sys.argv[1])
    good = [check(s, work) for s in (signal.SIGTERM, signal.SIGHUP)] + [
        refuses_a_colon(work), tells_what_went_wrong(work), sees_whose_libgc(work)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
