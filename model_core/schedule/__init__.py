"""Pipeline schedules: what every rank does in order, and the readers of that."""

from model_core.schedule.bubbles import BubbleCauses, bubble_causes
from model_core.schedule.exports import ops_text, perfetto_trace, pytorch_csv, summary
from model_core.schedule.formulas import BubbleFormula, bubble_formulas
from model_core.schedule.memory import (
    ActivationMemory,
    activation_memory,
    parameter_copies,
    parameter_share,
)
from model_core.schedule.operations import LETTERS, Layout, OpKind, Schedule
from model_core.schedule.registry import KINDS, ScheduleKind, nearest_sizes, schedule
from model_core.schedule.simulate import Durations, Simulation, StageDurations, simulate
from model_core.schedule.step import StepTimes, step_times

__all__ = [
    "KINDS",
    "LETTERS",
    "ActivationMemory",
    "BubbleCauses",
    "BubbleFormula",
    "Durations",
    "Layout",
    "OpKind",
    "Schedule",
    "ScheduleKind",
    "Simulation",
    "StageDurations",
    "StepTimes",
    "activation_memory",
    "bubble_causes",
    "bubble_formulas",
    "nearest_sizes",
    "ops_text",
    "parameter_copies",
    "parameter_share",
    "perfetto_trace",
    "pytorch_csv",
    "schedule",
    "simulate",
    "step_times",
    "summary",
]
