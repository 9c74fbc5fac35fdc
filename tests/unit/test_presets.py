"""Presets: every value has a source, every reference between files holds, nothing is read in vain."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import presets
from model_core.spec import Evidence, SourcedSpec, TorusTopology, get_at, replace_at
from model_core.spec.model import ModelSpec
from presets.loader import Kind

FOLDER = Path(presets.__file__).parent
LOADERS: dict[Kind, Any] = {
    "models": presets.load_model,
    "chips": presets.load_chip,
    "clusters": presets.load_cluster,
    "workloads": presets.load_workload,
    "designs": presets.load_design,
}
ALL = [(kind, name) for kind in presets.KINDS for name in presets.names(kind)]
POPE = [
    f"palm-{size}-{phase}-{aim}"
    for size in ("62b", "540b")
    for phase in ("prefill", "decode")
    for aim in ("low-latency", "high-throughput")
]


def fields_of(kind: str, name: str) -> dict[str, dict[str, Any]]:
    content: dict[str, dict[str, Any]] = json.loads((FOLDER / kind / f"{name}.json").read_text())["fields"]
    return content


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_that_a_preset_loads_with_a_title(kind: Kind, name: str) -> None:
    assert LOADERS[kind](name).name
    assert presets.title(kind, name)


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_that_every_value_has_a_source_and_an_evidence(kind: Kind, name: str) -> None:
    for entry in fields_of(kind, name).values():
        assert set(entry) == {"value", "source", "evidence"}
        assert entry["source"].strip()
        assert entry["evidence"] in set(Evidence)


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_that_what_is_from_memory_is_not_called_published(kind: Kind, name: str) -> None:
    for path, entry in fields_of(kind, name).items():
        text = entry["source"].lower()
        if "recalled" in text or text.startswith("assumed") or "no published" in text:
            assert entry["evidence"] == "assumed", path


@pytest.mark.parametrize("kind", presets.KINDS)
def test_that_titles_tell_the_presets_of_a_kind_apart(kind: Kind) -> None:
    titles = [presets.title(kind, name) for name in presets.names(kind)]
    assert len(set(titles)) == len(titles)


def sourced() -> Iterator[SourcedSpec]:
    for kind in ("models", "chips", "clusters"):
        yield from (LOADERS[kind](name) for name in presets.names(kind))


def test_that_sources_name_fields_that_exist() -> None:
    for spec in sourced():
        for source in spec.sources:
            get_at(spec, source.field)


def test_that_every_field_of_a_chip_and_a_topology_that_is_set_has_a_source() -> None:
    for name in presets.names("clusters"):
        cluster = presets.load_cluster(name)
        named = {source.field for source in cluster.sources}
        assert named == {f"topology.{field}" for field in cluster.topology.model_fields_set}
        chip = cluster.chip
        assert {source.field for source in chip.sources} == chip.model_fields_set - {
            "name",
            "sources",
            "calibrations",
        }


def test_that_an_edited_value_loses_the_source_of_its_preset() -> None:
    chip = presets.load_chip("tpu-v4")
    assert "Pope" in chip.source_of("hbm_bandwidth").source
    edited = replace_at(chip, "hbm_bandwidth", "1 TB/s")
    assert edited.source_of("hbm_bandwidth").evidence is Evidence.ASSUMED


def test_that_the_designs_of_the_command_line_contract_exist() -> None:
    promised = {
        *POPE,
        "deepseek-v3-training",
        "deepseek-v3-prefill",
        "deepseek-v3-decode",
        "llama-3.1-70b-h100",
    }
    assert promised <= set(presets.names("designs"))


@pytest.mark.parametrize(
    ("name", "chips", "batch", "layout", "attention", "weights"),
    [
        ("palm-540b-prefill-low-latency", 64, 1, "weight_stationary_2d", "heads", "int8"),
        ("palm-540b-decode-low-latency", 64, 64, "weight_stationary_2d", "batch", "int8"),
        ("palm-540b-prefill-high-throughput", 64, 512, "weight_gathered_xyz", "batch", "bfloat16"),
        ("palm-540b-decode-high-throughput", 64, 512, "weight_stationary_2d", "batch", "bfloat16"),
        ("palm-62b-prefill-low-latency", 16, 1, "weight_stationary_2d", "heads", "int8"),
        ("palm-62b-decode-low-latency", 16, 32, "weight_stationary_2d", "batch", "int8"),
        ("palm-62b-prefill-high-throughput", 32, 512, "weight_gathered_xyz", "batch", "bfloat16"),
        ("palm-62b-decode-high-throughput", 8, 512, "weight_stationary_2d", "batch", "bfloat16"),
    ],
)
def test_that_the_designs_of_pope_tables_2_and_3_are_as_printed(
    name: str, chips: int, batch: int, layout: str, attention: str, weights: str
) -> None:
    design = presets.load_design(name)
    assert design.name == name
    assert design.cluster.n_chips == chips
    assert design.workload.batch == batch
    assert design.workload.max_context == 2048
    plan = (design.plan.ffn_layout, design.plan.attention_sharding, design.plan.weight_dtype)
    assert plan == (layout, attention, weights)


def matrices(model: ModelSpec) -> int:
    """Parameters of a dense model's matrices, counted here independently of the core."""
    attention = 2 * model.d_model * model.d_head * (model.n_heads + model.n_kv_heads)
    ffn = (3 if model.gated_ffn else 2) * model.d_model * model.d_ff
    embeddings = model.vocab_size * model.d_model * (1 if model.tied_embedding else 2)
    return model.n_layers * (attention + ffn) + embeddings + model.n_positions * model.d_model


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("palm-540b", 540.36),
        ("palm-540b-padded", 558.17),
        ("llama-3.1-8b", 8.03),
        ("llama-3.1-70b", 70.55),
        ("llama-3.1-405b", 405.85),
    ],
)
def test_that_dimensions_give_the_published_number_of_parameters(name: str, billions: float) -> None:
    assert matrices(presets.load_model(name)) / 1e9 == pytest.approx(billions, abs=0.005)


