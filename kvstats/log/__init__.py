"""Reading and writing logs: the contract, and the frames that everything else works on."""

from kvstats.log.frames import Log, log_from_records
from kvstats.log.read import read_log
from kvstats.log.records import InputRecord, ReplayRecord, RunRecord, StudyRecord, log_schema
from kvstats.log.write import LogWriter

__all__ = [
    "InputRecord",
    "Log",
    "LogWriter",
    "ReplayRecord",
    "RunRecord",
    "StudyRecord",
    "log_from_records",
    "log_schema",
    "read_log",
]
