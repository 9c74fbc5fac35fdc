"""Multi-head latent attention as a layer program: keys and values expanded, or absorbed into the queries.

Source: DeepSeek-V2 report, 2.1; DeepSeek-V3 report, 2.1.1. What is cached of a token is its normed latent and
one rotary key, both shared by all heads, so that every chip of a tensor-parallel group holds all of them.
"""

from __future__ import annotations

from model_core.partition.builder import ProgramBuilder
from model_core.partition.notation import Sharding
from model_core.partition.program import LocalKind, Role, Tensor
from model_core.partition.structure_experts import ExpertStructure

INTO, OUT = "attention in", "attention out"


class LatentAttention:
    """Writes the attention of one block into a builder.

    The down-projections run on each chip's own tokens; their narrow outputs are gathered, not the activations.
    """

    def __init__(self, builder: ProgramBuilder, structure: ExpertStructure, has_cache: bool) -> None:
        self.builder = builder
        self.structure = structure
        self.has_cache = has_cache

    def write(self, x: Tensor) -> Tensor:
        """Write from normed tokens to partial sums of the output over the tensor-parallel axis."""
        self.builder.section("Attention")
        query, rotary_query = self._queries(x)
        latents, rotary_keys = self._cached(x)
        if self.structure.absorbed:
            mixed = self._absorbed(query, rotary_query, latents, rotary_keys)
        else:
            mixed = self._expanded(query, rotary_query, latents, rotary_keys)
        return self.builder.einsum(mixed, self._weight("W_o", "HUE"), "BLE", "attention out", OUT)

    def _weight(self, name: str, dims: str) -> Tensor:
        axes = tuple(self.structure.tensor if dim == "H" else "" for dim in dims)
        return self.builder.weight(name, Sharding(dims, axes), "attention")

    def _gathered(self, tensor: Tensor) -> Tensor:
        moves = ((self.structure.gathered_dim, self.structure.tensor),)
        return self.builder.all_gather(tensor, moves, fused="gather latents")

    def _norm(self, tensor: Tensor, dim: str) -> Tensor:
        scale = self.builder.weight("latent scale", Sharding(dim, ("",)), "norm")
        return self.builder.local(LocalKind.LATENT_NORM, (tensor, scale), tensor.sharding, "normed latent")

    def _rotated(self, tensor: Tensor, name: str) -> Tensor:
        return self.builder.local(LocalKind.ROTARY, (tensor,), tensor.sharding, name)

    def _queries(self, x: Tensor) -> tuple[Tensor, Tensor]:
        b = self.builder
        if self.structure.query_latent:
            latent = b.einsum(x, self._weight("W_dq", "EQ"), "BLQ", "query latent", INTO)
            source, dim = self._gathered(self._norm(latent, "Q")), "Q"
        else:
            source, dim = self._gathered(x), "E"
        query = b.einsum(source, self._weight("W_uq", f"{dim}HN"), "BLHN", "query", "query")
        rotary = b.einsum(source, self._weight("W_qr", f"{dim}HR"), "BLHR", "rotary query", "query")
        return query, self._rotated(rotary, "rotary query")

    def _cached(self, x: Tensor) -> tuple[Tensor, Tensor]:
        b = self.builder
        latent = b.einsum(x, self._weight("W_dkv", "EC"), "BLC", "latent", INTO)
        latent = self._gathered(self._norm(latent, "C"))
        key = self._gathered(b.einsum(x, self._weight("W_kr", "ER"), "BLR", "rotary key", INTO))
        key = self._rotated(key, "rotary key")
        return self._append(latent, "latent"), self._append(key, "rotary key")

    def _append(self, new: Tensor, name: str) -> Tensor:
        b, whole = self.builder, new.sharding.renamed("L", "M")
        if not self.has_cache:
            return b.local(LocalKind.AS_KEYS, (new,), whole, f"{name}s")
        cache = b.cache(f"{name} cache", new.sharding.renamed("L", "P"))
        return b.local(LocalKind.CACHE_APPEND, (cache, new), whole, f"{name}s", Role.KV)

    def _absorbed(self, query: Tensor, rotary: Tensor, latents: Tensor, keys: Tensor) -> Tensor:
        b = self.builder
        absorbed = b.einsum(query, self._weight("W_uk", "CHN"), "BLHC", "absorbed query")
        mixed = b.einsum(self._attention(absorbed, latents, rotary, keys), latents, "BLHC", "mixed latent")
        return b.einsum(mixed, self._weight("W_uv", "CHU"), "BLHU", "mixed")

    def _expanded(self, query: Tensor, rotary: Tensor, latents: Tensor, rotary_keys: Tensor) -> Tensor:
        b = self.builder
        keys = b.einsum(latents, self._weight("W_uk", "CHN"), "BMHN", "keys", "expand")
        values = b.einsum(latents, self._weight("W_uv", "CHU"), "BMHU", "values", "expand")
        return b.einsum(self._attention(query, keys, rotary, rotary_keys), values, "BLHU", "mixed")

    def _attention(self, query: Tensor, keys: Tensor, rotary: Tensor, rotary_keys: Tensor) -> Tensor:
        b = self.builder
        content = b.einsum(query, keys, "BHLM", "content scores", role=Role.ON_CHIP)
        position = b.einsum(rotary, rotary_keys, "BHLM", "position scores", role=Role.ON_CHIP)
        scores = b.local(LocalKind.ADD, (content, position), content.sharding, "scores", Role.ON_CHIP)
        return b.local(LocalKind.SOFTMAX, (scores,), scores.sharding, "attention", Role.ON_CHIP)
