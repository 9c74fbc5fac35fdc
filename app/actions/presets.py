"""Presets as commands: take a model, a cluster or a workload, or open a whole design."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from app.actions.file import FileActions
from app.document import DesignDocument
from app.i18n import tr, tr_text
from model_core.spec import Design


@dataclass(frozen=True)
class PresetCommand:
    """One preset as the palette lists it."""

    text: str
    icon: str
    run: Callable[[], object]


class PresetCommands:
    """Lists every preset; reading their titles is left to the first call of `commands`."""

    def __init__(self, document: DesignDocument, files: FileActions) -> None:
        self._document = document
        self._files = files

    def commands(self) -> Iterator[PresetCommand]:
        """Yield models, clusters, workloads and designs."""
        from presets import names, title

        for name in names("models"):
            text = tr("Model: {title}", title=title("models", name))
            yield PresetCommand(text, "model", partial(self.use_model, name))
        for name in names("clusters"):
            text = tr("Cluster: {title}", title=title("clusters", name))
            yield PresetCommand(text, "cluster", partial(self.use_cluster, name))
        for name in names("workloads"):
            text = tr("Workload: {title}", title=tr_text(title("workloads", name)))
            yield PresetCommand(text, "workload", partial(self.use_workload, name))
        for name in names("designs"):
            text = tr("Open design: {title}", title=name)
            yield PresetCommand(text, "folder", partial(self._files.open_preset, name))

    def use_model(self, name: str) -> None:
        """Change the model to a preset."""
        from presets import load_model

        model = load_model(name)
        self._push(self._document.design.replace(model=model), model.name)

    def use_cluster(self, name: str) -> None:
        """Change the cluster to a preset; a mesh made for other axes goes back to automatic."""
        from presets import load_cluster

        cluster = load_cluster(name)
        design = self._document.design
        mesh = design.plan.mesh
        if mesh is not None and set(sum(mesh.axes().values(), ())) != set(cluster.axes):
            design = design.replace(plan=design.plan.replace(mesh=None))
        self._push(design.replace(cluster=cluster), cluster.name)

    def use_workload(self, name: str) -> None:
        """Change the workload to a preset."""
        from presets import load_workload

        workload = load_workload(name)
        self._push(self._document.design.replace(workload=workload), tr_text(workload.name))

    def _push(self, design: Design, name: str) -> None:
        self._document.push(design, tr("Use {name}", name=name))
