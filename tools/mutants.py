"""Plant each fault of tests/mutants in a copy of the sources; the tests must notice.

    python tools/mutants.py [--jobs N] [--log FILE] [--quick] [--unchecked] [name ...]

Faults are patches (as `git diff` writes them, paths from the repository's root) and the entries of
engine.txt, one line of src/c each. The quick stages take about a minute: small C tests, a few draws
of each rule, formulas of fixed seeds. What they let pass goes through the slow ones, tests and
batteries of minutes; --quick leaves those for another run. Each stage is built when it is reached,
and ends at the first check that fails. A fault that passes all has survived: the tests need
mending. Names select: "fuse" is all of that file, "fuse 3" one, "stale-spectrum" a patch. The log
(build/mutants/verdicts.txt) is continued: what it says is caught is run again only if the file that
the fault is planted in has changed since. Exits with 1 if any survives, does not apply or does not
compile.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "mutants"
DEBUG = TREE / "build" / "debug"
TIMES = TREE / "times.json"  # of each stage without a fault
# The quickest first. "rows" are a few draws of battery_rules, "met" what fuzz_expr has found; the
# last two and "pytest" run against the same build.
QUICK = (
    "test_plan test_branches test_plan_check test_core test_ruleset test_chain "
    "test_plans test_vjp met few rows formulas"
).split()
SLOW = (
    "test_chains oom fuzz_expr pytest battery_rules test_krylov battery_kinds test_threads".split()
)
FORMULAS = ("1", "300")  # the first seed, and how many: make test draws 1,800 fresh ones
FEW = (
    "tests/rewriting/test_engine_plans.py tests/rewriting/test_engine_inference.py "
    "tests/contract/test_assumed_sums.py tests/linalg/test_determinants.py "
    "tests/rewriting/test_coefficients.py tests/rewriting/test_values_made_once.py "
    "tests/linalg/test_band_inverse_traces.py"
).split()
PYTEST = (
    "tests/rewriting/test_fused_sums.py tests/kinds/test_stacks.py tests/rewriting/test_laab.py "
    "tests/rewriting/test_several_results.py tests/linalg/test_factor_kept.py "
    "tests/lazy/test_lazy.py tests/rewriting/test_woodbury_sums.py "
    "tests/rewriting/test_normal_equations.py tests/contract/test_accuracy.py "
    "tests/rewriting/test_structural_inverse.py tests/contract/test_freshness.py "
    "tests/rewriting/test_rules.py tests/rewriting/test_shared_inverses.py "
    "tests/kinds/test_indexing_axes.py tests/linalg/test_inverse_diagonals.py "
    "tests/linalg/test_factorized.py tests/lazy/test_programs.py "
    "tests/contract/test_due_results.py tests/rewriting/test_plan_data.py "
    "tests/linalg/test_toeplitz_one_factor.py tests/rewriting/test_nested_sums.py "
    "tests/contract/test_slow_and_large.py tests/contract/test_out_of_range.py "
    "tests/linalg/test_known_properties.py "
).split()
HANGS = 10  # times what a stage takes without a fault, and a minute
UNKNOWN = 90.0  # seconds of a stage, where that was not looked at
PASSED = "passed the quick stages"


@dataclass
class Fault:
    name: str
    what: str
    patch: Path | None = None  # else one line of a file
    file: str = ""
    line: str = ""
    turned: str = ""
    equivalent: str = ""
    before: str = ""  # of the copy's file

    def digest(self) -> str:
        """Of the fault and of what it is planted in."""
        text = self.patch.read_text() if self.patch else self.turned
        files = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE) if self.patch else [self.file]
        for file in files:
            text += (ROOT / file).read_text()
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def plant(self, back: bool = False) -> str:
        """Change the copy; what was wrong, or nothing."""
        if self.patch:
            way = "--reverse" if back else "--forward"
            status, output = run("patch", "-p1", way, "--force", "-i", str(self.patch))
            if status and not back:
                run("patch", "-p1", "--reverse", "--force", "-i", str(self.patch))
            return output if status else ""
        copy = TREE / self.file
        if back:  # not from ROOT, whose file may have been edited since
            copy.write_text(self.before)
            return ""
        self.before = copy.read_text()
        return turn(copy, self.line, self.turned)


def turn(path: Path, line: str, turned: str) -> str:
    """Replace the one line that reads so; what was wrong, or nothing."""
    lines = path.read_text().split("\n")
    places = [i for i, s in enumerate(lines) if s.strip() == line]
    if len(places) != 1:
        return f"{path.name} has {len(places)} lines that read: {line}"
    old = lines[places[0]]
    lines[places[0]] = old[: len(old) - len(old.lstrip())] + turned
    path.write_text("\n".join(lines))
    return ""


def engine(text: str) -> list[Fault]:
    """The entries of engine.txt."""
    found = []
    pattern = r"^\[([\w/]+) (\d+)\] (.+)\n- (.+)\n\+ (.*)\n(?:= (.+)\n)?"
    for m in re.finditer(pattern, text, re.MULTILINE):
        file = f"src/c/{m[1]}.c"
        found.append(Fault(f"{m[1]} {m[2]}", m[3], None, file, m[4], m[5], m[6] or ""))
    return found


def faults() -> list[Fault]:
    folder = ROOT / "tests" / "mutants"
    patches = [Fault(p.stem, "a patch", p) for p in sorted(folder.glob("*.patch"))]
    return patches + engine((folder / "engine.txt").read_text())


def run(*command: str, timeout: float | None = None) -> tuple[int, str]:
    """Exit status (124: it took too long) and output."""
    path = os.pathsep.join([str(DEBUG / "site"), str(TREE / "tests")])
    environment = {
        **os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "LOP_TEST_STOP": "1",
    }  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=TREE, capture_output=True, text=True, check=False, timeout=timeout,
            env=environment, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, "took too long"
    return done.returncode, done.stdout + done.stderr


def mirror(source: Path, copy: Path) -> None:
    """Make `copy` equal to `source`; equal files keep their time, so that builds stay short."""
    if source.is_dir():
        copy.mkdir(parents=True, exist_ok=True)
        for stray in {p.name for p in copy.iterdir()} - {p.name for p in source.iterdir()}:
            path = copy / stray
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in source.iterdir():
            if path.name != "__pycache__":
                mirror(path, copy / path.name)
    elif not copy.is_file() or source.read_bytes() != copy.read_bytes():
        shutil.copyfile(source, copy)


class Stages:
    """The tests, one after the other, and what each takes without a fault."""

    def __init__(self, jobs: str) -> None:
        self.jobs = jobs
        self.takes: dict[str, float] = json.loads(TIMES.read_text()) if TIMES.exists() else {}

    def build(self, stage: str) -> tuple[int, str]:
        target = {
            "rows": "battery_rules",
            "met": "fuzz_expr",
            **dict.fromkeys(("few", "formulas", "pytest"), "_core"),
        }.get(stage, stage)
        return run("cmake", "--build", str(DEBUG), "-j", self.jobs, "--target", target)

    def command(self, stage: str) -> list[str]:
        if stage in ("few", "pytest"):
            files = FEW if stage == "few" else PYTEST
            return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
        if stage == "formulas":
            return [sys.executable, "-m", "formulas.hunt", "seeds", *FORMULAS]
        if stage == "rows":
            return [str(DEBUG / "tests" / "battery_rules"), "3", "", "6"]
        if stage == "met":
            return [str(DEBUG / "tests" / "fuzz_expr"), "0"]
        return [str(DEBUG / "tests" / stage)]

    def learn(self, stages: list[str]) -> str:
        """Run them without a fault; what is wrong, or nothing."""
        for stage in stages:
            start = time.perf_counter()
            if said := self.run(stage, None):
                return said
            self.takes[stage] = time.perf_counter() - start
            print(f"{stage}: {self.takes[stage]:.0f} s without a fault", flush=True)
            TIMES.write_text(json.dumps(self.takes))
        return ""

    def run(self, stage: str, limit: float | None) -> str:
        """What a stage says of the sources as they stand; nothing if it passes."""
        status, output = self.build(stage)
        if status:
            return f"does not compile:\n{output[-2000:]}"
        status, output = run(*self.command(stage), timeout=limit)
        if not status:
            return ""
        test = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        name = test[1] if stage in ("few", "pytest") and test else stage
        how = " (it hung)" if status == 124 else ""
        return f"caught by {name}{how}\n{output[-4000:]}"

    def judge(self, stages: list[str]) -> str:
        """Who notices: "caught by ..." is the good end."""
        for stage in stages:
            limit = HANGS * self.takes.get(stage, UNKNOWN) + 60
            if said := self.run(stage, limit):
                return said.splitlines()[0]
        return "SURVIVED" if stages[-1] == SLOW[-1] else PASSED


def chosen(names: list[str]) -> list[Fault]:
    every = faults()
    if not names:
        return every
    return [f for f in every if {f.name, f.name.split()[0], str(f.patch)} & set(names)]


def read(log: Path) -> dict[str, str]:
    """Verdicts by name and digest."""
    lines = log.read_text().splitlines() if log.exists() else []
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def verdict_of(fault: Fault, stages: Stages, before: str, quick: bool) -> str:
    if fault.equivalent:
        return f"equivalent: {fault.equivalent}"
    if wrong := fault.plant():
        return f"DOES NOT APPLY: {wrong}".splitlines()[0]
    try:
        first = [] if before == PASSED else QUICK
        return stages.judge(first if quick else first + SLOW)
    finally:
        fault.plant(back=True)


def prepare(stages: Stages, quick: bool, unchecked: bool) -> str:
    """Copy the sources, and run the tests without a fault; what is wrong, or nothing."""
    for name in ("src", "tests", "CMakeLists.txt", "CMakePresets.json", "pyproject.toml", "docs"):
        mirror(ROOT / name, TREE / name)
    made = (DEBUG / "CMakeCache.txt").exists()  # by either, and stays so
    ninja = ["-G", "Ninja"] if shutil.which("ninja") and not made else []  # sees sooner what is due
    status, output = run(
        "cmake", "--preset", "debug", *ninja, f"-DPython_EXECUTABLE={sys.executable}"
    )  # fmt: skip
    if status:
        return output[-2000:]
    return "" if unchecked else stages.learn(QUICK if quick else QUICK + SLOW)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--log", type=Path, default=TREE / "verdicts.txt")
    parser.add_argument("--quick", action="store_true", help="leave the slow stages for later")
    parser.add_argument(
        "--unchecked", action="store_true", help="believe that the tests pass as is"
    )
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    todo = chosen([n.removesuffix(".patch") for n in args.names])
    if not todo:
        print("no faults of these names in tests/mutants", file=sys.stderr)
        return 1
    TREE.mkdir(parents=True, exist_ok=True)
    stages = Stages(args.jobs)
    if wrong := prepare(stages, args.quick, args.unchecked):
        print(f"the sources without a fault do not pass:\n{wrong}", file=sys.stderr)
        return 1
    verdicts = read(args.log)
    for fault in todo:
        key = f"{fault.name} [{fault.digest()}]"
        before = verdicts.get(key, "")
        if not before.startswith("caught") and not (args.quick and before == PASSED):
            verdicts[key] = verdict_of(fault, stages, before, args.quick)
            print(f"{fault.name}: {verdicts[key]} ({fault.what})", flush=True)
            with args.log.open("a") as file:
                file.write(f"{key}: {verdicts[key]}\n")
    ends = [verdicts[f"{f.name} [{f.digest()}]"] for f in todo]
    caught = sum(v.startswith("caught") for v in ends)
    same = sum(v.startswith("equivalent") for v in ends)
    print(
        f"{caught} of {len(ends)} faults caught, {same} equivalent, {len(ends) - caught - same} not"
    )
    return caught + same < len(ends)


if __name__ == "__main__":
    sys.exit(main())
