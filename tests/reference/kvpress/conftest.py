"""The script runs in an environment of its own, which has kvpress."""

collect_ignore = ["make.py"]
