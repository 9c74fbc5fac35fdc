"""Texts of the core that contain values, in the user's language."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from app.i18n import tr_text

# As the core words them; the first that fits counts, so the narrow ones come first.
PATTERNS: Final = (
    "n_heads = {heads} is not a multiple of n_kv_heads = {kv_heads}",
    "n_heads_unpadded = {unpadded} exceeds n_heads = {heads}",
    "moe.n_dense_layers = {dense} exceeds n_layers = {layers}",
    "n_experts_per_token = {chosen} exceeds n_routed_experts = {experts}",
    "{field} = {value} is too small",
    "{field} = {value} is too large",
    "{field} is not a finite number",
    "split over {axes}",
    "{share}% of the memory",
    "{program}, operation {index}",
    "{dtype}, context {context}",
    "{dtype}, {group}",
    "stages {stages}; {count} microbatches in flight",
    "stages {stages}; {count} chunks in flight",
    "stages {stages}",
    "Calibrated: {stack}, ± {band}.",
)
# What a value looks like, where a wider guess would also fit other texts.
_SHAPES: Final = {
    "axes": "[a-z]+",
    "band": r"\d+%",
    "context": r"\d+",
    "dtype": r"\w+",
    "group": r"[\w ]+",
    "index": r"\d+",
    "share": r"[\d.]+",
    "stages": r"[\d, ]+",
    "count": r"\d+",
}


def tr_core(text: str) -> str:
    """Translate a text of the core, with or without values in it; English where nothing is known."""
    translated = tr_text(text)
    if translated != text:
        return translated
    for template in PATTERNS:
        match = pattern_of(template).fullmatch(text)
        if match is not None:
            values = {name: tr_text(value) for name, value in match.groupdict().items()}
            return tr_text(template).format(**values)
    return text


@cache
def pattern_of(template: str) -> re.Pattern[str]:
    """Return what recognises a text made from a template, with the values as groups."""
    parts = re.split(r"\{(\w+)\}", template)
    names = [f"(?P<{name}>{_SHAPES.get(name, '.+')})" for name in parts[1::2]]
    texts = [re.escape(text) for text in parts[::2]]
    return re.compile("".join(text + name for text, name in zip(texts, [*names, ""], strict=True)))
