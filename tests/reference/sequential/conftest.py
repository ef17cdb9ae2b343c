"""The script here needs a package that the tests do not."""

collect_ignore = ["confseq_values.py"]
