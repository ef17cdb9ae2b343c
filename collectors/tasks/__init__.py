"""Tasks in the shape of RULER's and of an agent's memory, deterministic from a seed, and tasks from files."""

from collectors.tasks.example import Example, example_id
from collectors.tasks.make import TASKS, make_example
from collectors.tasks.score import score
from collectors.tasks.sources import Source
from collectors.tasks.templates import template_hash

__all__ = ["TASKS", "Example", "Source", "example_id", "make_example", "score", "template_hash"]
