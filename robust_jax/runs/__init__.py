"""What is kept of a run, the options it is made with, and how far it has come."""

from robust_jax.runs.command_line import convert, parse
from robust_jax.runs.directory import CONFIG_FILE, FEATURES_FOLDER, RESULTS_FILE, RunDirectory, open_run, read_config
from robust_jax.runs.features import FeatureStore
from robust_jax.runs.finished import FinishedRun, check_finished, intact, read_finished_file, write_finished
from robust_jax.runs.interruption import orderly_interrupt
from robust_jax.runs.options import NEUTRAL, RunOptions, SuiteOptions, check_least, fingerprint, flag, plain
from robust_jax.runs.progress import ByteProgress, Progress
from robust_jax.runs.results import read_results, write_results
from robust_jax.runs.samples import Key, SampleStore, counts_by_status, sample_key
from robust_jax.runs.writing import SAMPLES_FILE, json_text, keeping, write_atomically

__all__ = [
    "CONFIG_FILE",
    "FEATURES_FOLDER",
    "NEUTRAL",
    "RESULTS_FILE",
    "SAMPLES_FILE",
    "ByteProgress",
    "FeatureStore",
    "FinishedRun",
    "Key",
    "Progress",
    "RunDirectory",
    "RunOptions",
    "SampleStore",
    "SuiteOptions",
    "check_finished",
    "check_least",
    "convert",
    "counts_by_status",
    "fingerprint",
    "flag",
    "intact",
    "json_text",
    "keeping",
    "open_run",
    "orderly_interrupt",
    "parse",
    "plain",
    "read_config",
    "read_finished_file",
    "read_results",
    "sample_key",
    "write_atomically",
    "write_finished",
    "write_results",
]
