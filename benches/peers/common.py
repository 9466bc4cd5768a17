"""What the programs beside this file share: options, timing, processes on cores of their own, and the output.

`cargo xtask bench` runs WORKLOAD --framework F --device D --threads N --repeats R and reads one JSON object:
  implementation  framework and version
  seconds         median seconds, per what the workload is timed
  also            seconds of other ways to do the same work, by a description
  gemm_gflops     rate of f32 products of 4096 x 4096 matrices on a CUDA device, else null
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time


def arguments(description: str, workloads, frameworks=("torch",), devices=("cpu",)):
    """The options; a process that `workers` started has its cores in `worker`, and is bound to them."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("workload", choices=list(workloads))
    parser.add_argument("--framework", choices=frameworks, default="torch")
    parser.add_argument("--device", choices=devices, default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="counted measurements")
    parser.add_argument("--worker", type=int, help="internal: the first core of this process")
    own = parser.parse_args()
    if own.threads < 1 or own.repeats < 1:
        parser.error("--threads and --repeats must be at least 1")
    if own.device == "cuda" and own.framework != "torch":
        parser.error("--device cuda is for --framework torch")
    # Before the frameworks are loaded: both ask then how many cores there are.
    if own.worker is not None and own.device == "cpu" and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        first = own.worker % len(cores)
        os.sched_setaffinity(0, (cores + cores)[first : first + own.threads])
    return own


def workers(own, count: int, threads: int, **environment):
    """The outputs of `count` processes with `threads` threads each, that run at the same time."""
    options = ["--framework", own.framework, "--device", own.device, "--repeats", str(own.repeats)]
    started = []
    for index in range(count):
        command = [sys.executable, sys.argv[0], own.workload, *options, "--threads", str(threads)]
        command += ["--worker", str(index * threads)]
        started.append(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
            )
        )
    texts = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        sys.exit(1)
    return [json.loads(text) for text in texts]


def together(outputs) -> float:
    """Seconds per run of processes that share the machine: rates add up, times do not."""
    return 1 / sum(1 / output["seconds"] for output in outputs)


def print_times(implementation: str, seconds: float, also=None, gemm_gflops=None) -> None:
    output = {"implementation": implementation, "seconds": seconds}
    print(json.dumps({**output, "also": also or {}, "gemm_gflops": gemm_gflops}))


def median_seconds(run, repeats: int, wait=lambda: None, at_least_s: float = 0.3) -> float:
    """Median over `repeats` measurements of at least `at_least_s` each, in seconds per run."""
    for _ in range(2):
        run()
    wait()
    start = time.perf_counter()
    run()
    wait()
    count = max(1, math.ceil(at_least_s / (time.perf_counter() - start)))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            run()
        wait()
        seconds.append((time.perf_counter() - start) / count)
    return statistics.median(seconds)
