"""Plant each fault of tests/mutants in a copy of the sources; the tests must notice.

    python tools/mutants.py [--jobs N] [--log FILE] [--unchecked] [name ...]

Faults are patches (as `git diff` writes them, paths from the repository's root) and the entries of
engine.txt, one line of src/c each. The C tests run first, the quickest at the head, then a
chosen few files of pytest against the same build; each stage is built when it is reached. A fault
that passes all has survived: the tests need mending. Names select: "fuse" is all of that file,
"fuse 3" one, "stale-spectrum" a patch. A log that exists is continued: what it names is not run
again. Exits with 1 if any survives, does not apply or does not compile.
"""

import argparse
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
# The quickest first; "pytest" is PYTEST, against the same build.
STAGES = (
    "test_plan test_branches test_plan_check test_core test_chain "
    "test_plans test_vjp test_ruleset test_chains oom "
    "fuzz_expr battery_rules pytest test_krylov battery_kinds test_threads"
).split()
PYTEST = (
    "tests/rewriting/test_engine_plans.py tests/rewriting/test_engine_inference.py "
    "tests/rewriting/test_fused_sums.py tests/kinds/test_stacks.py tests/rewriting/test_laab.py "
    "tests/rewriting/test_several_results.py tests/linalg/test_factor_kept.py "
    "tests/lazy/test_lazy.py tests/rewriting/test_woodbury_sums.py "
    "tests/linalg/test_determinants.py tests/rewriting/test_normal_equations.py "
    "tests/contract/test_accuracy.py tests/rewriting/test_structural_inverse.py "
    "tests/contract/test_freshness.py tests/rewriting/test_rules.py "
    "tests/rewriting/test_shared_inverses.py tests/kinds/test_indexing_axes.py "
    "tests/rewriting/test_coefficients.py tests/linalg/test_inverse_diagonals.py "
    "tests/linalg/test_factorized.py tests/lazy/test_programs.py "
    "tests/contract/test_due_results.py tests/rewriting/test_plan_data.py "
    "tests/linalg/test_band_inverse_traces.py tests/linalg/test_toeplitz_one_factor.py "
    "tests/rewriting/test_nested_sums.py tests/contract/test_slow_and_large.py "
    "tests/contract/test_assumed_sums.py tests/contract/test_out_of_range.py "
).split()
HANGS = 10  # times what a stage takes without a fault, and a minute
UNKNOWN = 90.0  # seconds of a stage, where that was not looked at


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
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
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
        self.takes: dict[str, float] = {}

    def build(self, target: str) -> tuple[int, str]:
        return run("cmake", "--build", str(DEBUG), "-j", self.jobs, "--target", target)

    def command(self, stage: str) -> list[str]:
        if stage != "pytest":
            return [str(DEBUG / "tests" / stage)]
        return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *PYTEST]

    def judge(self, known: bool = True) -> str:
        """Who notices: "caught by ..." is the good end. Not `known`: to learn the times."""
        if status := self.build("lopcore")[0]:
            return "does not compile"
        for stage in STAGES:
            status, output = self.build("_core" if stage == "pytest" else stage)
            if status:
                return f"does not compile:\n{output[-2000:]}"
            start = time.perf_counter()
            limit = HANGS * self.takes.get(stage, UNKNOWN) + 60 if known else None
            status, output = run(*self.command(stage), timeout=limit)
            if not known:
                self.takes[stage] = time.perf_counter() - start
            if status:
                test = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
                name = test[1] if stage == "pytest" and test else stage
                if not known:
                    return f"{name} fails:\n{output[-4000:]}"
                return f"caught by {name}" + (" (it hung)" if status == 124 else "")
        return "SURVIVED"


def chosen(names: list[str]) -> list[Fault]:
    every = faults()
    if not names:
        return every
    return [f for f in every if {f.name, f.name.split()[0], str(f.patch)} & set(names)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--log", type=Path)
    parser.add_argument(
        "--unchecked", action="store_true", help="believe that the tests pass as is"
    )
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    todo = chosen([n.removesuffix(".patch") for n in args.names])
    log = args.log.read_text().splitlines() if args.log and args.log.exists() else []
    verdicts = dict(line.split(": ", 1) for line in log if ": " in line)
    if not todo:
        print("no faults of these names in tests/mutants", file=sys.stderr)
        return 1
    for name in ("src", "tests", "CMakeLists.txt", "CMakePresets.json", "pyproject.toml", "docs"):
        mirror(ROOT / name, TREE / name)
    stages = Stages(args.jobs)
    status, output = run("cmake", "--preset", "debug", f"-DPython_EXECUTABLE={sys.executable}")
    clean = output[-2000:] if status else ""
    if not clean and not args.unchecked:
        clean = stages.judge(known=False).removeprefix("SURVIVED")
    if clean:
        print(f"the sources without a fault do not pass:\n{clean}", file=sys.stderr)
        return 1
    for fault in todo:
        if fault.name not in verdicts:
            if fault.equivalent:
                verdict = f"equivalent: {fault.equivalent}"
            elif wrong := fault.plant():
                verdict = f"DOES NOT APPLY: {wrong}"
            else:
                verdict = stages.judge()
                fault.plant(back=True)
            verdicts[fault.name] = verdict.splitlines()[0]
            print(f"{fault.name}: {verdict} ({fault.what})", flush=True)
            if args.log:
                with args.log.open("a") as file:
                    file.write(f"{fault.name}: {verdicts[fault.name]}\n")
    ends = [verdicts[f.name] for f in todo]
    caught = sum(v.startswith("caught") for v in ends)
    same = sum(v.startswith("equivalent") for v in ends)
    print(
        f"{caught} of {len(ends)} faults caught, {same} equivalent, {len(ends) - caught - same} not"
    )
    return caught + same < len(ends)


if __name__ == "__main__":
    sys.exit(main())