def test_that_deepseek_caches_the_latent_of_the_report() -> None:
    model = presets.load_model("deepseek-v3")
    assert model.mla is not None
    assert (model.mla.kv_lora_rank + model.mla.qk_rope_head_dim) * 2 * model.n_layers == 70272
    assert model.d_head == model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim


def test_that_six_links_of_tpu_v4_carry_the_bandwidth_of_pope() -> None:
    topology = presets.load_cluster("tpu-v4-4x4x4").topology
    assert isinstance(topology, TorusTopology)
    assert 6 * topology.link_bandwidth == 270e9


def test_that_names_sort_numbers_by_size() -> None:
    models = presets.names("models")
    assert models.index("palm-8b") < models.index("palm-62b") < models.index("palm-540b")


def test_that_a_listing_parses_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> str:
        raise AssertionError("a listing read a file")

    presets.names.cache_clear()
    monkeypatch.setattr(Path, "read_text", refuse)
    assert all(presets.names(kind) for kind in presets.KINDS)


def test_that_a_part_shared_by_presets_is_loaded_once() -> None:
    first, second = (presets.load_design(f"palm-540b-{phase}-low-latency") for phase in ("prefill", "decode"))
    assert first.cluster is second.cluster
    assert first.model is second.model


@pytest.mark.parametrize("name", ["palm-540", "../designs/palm-540b", "", "palm-540b.json"])
def test_that_an_unknown_preset_is_refused_with_the_nearest_names(name: str) -> None:
    with pytest.raises(presets.UnknownPresetError) as caught:
        presets.load_model(name)
    assert all(near in presets.names("models") for near in caught.value.nearest)


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("palm-540b-decode-lowlatency", "palm-540b-decode-low-latency"),
        ("PaLM-62B-decode", "palm-62b-decode-high-throughput"),
        ("llama", "llama-3.1-70b-h100"),
    ],
)
def test_that_a_mistyped_name_finds_its_preset(typed: str, first: str) -> None:
    assert presets.nearest(typed, presets.names("designs"))[0] == first


def test_that_a_name_like_no_other_finds_nothing() -> None:
    assert presets.nearest("", presets.names("designs")) == ()
    assert presets.nearest("0_0", presets.names("designs")) == ()
