"""The model core: descriptions of a deployment and their readers, without any user interface."""

from model_core.evaluate import evaluate
from model_core.results import Evaluation
from model_core.spec import Design

__all__ = ["Design", "Evaluation", "evaluate"]
