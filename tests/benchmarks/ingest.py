"""Reading a log against peers that read JSON lines, as ratios of time and of memory measured in one run.

``python tests/benchmarks/ingest.py`` writes 100,000 run records of 40 fields, 18 of them signals, and a list
of 32 numbers each, and reads them in a process of its own for each contender, several times in turn; figures
are medians. Ratios are of the time of processors, so that other work on the machine matters less. Memory is
the peak of the process less its peak before it read: as it is by default, where the allocator of Polars keeps
for a while what was freed, and at least, in another run that gives back at once what is freed. Peers infer
types and check nothing; this library checks every field against the contract, finds keys that come twice, and
sorts the rows. A second file holds the same records as another program writes them, with a space after each
colon and comma; it is read line by line.

``--stream GB`` instead reads logs of up to that size without their lists, and without their signals too: the
memory is that of the columns that are kept.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from kvstats.log import RunRecord, StudyRecord
from kvstats.log.write import encode_record

READ = {
    "kvstats": "import kvstats.log\ndef read(path): return kvstats.log.read_log(path)",
    "kvstats, without lists": (
        "import kvstats.log\ndef read(path):\n"
        "    return kvstats.log.read_log(path, without=['certificate_per_head', 'prediction', 'references'])"
    ),
    "polars": "import polars\ndef read(path): return polars.read_ndjson(path)",
    "pandas": "import pandas\ndef read(path): return pandas.read_json(path, lines=True)",
    "orjson, rows in a list": (
        "import orjson\ndef read(path):\n    with open(path, 'rb') as file:\n"
        "        return [orjson.loads(line) for line in file]"
    ),
    "orjson, polars frame": (
        "import orjson, polars\ndef read(path):\n    with open(path, 'rb') as file:\n"
        "        return polars.DataFrame([orjson.loads(line) for line in file], infer_schema_length=None)"
    ),
}
"""How each contender reads a file; what it imports is not timed."""

STREAMED = {
    "kvstats, without lists and signals": READ["kvstats, without lists"].replace(
        "without=[", "without=['signals', 'seconds', 'memory_bytes', "
    )
}

MEASURE = """
import sys, time
def peak():
    # Linux's own figure: that of getrusage is no less than the memory of the process that began this one.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024
before, begin, busy = peak(), time.perf_counter(), time.process_time()
table = read(sys.argv[1])
print(time.perf_counter() - begin, time.process_time() - busy, peak() - before, peak())
"""


def study():
    return StudyRecord(
        schema_version=1,
        suite="s",
        model="m",
        dtype="float32",
        attention="sdpa",
        versions={},
        host="x86_64",
        settings={},
        template_hash="0",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def records(count):
    """Yield a study and runs of ten arms on the same inputs, in the order of a collection."""
    random = np.random.default_rng(0)
    names = [f"signal_{number:02}" for number in range(18)]
    yield study()
    for number in range(count):
        yield RunRecord(
            suite="s",
            model="m",
            task=f"task{number // 10 % 7}",
            input_id=f"{number // 10:07}",
            condition="aware",
            arm=f"arm{number % 10}",
            budget=0.25,
            score=float(number % 2),
            success=bool(number % 2),
            n_prompt=4096,
            n_kept=1024,
            kept_fraction=0.25,
            signals=dict(zip(names, random.random(18).tolist(), strict=True)),
            certificate_per_head=[random.random(32).tolist()],
            prediction=f"The special number is {number}.",
            references=[str(number)],
            seconds={"prefill": 0.5, "decode": 1.5},
            memory_bytes={"cache": 1 << 30},
            recorded_at=datetime.fromtimestamp(1_767_225_600 + number * 0.731, UTC),
        )


def write(path, count):
    with path.open("wb") as file:
        for record in records(count):
            file.write(encode_record(record) + b"\n")


def as_another_program_writes(path, other):
    with path.open("rb") as file, other.open("w") as out:
        for line in file:
            out.write(json.dumps(json.loads(line)) + "\n")


GIVE_BACK = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}
"""Makes the allocator of Polars give back what is freed at once."""


def measured(code, path, environment=None):
    """Return seconds of the clock and of processors, and MiB above the start and in all."""
    done = subprocess.run(
        [sys.executable, "-c", code + MEASURE, path],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (environment or {}),
    )
    if done.returncode:
        sys.exit(done.stderr)
    return tuple(map(float, done.stdout.split()))


def compare(paths, repeats):
    for label, path in paths.items():
        print(f"\n{label}, {path.stat().st_size / 1e6:.0f} MB")
        runs = {name: [] for name in READ}
        for _ in range(repeats):
            for name, code in READ.items():
                least = measured(code, path, GIVE_BACK)[2]
                runs[name].append((*measured(code, path), least))
        best = {
            name: [statistics.median(column) for column in zip(*found, strict=True)]
            for name, found in runs.items()
        }
        _, base, held, _, needed = best["polars"]
        print(f"{'':26}{'s':>8}{'CPU s':>8}{'ratio':>8}{'MiB':>8}{'ratio':>8}{'least':>8}{'ratio':>8}")
        for name, (wall, busy, memory, _, least) in best.items():
            print(
                f"{name:26}{wall:8.2f}{busy:8.2f}{busy / base:8.2f}"
                f"{memory:8.0f}{memory / held:8.2f}{least:8.0f}{least / needed:8.2f}"
            )


def stream(folder, gigabytes):
    """Read logs of growing size, without lists and without signals."""
    part = folder / "part.jsonl"
    write(part, 20_000)
    first, _, runs = part.read_bytes().partition(b"\n")
    print(f"{'GB':>6}{'runs':>12}  {'':34}{'s':>8}{'CPU s':>8}{'MiB':>8}{'process MiB':>14}")
    for share in (0.25, 0.5, 1.0):
        path = folder / "large.jsonl"
        copies = max(1, round(share * gigabytes * 1e9 / len(runs)))
        with path.open("wb") as file:
            file.write(first + b"\n")
            for copy in range(copies):
                # Another seed makes other runs of them.
                file.write(runs.replace(b'"seed":0,', b'"seed":%d,' % copy))
        for name in ("kvstats, without lists", "kvstats, without lists and signals"):
            wall, busy, memory, whole = measured((READ | STREAMED)[name], path)
            print(
                f"{path.stat().st_size / 1e9:6.2f}{20_000 * copies:12,}  {name:34}"
                f"{wall:8.0f}{busy:8.0f}{memory:8.0f}{whole:14.0f}"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--stream", type=float, metavar="GB")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        if arguments.stream:
            stream(folder, arguments.stream)
            return
        begin = time.perf_counter()
        own, other = folder / "own.jsonl", folder / "other.jsonl"
        write(own, arguments.records)
        as_another_program_writes(own, other)
        print(f"{arguments.records:,} run records, written in {time.perf_counter() - begin:.0f} s")
        compare({"as this library writes": own, "as another program writes": other}, arguments.repeats)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
