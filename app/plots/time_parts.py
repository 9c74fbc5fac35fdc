"""The parts of a step's time: what they are called, how they add up, and the axis they are measured on."""

from __future__ import annotations

from typing import Final

from app.i18n import tr
from app.plots.chart import Scale, axis
from app.plots.scene import SceneBuilder
from app.theme import Role
from model_core.results import TimeBudget
from model_core.units import format_number

PART_ROLES: Final = (
    Role.COMPUTE,
    Role.WEIGHT,
    Role.KV,
    Role.ACTIVATION,
    Role.COMMUNICATION,
    Role.LOCAL,
)
"""Parts of a step; activations that pass through memory, and fixed costs, only with a calibration."""


def step_parts(budget: TimeBudget) -> dict[Role, float]:
    """Split the step by what each operation waits for; the parts add up to the step."""
    parts = dict.fromkeys(PART_ROLES, 0.0)
    for op in budget.ops:
        if op.compute_s >= op.loading_s:
            parts[Role.COMPUTE] += op.count * op.compute_s
        else:
            parts[Role.WEIGHT] += op.count * op.weight_s
            parts[Role.KV] += op.count * op.kv_s
            parts[Role.ACTIVATION] += op.count * op.activation_s
        parts[Role.COMMUNICATION] += op.count * op.exposed_s
        parts[Role.LOCAL] += op.count * op.fixed_s
    return parts


def roles_of(budget: TimeBudget) -> tuple[Role, ...]:
    """Return the parts that a legend needs: the last ones only where there are some."""
    parts = step_parts(budget)
    optional = (Role.ACTIVATION, Role.LOCAL)
    return tuple(role for role in PART_ROLES if role not in optional or parts[role])


def part_name(role: Role) -> str:
    """Name a part of the time."""
    return {
        Role.COMPUTE: tr("compute"),
        Role.WEIGHT: tr("weight loading"),
        Role.KV: tr("KV loading"),
        Role.COMMUNICATION: tr("exposed communication"),
        Role.HIDDEN: tr("hidden communication"),
        Role.ACTIVATION: tr("activation traffic"),
        Role.LOCAL: tr("fixed costs"),
    }[role]


def unit_of(top: float) -> tuple[float, str]:
    """Choose the unit of an axis by its largest value."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if top >= 2 * unit:
            return unit, name
    return 1e-9, "ns"


def ruled(builder: SceneBuilder, scale: Scale, top: float, bottom: float) -> None:
    """Rule an axis of time below some bars."""
    unit, name = unit_of(scale.top_value)
    axis(builder, scale, top, bottom, unit, lambda value: f"{format_number(value)} {name}")
