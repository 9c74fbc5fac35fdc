"""What the drawings say about the tensors and operations of an evaluated program, as text."""

from __future__ import annotations

from app.i18n import tr, tr_text
from model_core.partition.cost import tensor_bytes
from model_core.partition.program import Collective, Einsum, LayerProgram, LocalKind, Op, Role, Tensor
from model_core.partition.sizes import Sizes
from model_core.results import Evaluation, OpTime
from model_core.spec import AttentionSharding, Design, FfnLayout, Phase, TrainingSpec
from model_core.stages import element_bytes
from model_core.units import BYTES, SECONDS, format_quantity

LAYOUT_NAMES = {
    FfnLayout.WEIGHT_STATIONARY_1D: "1D weight-stationary",
    FfnLayout.WEIGHT_STATIONARY_2D: "2D weight-stationary",
    FfnLayout.WEIGHT_GATHERED_X: "X-weight-gathered",
    FfnLayout.WEIGHT_GATHERED_XY: "XY-weight-gathered",
    FfnLayout.WEIGHT_GATHERED_XYZ: "XYZ-weight-gathered",
}
PHASE_NAMES = {Phase.PREFILL: "prefill", Phase.DECODE: "decode", Phase.TRAINING: "training"}


def layout_text(evaluation: Evaluation) -> str:
    """Name the layout: that of the feedforward layer, or how experts and attention are parallel."""
    design, sizes = evaluation.design, evaluation.sizes
    if design.workload.phase is Phase.TRAINING:
        return degrees_text(design)
    if not sizes or (design.model.moe is None and design.model.mla is None):
        return tr_text(LAYOUT_NAMES[design.plan.ffn_layout])
    tensor, data = sizes["z"], sizes["x"] * sizes["y"]
    if design.model.moe is None:
        return f"TP{tensor} · DP{data}"
    return f"TP{tensor} · DP{data} · EP{tensor * data}"


