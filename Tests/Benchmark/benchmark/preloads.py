# SPDX-License-Identifier: Apache-2.0
"""Workers with a library of the benchmark's in them."""

from __future__ import annotations

import shlex
from pathlib import Path


def preloading(script: Path, worker: Path, library: Path, **environment: Path) -> Path:
    """A program that is the worker with a library preloaded, for `camerabusd --worker`."""
    variables = {"LD_PRELOAD": library, **environment}
    words = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())
    script.write_text(f'#!/bin/sh\n{words} exec {shlex.quote(str(worker.resolve()))} "$@"\n')
    script.chmod(0o755)
    return script
