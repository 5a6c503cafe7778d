"""Chain of thought: training at the document's size against a PyTorch loop; the law of the vote against 1e5 simulated prompts.

PyTorch draws the same kind of prompts (a random cycle each, vectorised over the batch) and trains the 2d x 2d weights by
automatic differentiation, as one would write it. The lab trains eight seeds in lanes, as its pool does; per run and step.
"""

import time

import numpy as np

from benchmarks.timing import fastest

STEPS, LANES = 200, 8


def torch_training(steps: int):
    """A function that trains for some steps: M = 20, K = 3, d = 30, 20 examples, batch 60."""
    import torch

    torch.set_num_threads(1)
    m, k, d, count, batch, own, rate = 20, 3, 30, 20, 60, 8, 10.0
    frame = torch.linalg.qr(torch.randn(d, d))[0]
    patterns, places = frame[:m], torch.cat([frame[m : m + k], torch.zeros(k, d)], 1)
    step = torch.arange(k).repeat(count)
    shift = torch.cumsum(torch.arange(k + 1), 0)

    def once(w: "torch.Tensor") -> None:
        cycle = torch.argsort(torch.rand(batch, m), 1)
        first = torch.randint(1, m, (batch, count))
        first[:, :own] = 0
        walked = cycle.gather(1, ((first[:, :, None] + shift) % m).flatten(1)).view(batch, count, k + 1)
        asked = cycle.gather(1, (shift % m).expand(batch, -1))
        top = torch.cat([walked[:, :, :-1].flatten(1), asked[:, : k - 1]], 1)
        bottom = torch.cat([walked[:, :, 1:].flatten(1), asked[:, 1:k]], 1)
        now = torch.arange(batch) % k
        columns = (
            torch.cat([patterns[top], patterns[bottom]], 2) + places[torch.cat([step, torch.arange(k - 1)])]
        )
        query = torch.cat([patterns[asked[torch.arange(batch), now]], torch.zeros(batch, d)], 1) + places[now]
        logits = torch.einsum("bna,ac,bc->bn", columns, w, query)
        hidden = torch.arange(k - 1)[None] >= now[:, None]
        logits = torch.cat(
            [logits[:, : count * k], logits[:, count * k :].masked_fill(hidden, -torch.inf)], 1
        )
        out = torch.einsum("bn,bna->ba", torch.softmax(logits, 1), columns[:, :, d:])
        loss = 0.5 * ((out - patterns[asked[torch.arange(batch), now + 1]]) ** 2).sum(1).mean()
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w.sub_(rate * gradient)

    def train() -> None:
        w = (0.01 * torch.randn(2 * d, 2 * d)).requires_grad_()
        for _ in range(steps):
            once(w)

    return train


def lab_training(steps: int):
    """A function that advances `LANES` runs by some steps."""
    import jax
    import jax.numpy as jnp

    from lemmata.loop import fill, run_block
    from lemmata.studies.chain_of_thought.figures import template
    from lemmata.trial import put_all, random_key, with_precision

    trial = put_all(template(), {"descent.steps": steps + 1, "descent.logs": 2})
    one = with_precision(trial)
    many = jax.tree.map(lambda leaf: jnp.broadcast_to(jnp.asarray(leaf), (LANES, *jnp.shape(leaf))), one)
    keys = jnp.stack([random_key(trial, seed) for seed in range(LANES)])
    lanes = fill(many, keys, None, jnp.ones(LANES, bool))
    return lambda: jax.block_until_ready(
        run_block(lanes, jnp.asarray(steps, jnp.int32), jnp.asarray(0, jnp.int32))
    )


def vote(prompts: int = 100_000, length: int = 20) -> None:
    """The law of the vote at one length against simulated prompts: the plain vote, and the layer with it."""
    import jax
    import jax.numpy as jnp

    from lemmata.studies.chain_of_thought import theory
    from lemmata.studies.chain_of_thought.figures import template
    from lemmata.studies.chain_of_thought.trials.testing import coordinates, errors_at, scores_of
    from lemmata.trial import put_all

    trial = put_all(template(), {"test.prompts": 2000})
    test, d = trial.test, trial.data
    rows = coordinates(test, jax.random.key(0), d.patterns, d.steps, d.dim)
    trained = jnp.zeros((60, 30)).at[:23, :23].set(4 * jnp.eye(23))
    scores = scores_of(test, trained, rows, d.patterns, d.steps)
    tried = jax.jit(lambda key: errors_at(test, scores, d.steps, key, jnp.asarray(length), length))

    def simulated() -> np.ndarray:
        found = [tried(jax.random.key(n))["cot_vote_error"] for n in range(prompts // 2000)]
        return np.mean(jax.block_until_ready(found))

    maps, transitions = theory.example_task(trial)
    own = round(test.match_fraction * length)

    def exact() -> float:
        theory._winning_counts.cache_clear()
        return float(np.mean(theory._errors_from(0, own, length - own, transitions, maps)))

    simulated()
    began = time.perf_counter()
    by_chance = simulated()
    slow = time.perf_counter() - began
    exact()
    began = time.perf_counter()
    for _ in range(20):
        by_law = exact()
    fast = (time.perf_counter() - began) / 20
    print(
        f"vote: {prompts} prompts of {length} examples {slow:.2f} s (error {by_chance:.4f}), law {1e3 * fast:.2f} ms (error "
        f"{by_law:.4f}), ratio {slow / fast:.0f} (to reach: 1000)"
    )


def main() -> None:
    from lemmata.guard import double

    with double():
        lab = lab_training(STEPS)
        found = fastest({"torch": torch_training(STEPS), "lab": lab}, 5)
        torch, own = found["torch"] / STEPS, found["lab"] / STEPS / LANES
        print(
            f"training at the document's size, a step: PyTorch {1e3 * torch:.3f} ms, lab {1e3 * own:.3f} ms "
            f"({LANES} lanes), ratio {torch / own:.1f} (to reach: 5)",
            flush=True,
        )
        vote()


if __name__ == "__main__":
    main()
