"""Plant each fault of tests/mutants/*.patch in a copy of the sources; the C tests must notice.

    python tools/mutants.py [--jobs N] [patch ...]

A patch (as `git diff` writes it, paths from the repository's root) that applies, compiles and
passes all C tests has survived: the tests need mending. Exits with 1 if any survives, does not
apply or does not compile.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "mutants"


def run(*command: str) -> tuple[int, str]:
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def mirror(source: Path, copy: Path) -> None:
    """Make `copy` equal to `source`; equal files keep their time, so that builds stay short."""
    if source.is_dir():
        copy.mkdir(parents=True, exist_ok=True)
        for stray in {p.name for p in copy.iterdir()} - {p.name for p in source.iterdir()}:
            path = copy / stray
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in source.iterdir():
            mirror(path, copy / path.name)
    elif not copy.is_file() or source.read_bytes() != copy.read_bytes():
        shutil.copyfile(source, copy)


def build(jobs: str) -> tuple[int, str]:
    return run("cmake", "--build", "--preset", "debug", "-j", jobs)


def check(jobs: str) -> tuple[int, str]:
    return run("ctest", "--preset", "debug", "--no-tests=error", "--stop-on-failure", "-j", jobs)


def judge(patch: Path, jobs: str) -> str:
    """What became of this mutant; "caught" is the good end. Leaves the tree clean."""
    status, output = run("patch", "-p1", "--forward", "-i", str(patch))
    if status:
        run("patch", "-p1", "--reverse", "--force", "-i", str(patch))
        return f"does not apply:\n{output}"
    try:
        status, output = build(jobs)
        if status:
            return f"does not compile:\n{output[-2000:]}"
        status, _ = check(jobs)
        return "caught" if status else "SURVIVED"
    finally:
        run("patch", "-p1", "--reverse", "-i", str(patch))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default="2")
    parser.add_argument("patches", nargs="*", type=Path)
    args = parser.parse_args()
    patches = [p.resolve() for p in args.patches]
    patches = patches or sorted((ROOT / "tests" / "mutants").glob("*.patch"))
    if not patches:
        print("no patches in tests/mutants", file=sys.stderr)
        return 1
    for name in ("src", "tests/c", "CMakeLists.txt", "CMakePresets.json"):
        mirror(ROOT / name, TREE / name)
    python = f"-DPython_EXECUTABLE={sys.executable}"
    for step in (
        run("cmake", "--preset", "debug", "-DPYLINOP_BUILD_PYTHON=OFF", python),
        build(args.jobs),
        check(args.jobs),
    ):
        if step[0]:
            print(f"the sources without a fault do not pass:\n{step[1][-4000:]}", file=sys.stderr)
            return 1
    wrong = 0
    for patch in patches:
        verdict = judge(patch, args.jobs)
        wrong += verdict != "caught"
        print(f"{patch.name}: {verdict}", flush=True)
    print(f"{len(patches) - wrong} of {len(patches)} mutants caught")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
