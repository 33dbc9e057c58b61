"""The seconds of one layer, and of the logits, for one microbatch on one GPU: computation, and the messages that nothing hides."""

from typing import NamedTuple

from hybridlab.hardware import Profile
from hybridlab.model import Transformer, Work
from hybridlab.model.operations import LayerSums, layer_operations
from hybridlab.planner.memory import GRADIENT_BYTES
from hybridlab.planner.messages import NETWORK_SHARE, ring_seconds
from hybridlab.planner.plan import Plan

MEMORY_SHARE = 0.9  # share of the peak memory bandwidth that a read or write of a large array reaches
# Seconds that PyTorch needs at least to start the kernels of one layer, forward and backward; a third more if the forward runs again.
# It was chosen on 720 runs of small models within one node of A100s (Bang et al. 2023).
HOST_FLOOR = 2.6e-3


class Pass(NamedTuple):
    """The seconds of a forward or a backward, or of both, for one microbatch. The parts are those of an iteration of the same names."""

    matmul: float = 0.0
    memory_traffic: float = 0.0
    tensor_parallel: float = 0.0
    experts: float = 0.0
    gathers: float = 0.0
    host: float = 0.0

    @property
    def seconds(self) -> float:
        """The sum of the parts."""
        return sum(self)

    @property
    def computing(self) -> float:
        """Seconds in which the GPU computes."""
        return self.matmul + self.memory_traffic

    def times(self, factor: float) -> "Pass":
        """Return the seconds of several equal passes."""
        return Pass(*(factor * part for part in self))


def total_of(*passes: Pass) -> Pass:
    """Return the sum of passes, part by part."""
    return Pass(*map(sum, zip(*passes, strict=True)))


def layer_passes(model: Transformer, sums: LayerSums, plan: Plan, profile: Profile, efficiency: float) -> tuple[Pass, Pass]:
    """Return the seconds of the forward and of the backward of one layer. The arguments are not checked.

    ``sums`` are the sums over the operations of the layer, and ``efficiency`` is as in :func:`hybridlab.predict`.
    """
    ring = activation_ring(model, plan, profile)
    found = []
    for place, (work, exchanges) in enumerate(zip((sums.forward, sums.backward), _exposed(sums, plan), strict=True)):
        found.append(Pass(*work_seconds(work, profile, efficiency), exchanges * ring))
        if plan.expert > 1 or plan.context > 1 or plan.zero == 3:
            hidden = found[place].computing
            found[place] = found[place]._replace(
                experts=_dispatch_seconds(model, sums, plan, profile, hidden),
                gathers=_key_seconds(model, plan, profile, efficiency, place) + _weight_seconds(sums, plan, profile, found[place], place),
            )
    if plan.kernels == "eager":
        least = HOST_FLOOR * (4 if plan.recompute == "full" else 3) / 3
        waits = max(0.0, least - sum(each.seconds for each in found))
        found = [each._replace(host=waits * share) for each, share in zip(found, (1 / 3, 2 / 3), strict=True)]
    return found[0], found[1]


def head_pass(model: Transformer, plan: Plan, profile: Profile, efficiency: float) -> Pass:
    """Return the seconds of the logits of one microbatch, their loss and its gradients."""
    head = model.head_work(plan.microbatch, plan.tensor, fused=plan.kernels == "fused")
    share = 1 / plan.context
    mine = Work(share * head.flops, share * head.operand_bytes, share * head.elementwise_bytes, head.all_reduces)
    exposed = head.all_reduces / (plan.tensor if plan.overlap == "all" else 1)
    return Pass(*work_seconds(mine, profile, efficiency), exposed * activation_ring(model, plan, profile))


def work_seconds(work: Work, profile: Profile, efficiency: float) -> tuple[float, float]:
    """Return the seconds of the arithmetic and of the memory traffic of a work."""
    narrow = work.narrow_flops / profile.fp8_flops if profile.fp8_flops else 0.0
    return (
        ((work.flops - work.narrow_flops) / profile.matmul_flops + narrow) / efficiency,
        work.nbytes / (MEMORY_SHARE * profile.memory_bandwidth),
    )


