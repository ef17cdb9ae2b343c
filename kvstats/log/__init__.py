"""Reading and writing logs: the contract, and the frames that everything else works on."""

from kvstats.log.build import log_from_records
from kvstats.log.comparison import compare_logs
from kvstats.log.declared_columns import Columns
from kvstats.log.frames import Log
from kvstats.log.from_frame import from_frame
from kvstats.log.read import read_log
from kvstats.log.records import InputRecord, ReplayRecord, RunRecord, StudyRecord, log_schema
from kvstats.log.write import LogWriter

__all__ = [
    "Columns",
    "InputRecord",
    "Log",
    "LogWriter",
    "ReplayRecord",
    "RunRecord",
    "StudyRecord",
    "compare_logs",
    "from_frame",
    "log_from_records",
    "log_schema",
    "read_log",
]