def degrees_text(design: Design) -> str:
    """Name the degrees of a training step."""
    training = design.plan.training or TrainingSpec()
    pp = 1 if design.plan.schedule is None else design.plan.schedule.pp
    dp = max(1, design.cluster.n_chips // (training.tp * training.cp * pp))
    degrees = {"TP": training.tp, "CP": training.cp, "PP": pp, "DP": dp}
    if design.model.moe is not None:
        degrees["EP"] = training.ep
    return " · ".join(f"{name}{ways}" for name, ways in degrees.items() if ways > 1 or name == "TP")


def attention_text(evaluation: Evaluation) -> str:
    """Say what the attention is split over."""
    design = evaluation.design
    plan = design.plan
    if design.model.moe is not None or design.model.mla is not None:
        return tr("attention sharded over heads and batch")
    if plan.attention_sharding is AttentionSharding.BATCH:
        return tr("attention sharded over batch")
    return tr("attention sharded over heads")


def seconds(value: float) -> str:
    """Write a time."""
    return format_quantity(value, SECONDS)


def amount(value: float) -> str:
    """Write a number of bytes."""
    return format_quantity(value, BYTES)


def short_name(tensor: Tensor) -> str:
    """Return a tensor's name without the number that makes it unique."""
    return tensor.name.partition(".")[0]


class ProgramFacts:
    """Texts about one program of an evaluation."""

    def __init__(self, evaluation: Evaluation, name: str) -> None:
        self.name = name
        self.program: LayerProgram = evaluation.programs[name]
        self._sizes = Sizes(dict(evaluation.sizes))
        self._element_bytes = element_bytes(evaluation.design.plan)
        ops = () if evaluation.time is None else evaluation.time.ops
        self._times = {op.index: op for op in ops if op.program == name}
        self._held: dict[str, str] = {}
        self.mesh = {axis: evaluation.sizes[axis] for axis in self.program.mesh_axes}

    def time_of(self, index: int) -> OpTime | None:
        """Return the time of an operation, where it is known."""
        return self._times.get(index)

    def shape(self, tensor: Tensor) -> str:
        """Write the shape that one chip holds."""
        return f"[{', '.join(str(size) for size in self._sizes.shape(tensor.sharding))}]"

    def bytes(self, tensor: Tensor) -> str:
        """Write the bytes that one chip holds."""
        return amount(float(tensor_bytes(tensor, self._sizes, self._element_bytes)))

    def held(self, tensor: Tensor) -> str:
        """Write shape and bytes."""
        found = self._held.get(tensor.name)
        if found is None:
            found = self._held[tensor.name] = f"{self.shape(tensor)} · {self.bytes(tensor)}"
        return found

    def sent(self, time: OpTime) -> str:
        """Write what a collective sends and how long it takes."""
        return f"{amount(time.collective_bytes)} · {seconds(time.communication_s)}"

    def op_key(self, index: int) -> str:
        """Return the key that explains an operation."""
        return f"op/{self.name}/{index}"

    def tensor_key(self, tensor: Tensor) -> str:
        """Return the key that explains a tensor."""
        return f"tensor/{self.name}/{tensor.name}"

    def sharding_words(self, tensor: Tensor) -> tuple[str, ...]:
        """Say over which axes a tensor is split, replicated or still to be summed."""
        sharding = tensor.sharding
        split = "".join(sorted("".join(sharding.axes)))
        words = [tr("split over {axes}", axes=split)] if split else []
        if sharding.partial:
            words.append(tr("partial sums over {axes}", axes="".join(sorted(sharding.partial))))
        same = sharding.replicated_axes(self.program.mesh_axes)
        if same:
            words.append(tr("replicated over {axes}", axes=same))
        return tuple(words)

    def tensor_words(self, tensor: Tensor) -> tuple[str, ...]:
        """Say what a tensor is, what a chip holds of it, and how it is split."""
        held = tr("{held} per chip", held=self.held(tensor))
        return (role_name(tensor.role), held, *self.sharding_words(tensor))

    def work_words(self, index: int) -> tuple[str, ...]:
        """Say how long an operation takes and what it moves."""
        time = self.time_of(index)
        if time is None:
            return ()
        words = []
        if time.communication_s:
            words.append(tr("{bytes} sent per chip", bytes=amount(time.collective_bytes)))
            words.append(_exposure(time))
        for text, value in (
            (tr("compute"), time.compute_s),
            (tr("weight loading"), time.weight_s),
            (tr("KV loading"), time.kv_s),
        ):
            if value:
                words.append(f"{text} {seconds(value)}")
        return tuple(words)


def _exposure(time: OpTime) -> str:
    whole, exposed = time.communication_s, time.exposed_s
    if exposed <= 0:
        return tr("{time}, all of it hidden", time=seconds(whole))
    if exposed >= whole * (1 - 1e-9):
        return tr("{time}, all of it exposed", time=seconds(whole))
    return tr("{time}, of which {exposed} exposed", time=seconds(whole), exposed=seconds(exposed))


def op_name(op: Op) -> str:
    """Write what an operation does, in short."""
    if isinstance(op, Einsum):
        return op.equation.replace("->", " → ").replace(",", ", ")
    if isinstance(op, Collective):
        return f"{op.kind}({''.join(sorted(op.axes))})"
    return "SwiGLU" if op.kind is LocalKind.GATED_ACTIVATION else tr_text(str(op.kind))


def role_name(role: Role) -> str:
    """Write what a tensor is."""
    return {
        Role.WEIGHT: tr("weight"),
        Role.ACTIVATION: tr("activations"),
        Role.KV: tr("KV cache"),
        Role.STATISTIC: tr("statistics of the norm"),
        Role.TOKEN: tr("tokens"),
        Role.ON_CHIP: tr("never leaves the chip"),
        Role.DISPATCHED: tr("tokens at their experts"),
        Role.ROUTING: tr("experts of each token and their weights"),
    }[role]
