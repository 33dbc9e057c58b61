"""What a transformer can have besides its sizes: experts, latent attention, and the structure of its family."""

from dataclasses import dataclass
from typing import NamedTuple

from hybridlab.checks import whole_number, with_known_arguments
from hybridlab.errors import UnsupportedSize


@with_known_arguments
@dataclass(frozen=True)
class Experts:
    """The experts of a layer: MLPs, of which a router chooses some for each token.

    Parameters
    ----------
    count : int
        Experts of a layer.
    active : int
        Experts that the router chooses for a token.
    ffn : int
        Inner size of an expert.
    shared : int
        Experts of the same size that every token goes to, besides the chosen ones.
    dense_layers : int
        Layers with one MLP of the model's own size in place of experts.

    Raises
    ------
    HybridLabError
        A size is not a whole number, or an argument is unknown.
    UnsupportedSize
        More experts are active than there are.
    """

    count: int
    active: int
    ffn: int
    shared: int = 0
    dense_layers: int = 0

    def __post_init__(self) -> None:
        for field in ("count", "active", "ffn", "shared", "dense_layers"):
            least = 0 if field in ("shared", "dense_layers") else 1
            object.__setattr__(self, field, whole_number(getattr(self, field), field, least))
        if self.active > self.count:
            message = f"{self.active} of {self.count} experts cannot be active; try active={self.count} or fewer"
            raise UnsupportedSize(message, "too-large")


@with_known_arguments
@dataclass(frozen=True)
class Latent:
    """The sizes of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, sec. 2.1).

    Parameters
    ----------
    q_rank : int
        Size to which queries are compressed; 0 if they are not.
    kv_rank : int
        Size to which keys and values are compressed.
    rope, nope : int
        Numbers of a head's query with and without a position.
    value : int
        Numbers of a head's value.

    Raises
    ------
    HybridLabError
        A size is not a whole number of at least 1 (``q_rank``: 0), or an argument is unknown.
    """

    q_rank: int
    kv_rank: int
    rope: int
    nope: int
    value: int

    def __post_init__(self) -> None:
        for field in ("q_rank", "kv_rank", "rope", "nope", "value"):
            object.__setattr__(self, field, whole_number(getattr(self, field), field, 0 if field == "q_rank" else 1))


class Structure(NamedTuple):
    """What belongs to a family of models and is no size.

    Attributes
    ----------
    biases : frozenset of str
        Products that add a bias: "query, key, value", "output", "up", "down".
    norm_weights : int
        Weights of a normalisation for each hidden number: 2 for LayerNorm, 1 for RMSNorm.
    norms : int
        Normalisations of a layer: 1, 2 or 4.
    positions : bool or int
        Whether each position of a sample has an embedding of its own, or the number of positions that have one. If not, queries and keys
        are rotated.
    final_norm : int
        Normalisations outside the layers that count as parameters: that before the logits, and one behind the embedding.
    dropout : bool
        Whether training drops numbers at random.
    query_key_norm, sinks, router_bias : bool
        Whether queries and keys are normalised, each head has a sink (one parameter), and the router has a bias.
    whole_norm : bool
        Whether that normalisation has a weight for each number of all heads, not of one head.
    alibi : bool
        Whether the distance of two tokens changes their score, and neither positions nor rotations are needed (arXiv 2108.12409).
    """

    biases: frozenset[str] = frozenset()
    norm_weights: int = 1
    norms: int = 2
    positions: bool | int = False
    final_norm: int = 1
    dropout: bool = False
    query_key_norm: bool = False
    sinks: bool = False
    router_bias: bool = False
    whole_norm: bool = False
    alibi: bool = False


GPT = Structure(frozenset({"query, key, value", "output", "up", "down"}), 2, positions=True, final_norm=0, dropout=True)
LLAMA = Structure()
