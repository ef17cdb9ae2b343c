"""Needle tasks of our own making, in the shape of RULER's, deterministic from a seed."""

from collectors.tasks.example import TASKS, Example, example_id, make_example
from collectors.tasks.score import score
from collectors.tasks.templates import template_hash

__all__ = ["TASKS", "Example", "example_id", "make_example", "score", "template_hash"]
