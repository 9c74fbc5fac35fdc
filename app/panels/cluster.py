"""The cluster panel: the chip and the network that joins many of them."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QLabel, QWidget

import presets
from app.document import DesignDocument
from app.i18n import tr
from app.panels.mesh_choice import with_cluster
from app.panels.panel import FieldPanel
from app.panels.preset_picker import PresetPicker
from app.panels.shape_edit import ShapeBinding, ShapeEdit
from app.theme.fonts import tabular
from model_core.spec import ChipSpec, ClusterSpec, Design, NodeTopology, TorusTopology

_TOPOLOGY: Final = "cluster.topology"


def _wrap_rules() -> tuple[tuple[str, str], ...]:
    return (
        ("cubes_of_4", tr("multiples of 4")),
        ("axis_of_16", tr("axis of 16")),
        ("all", tr("every axis")),
        ("none", tr("none")),
    )


class ClusterPanel(FieldPanel):
    """Edits `Design.cluster`; shows the fields of a torus or those of nodes."""

    def __init__(self, document: DesignDocument, parent: QWidget | None = None) -> None:
        super().__init__(document, "cluster", parent)
        self._picker = PresetPicker("clusters", self)
        self._picker.preset_chosen.connect(self._on_cluster_chosen)
        self._chips = QLabel("—", self)
        self._chips.setFont(tabular(bold=True))
        self._chip_picker = PresetPicker("chips", self)
        self._chip_picker.preset_chosen.connect(self._on_chip_chosen)
        self._add_summary()
        self._torus = self.add_group(tr("Torus"), unfolded=False)
        self._add_torus()
        self._nodes = self.add_group(tr("Nodes"), unfolded=False)
        self._add_nodes()
        self._add_chip()
        self.start()

    def show_design(self, design: Design) -> None:
        """Show the presets, the number of chips and the fields of the topology."""
        cluster = design.cluster
        self._picker.show_part(cluster)
        self._chip_picker.show_part(cluster.chip)
        self._chips.setText(f"{cluster.n_chips:,}")
        is_torus = isinstance(cluster.topology, TorusTopology)
        self._chip.set_digest(cluster.chip.name)
        self._torus.set_digest(_shape(cluster))
        self._nodes.set_digest(_shape(cluster))
        self._torus.setVisible(is_torus)
        self._nodes.setVisible(not is_torus)

    def _add_summary(self) -> None:
        form = self.add_form()
        text = tr("A cluster that can be had; choosing one sets every field below, as one undo step")
        self.add_row(form, "cluster", tr("Preset"), self._picker, text)
        text = tr("Chips in the cluster")
        self.add_row(form, "cluster.chips", tr("Chips"), self._chips, text)

    def _add_torus(self) -> None:
        form, path = self._torus.form, f"{_TOPOLOGY}.shape"
        self.add_binding(form, ShapeBinding(self.document, path, tr("Shape"), ShapeEdit(self)), TorusTopology)
        self.add_field(form, TorusTopology, f"{_TOPOLOGY}.link_bandwidth", tr("Link bandwidth"))
        self.add_field(form, TorusTopology, f"{_TOPOLOGY}.hop_latency", tr("Hop latency"))
        self.add_field(form, TorusTopology, f"{_TOPOLOGY}.wrap", tr("Wraparound"), _wrap_rules())

    def _add_nodes(self) -> None:
        fields = (
            ("n_nodes", tr("Nodes")),
            ("chips_per_node", tr("Chips per node")),
            ("nvlink_bandwidth", tr("NVLink")),
            ("nvlink_latency", tr("NVLink latency")),
            ("nic_bandwidth", tr("NIC")),
            ("nic_latency", tr("NIC latency")),
        )
        for name, label in fields:
            self.add_field(self._nodes.form, NodeTopology, f"{_TOPOLOGY}.{name}", label)

    def _add_chip(self) -> None:
        self._chip = self.add_group(tr("Chip"), unfolded=False)
        form = self._chip.form
        text = tr("A chip that can be had; the network stays as it is")
        self.add_row(form, "cluster.chip", tr("Chip"), self._chip_picker, text)
        fields = (
            ("peak_bf16", tr("bfloat16 peak")),
            ("peak_int8", tr("int8 peak")),
            ("peak_fp8", tr("FP8 peak")),
            ("hbm_capacity", tr("HBM")),
            ("hbm_bandwidth", tr("HBM bandwidth")),
            ("n_sms", tr("SMs")),
            ("price_per_hour", tr("Price")),
            ("power", tr("Power")),
        )
        for name, label in fields:
            self.add_field(form, ChipSpec, f"cluster.chip.{name}", label)

    def _on_cluster_chosen(self, name: str) -> None:
        cluster = presets.load_cluster(name)
        changed = with_cluster(self.document.design, cluster)
        self.document.push(changed, tr("Choose {name}", name=cluster.name))

    def _on_chip_chosen(self, name: str) -> None:
        design, chip = self.document.design, presets.load_chip(name)
        changed = design.replace(cluster=design.cluster.replace(chip=chip))
        self.document.push(changed, tr("Choose {name}", name=chip.name))


def _shape(cluster: ClusterSpec) -> str:
    return " × ".join(str(size) for size in cluster.axes.values())