def activation_bytes(model: Transformer, plan: Plan) -> float:
    """Return the bytes of the activations of one microbatch between two layers."""
    return 2.0 * plan.microbatch * model.sequence / plan.context * model.hidden


def activation_ring(model: Transformer, plan: Plan, profile: Profile) -> float:
    """Return the seconds of one all-reduce of activations over the GPUs that share a layer."""
    return ring_seconds(profile, plan.tensor, min(plan.tensor, profile.gpus_per_node), activation_bytes(model, plan))


def _exposed(sums: LayerSums, plan: Plan) -> tuple[float, float]:
    """Return how many all-reduces of the forward and of the backward nothing hides."""
    forward, backward = sums.forward.all_reduces, sums.backward.all_reduces
    if plan.overlap == "all":  # a product in t pieces sends one piece while it computes the next
        return forward / plan.tensor, backward / plan.tensor
    if plan.overlap == "backward" and plan.tensor > 1:
        # Both all-reduces of input gradients run beside the products of weight gradients. With sequence parallelism only their
        # reduce-scatters do, and all-gathers are left (Korthikanti et al., arXiv 2205.05198, sec. 4.2.2).
        backward -= 1 if plan.sequence_parallel else 2
    return forward, backward


def _dispatch_seconds(model: Transformer, sums: LayerSums, plan: Plan, profile: Profile, hidden: float) -> float:
    """Return the seconds in which tokens go to their experts and back in one pass, beyond the ``hidden`` ones."""
    if not model.experts or plan.expert == 1 or not sums.expert_weights:
        return 0.0
    near = min(plan.expert, max(1, profile.gpus_per_node // plan.tensor))  # ranks in one node
    nodes, copies = plan.expert / near, float(model.experts.active)
    nbytes = activation_bytes(model, plan) / plan.tensor
    inside = copies * nbytes * (near - 1) / (plan.expert if plan.dispatch == "all-to-all" else near) / profile.nvlink
    if plan.dispatch == "by node":
        copies = nodes * (1 - (1 - 1 / nodes) ** copies)  # nodes that have an expert of a token, on average
    outside = copies * nbytes * (1 - 1 / nodes) / (NETWORK_SHARE * profile.network)
    both = 2 * max(inside, outside)
    return max(0.0, both - hidden) if plan.overlap == "all" else both  # another microbatch's layer computes meanwhile


def _key_seconds(model: Transformer, plan: Plan, profile: Profile, efficiency: float, backward: int) -> float:
    """Return the seconds in which keys and values go round the GPUs that share a sample, beyond those of the attention itself."""
    if plan.context == 1:
        return 0.0
    latent = model.latent
    numbers = latent.kv_rank + latent.rope if latent else model.kv_heads * (model.head_size + model.value_size)
    tokens = plan.microbatch * model.sequence / plan.context
    nbytes = 2.0 * tokens * numbers / plan.tensor * (plan.context - 1) * (1 + backward)  # the backward also sends their gradients
    near = plan.tensor * plan.context <= profile.gpus_per_node
    sending = nbytes / (profile.nvlink if near else NETWORK_SHARE * profile.network)
    row = next(each for each in layer_operations(model, not model.experts, True) if each.name == "attention")
    flops = tokens * row.flops / plan.tensor * (row.again if backward else 1)
    return max(0.0, sending - flops / (efficiency * profile.matmul_flops))


def _weight_seconds(sums: LayerSums, plan: Plan, profile: Profile, taken: Pass, backward: int) -> float:
    """Return the seconds in which replicas that divide weights gather those of a layer, and in the backward sum its gradients.

    Those seconds that computation ``taken`` takes are left out, because the next layer's weights arrive meanwhile.
    """
    if plan.zero < 3:
        return 0.0
    sending = 0.0
    for weights, ranks in ((sums.weights, plan.copies), (sums.expert_weights, plan.copies // plan.expert)):
        together = min(ranks, max(1, profile.gpus_per_node // plan.tensor))
        for nbytes in (2, GRADIENT_BYTES[plan.gradients])[: 1 + backward]:
            sending += ring_seconds(profile, ranks, together, nbytes * weights) / 2 if weights else 0.0
    return max(0.0, sending - taken.seconds)
