"""Cards of the closed forms of Pope for the feedforward layer of the design at hand."""

from __future__ import annotations

from model_core.partition import closed_forms
from model_core.partition.structure import GATHERED
from model_core.quantities import FORMULAS, Quantity, Term
from model_core.results import Evaluation
from model_core.spec.base import Evidence
from model_core.spec.plan import DTYPE_BYTES, FfnLayout
from model_core.units import BYTES, COUNT

CLOSED_FORMS = ("feedforward", "optimal_x", "optimal_n")


def closed_form_card(evaluation: Evaluation, key: str, rest: str) -> Quantity | None:
    """Return the card of a closed form: ``feedforward`` (bytes moved), ``optimal_x`` or ``optimal_n``."""
    if rest not in CLOSED_FORMS or not evaluation.programs:
        return None
    makers = {"feedforward": _feedforward, "optimal_x": _optimal_x, "optimal_n": _optimal_n}
    return makers[rest](evaluation, key)


def _tokens(evaluation: Evaluation) -> int:
    return evaluation.sizes["B"] * evaluation.sizes["L"]


def _layout_chips(evaluation: Evaluation) -> int:
    sizes = evaluation.sizes
    return sizes["x"] * sizes["y"] * sizes["z"]


def _shape_terms(evaluation: Evaluation) -> tuple[Term, ...]:
    model = evaluation.design.model
    return (
        Term("E", "d_model", model.d_model, COUNT),
        Term("F", "d_ff", model.d_ff, COUNT),
        Term("m", "matrices between E and F: 2 plain, 3 gated", 3 if model.gated_ffn else 2, COUNT),
        Term("n", "chips of the layout", _layout_chips(evaluation), COUNT),
    )


def _feedforward(evaluation: Evaluation, key: str) -> Quantity:
    """Bytes that one chip receives for one feedforward layer, by the form of the layout in use."""
    model, plan, sizes = evaluation.design.model, evaluation.design.plan, evaluation.sizes
    tokens, width = _tokens(evaluation), DTYPE_BYTES[plan.activation_dtype]
    shared = (Term("B·L", "tokens", tokens, COUNT), *_shape_terms(evaluation))
    if plan.ffn_layout is FfnLayout.WEIGHT_STATIONARY_1D:
        identifier, terms = "closed_form_1d", shared
        moved = closed_forms.stationary_1d_elements(tokens, model.d_model) * width
    elif plan.ffn_layout is FfnLayout.WEIGHT_STATIONARY_2D:
        x, yz = sizes["x"], sizes["y"] * sizes["z"]
        identifier = "closed_form_2d"
        terms = (
            *shared,
            Term("X", "chips that split E", x, COUNT),
            Term("Y·Z", "chips that split F", yz, COUNT),
        )
        moved = width * closed_forms.stationary_2d_elements(
            tokens, model.d_model, model.d_ff, x, yz, model.gated_ffn
        )
    else:
        gathered = 1
        for axis in GATHERED[plan.ffn_layout]:
            gathered *= sizes[axis]
        identifier = "closed_form_weight_gathered"
        terms = (*shared, Term("N", "chips that weights are gathered over", gathered, COUNT))
        chips = _layout_chips(evaluation)
        weights = closed_forms.weight_gathered_elements(
            0, model.d_model, model.d_ff, gathered, chips, model.gated_ffn
        )
        activations = 2 * tokens * model.d_model / gathered
        moved = weights * DTYPE_BYTES[plan.weight_dtype] + activations * width
    terms = (*terms, Term("bytes", "of one activation", width, COUNT))
    return _card(key, identifier, "Feedforward communication of a layer", float(moved), terms, is_bytes=True)


def _optimal_x(evaluation: Evaluation, key: str) -> Quantity:
    model = evaluation.design.model
    best = closed_forms.optimal_x(_layout_chips(evaluation), model.d_model, model.d_ff, model.gated_ffn)
    used = Term("X", "chips that split E in this design", evaluation.sizes["x"], COUNT)
    return _card(key, "optimal_x", "Best X of the 2D layout", best, (*_shape_terms(evaluation), used))


def _optimal_n(evaluation: Evaluation, key: str) -> Quantity:
    model, tokens = evaluation.design.model, _tokens(evaluation)
    chips = _layout_chips(evaluation)
    best = closed_forms.optimal_gathered(tokens, model.d_ff, chips, model.gated_ffn)
    terms = (Term("B·L", "tokens", tokens, COUNT), *_shape_terms(evaluation))
    return _card(key, "optimal_n", "Best number of chips to gather weights over", best, terms)


def _card(
    key: str, identifier: str, label: str, value: float, terms: tuple[Term, ...], is_bytes: bool = False
) -> Quantity:
    dimension = BYTES if is_bytes else COUNT
    formula = FORMULAS[identifier]
    note = "A closed form of the paper; the product counts its layer programs instead."
    return Quantity(key, label, value, dimension, formula, terms, Evidence.MODELLED, note)
