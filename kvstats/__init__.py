"""Statistics for what KV-cache eviction did to a language model's answers."""

from kvstats.errors import InputError
from kvstats.log import Log, log_schema, read_log

__all__ = ["InputError", "Log", "log_schema", "read_log"]
