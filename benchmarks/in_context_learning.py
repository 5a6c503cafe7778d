"""One step of in-context learning: the one-layer model against PyTorch eager, the small GPT-2 style model against PyTorch
eager and `torch.compile`.

    python -m benchmarks.in_context_learning [--steps 20] [--deep-steps 2] [--rounds 5]

A step is the gradient of the hinge loss over a given batch of prompts and the update (SGD; Adam for the deep model). The
one-layer model has the document's size: 20 contexts of 60 dimensions, W_Q, W_K, W_V of 60 x 60, 60 neurons, 120 prompts
a batch. The lab trains it on the 31 coordinates that prompts can see, PyTorch on tokens; `lab, on tokens` does as PyTorch
does. The last layer of the deep model is asked for the query's column only; PyTorch is timed both ways, with all columns
("as usual") and with that one. Times are the fastest of several rounds that take turns, so that a busy machine slows
all of them alike; one core and one thread for everybody.
"""

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks.timing import fastest, pin

pin(1)

import jax  # noqa: E402
import numpy as np  # noqa: E402

from lemmata.descent import advance  # noqa: E402
from lemmata.guard import double  # noqa: E402
from lemmata.studies.in_context_learning.data import tokens  # noqa: E402
from lemmata.studies.in_context_learning.trials import Layer, Stack  # noqa: E402
from lemmata.trial import put, random_key, with_precision  # noqa: E402


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--deep-steps", type=int, default=2)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    on_tokens = put(Layer(), "simulator", "tokens")
    layer = {"lab": lab(Layer(), chosen.steps), "lab, on tokens": lab(on_tokens, chosen.steps)}
    report("one layer", layer | torch_layer(on_tokens, chosen.steps), chosen.steps, chosen.rounds)
    deep = {"lab": lab(Stack(), chosen.deep_steps)}
    report("GPT-2 style", deep | torch_deep(Stack(), chosen.deep_steps), chosen.deep_steps, chosen.rounds)


def report(title: str, contestants: dict[str, Callable[[], object]], steps: int, rounds: int) -> None:
    times = fastest(contestants, rounds)
    print(title, flush=True)
    for name, seconds in times.items():
        print(
            f"  {name:28s} {seconds / steps * 1e3:8.3f} ms a step {seconds / times['lab']:7.2f} times the lab's"
        )
    if not any(name.startswith("PyTorch") for name in times):
        print("  PyTorch is not installed here: no comparison (pip install torch).")


def lab(trial: Any, steps: int) -> Callable[[], object]:
    """Steps on one given batch, as `Learner.step` takes them on fresh ones."""
    state, batch = given(trial)
    with double():
        one: Any = with_precision(trial)
        way = jax.random.key(1)

        @jax.jit
        def train(fit):
            def body(_, now):
                return advance(one.descent, one.slope, now, batch, state.world, way)

            return jax.lax.fori_loop(0, steps, body, fit)

    def work() -> object:
        with double():
            return jax.block_until_ready(train(state.fit))

    return work


def given(trial: Any) -> tuple[Any, Any]:
    """Initial state and a batch of the trial."""
    with double():
        one: Any = with_precision(trial)
        state = jax.jit(lambda key: one.start(key))(random_key(trial, 0))
        return state, jax.jit(lambda: one.batch(jax.random.key(1), state.step, None, state.world))()


def columns(state: Any, batch: Any) -> tuple[Any, Any]:
    """The tokens of a batch."""
    with double():
        return tokens(state.world.frame, batch)


# PyTorch ----------------------------------------------------------------------------------------------------


def torch_layer(trial: Layer, steps: int) -> dict[str, Callable[[], object]]:
    try:
        import torch
    except ModuleNotFoundError:
        return {}
    torch.set_num_threads(1)
    state, batch = given(trial)

    def tensor(array) -> "torch.Tensor":
        return torch.from_numpy(np.array(array, np.float32))

    context, query = (tensor(part) for part in columns(state, batch))
    target, votes = tensor(batch.target), tensor(state.world.votes)
    parts = state.params
    start = [tensor(part) for part in (parts.query[0], parts.key[0], parts.value[0], parts.hidden.T)]

    def work() -> None:
        weights = [part.clone().requires_grad_() for part in start]
        for _ in range(steps):
            w_query, w_key, w_value, w_out = weights
            logits = ((context @ w_key.T) @ (query @ w_query.T)[:, :, None])[..., 0]
            mixed = (torch.softmax(logits, dim=-1)[:, None] @ (context @ w_value.T))[:, 0]
            output = torch.relu(mixed @ w_out.T) @ votes
            loss = torch.relu(1 - target * output).mean()
            slopes = torch.autograd.grad(loss, weights)
            with torch.no_grad():
                weights = [(w - g).requires_grad_() for w, g in zip(weights, slopes, strict=True)]

    return {"PyTorch eager": work}


def torch_deep(trial: Stack, steps: int) -> dict[str, Callable[[], object]]:
    try:
        import torch
    except ModuleNotFoundError:
        return {}
    functional = torch.nn.functional
    state, batch = given(trial)

    def tensor(array) -> "torch.Tensor":
        return torch.from_numpy(np.array(array, np.float32))

    context, query = (tensor(part) for part in columns(state, batch))
    inputs, target = torch.cat([context, query[:, None]], 1), tensor(batch.target)
    width, heads = trial.width, trial.heads

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.attend, self.project = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x, last):
            asking = x[:, -1:] if last else x
            if last:
                seen = self.first(x)
                weight, bias = self.attend.weight, self.attend.bias
                query = functional.linear(seen[:, -1:], weight[:width], bias[:width])
                parts = query, *functional.linear(seen, weight[width:], bias[width:]).split(width, dim=-1)
            else:
                parts = self.attend(self.first(x)).split(width, dim=-1)
            query, key, value = (
                part.view(*part.shape[:2], heads, width // heads).transpose(1, 2) for part in parts
            )
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=not last)
            asking = asking + self.project(mixed.transpose(1, 2).reshape(asking.shape))
            return asking + self.down(functional.gelu(self.up(self.second(asking)), approximate="tanh"))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.read_in = torch.nn.Linear(inputs.shape[-1], width, bias=False)
            self.blocks = torch.nn.ModuleList(Block() for _ in range(trial.layers))
            self.norm, self.read_out = torch.nn.LayerNorm(width), torch.nn.Linear(width, 1, bias=False)

        def forward(self, x, query_only):
            x = self.read_in(x)
            for layer, block in enumerate(self.blocks):
                x = block(x, query_only and layer == trial.layers - 1)
            return self.read_out(self.norm(x[:, -1]))[:, 0]

    def trained(compiled: bool, query_only: bool) -> Callable[[], object]:
        model = Model()
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        run = torch.compile(model) if compiled else model

        def work() -> None:
            for _ in range(steps):
                optimiser.zero_grad()
                torch.relu(1 - target * run(inputs, query_only)).mean().backward()
                optimiser.step()

        return work

    return {
        f"PyTorch {how}, {which}": trained(how == "compiled", which == "query only")
        for which in ("as usual", "query only")
        for how in ("eager", "compiled")
    }


if __name__ == "__main__":
    main()
