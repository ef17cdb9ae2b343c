"""The command of the recorder where only the library is installed."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["torch", "transformers"])
def test_it_says_what_is_missing(name):
    code = f"import sys; sys.modules[{name!r}] = None; from collectors.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("collect: recording needs torch and transformers (")
    assert done.stderr.endswith("install them with pip install 'kvstats[collect]'\n")
    assert "Traceback" not in done.stderr
