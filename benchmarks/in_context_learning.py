"""One SGD step of the one-layer model at the document's size (20 contexts, tokens of 60 dimensions, 60 neurons, 120 prompts a
batch), Figure 6.2, and the small GPT-2 style model of Figure 6.3 against PyTorch.

The lab trains on the 31 coordinates along patterns and label that prompts can see, peers on tokens, as the lab does by
`tokens`; the lab also draws its prompts. The lab's deep model asks its last layer for the query's column only, which is all
that is read; PyTorch gains by doing the same and is timed both ways. Columns of all prompts are the rows of one matrix there:
with prompts and columns apart XLA made slow loops of the gradients of weights.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import Contestant, in_turns, torch_on
from benchmarks.workload import (
    Arrays,
    Command,
    Measure,
    Plain,
    Simulator,
    Step,
    Work,
    Workload,
    batch_keys,
    by_tokens,
    changed,
)
from lemmata.descent import advance
from lemmata.studies.in_context_learning.data import tokens
from lemmata.studies.in_context_learning.figures import template
from lemmata.studies.in_context_learning.trials import Layer, Stack
from lemmata.threefry import new_key
from lemmata.trial import put_all, random_key, with_precision

NAMES = ("query", "key", "value")


def trial(steps: int, prompts: int, contexts: int, neurons: int, heads: int) -> Layer:
    sizes = {"descent.batch": prompts, "data.examples": contexts, "data.room": contexts, "neurons": neurons}
    endless = {"descent.steps": steps, "descent.logs": 2, "heads": heads}
    return put_all(template(), {**sizes, **endless})


def plain(trial: Layer, key: Any, state: Any, count: int) -> Plain:
    """The run on tokens that is drawn from the same key."""
    whole = by_tokens(trial)
    begun = jax.jit(lambda k: whole.start(k))(key)
    way, numbers = batch_keys(begun, count)

    @jax.jit
    def seen(number: Any) -> Arrays:
        prompts = whole.batch(way, number, None, begun.world)
        context, query = tokens(begun.world.frame, prompts)
        return {"context": context, "query": query, "target": prompts.target, "votes": begun.world.votes}

    weights = {name: getattr(begun.params, name) for name in (*NAMES, "hidden")}
    rates = dict.fromkeys(weights, float(trial.descent.learning_rate))
    return Plain(weights, [seen(number) for number in numbers], rates)


def jax_loss(weights: Arrays, batch: Arrays) -> Any:
    query = batch["query"] @ weights["query"].mT
    key, value = (batch["context"] @ weights[name][:, None].mT for name in ("key", "value"))
    share = jax.nn.softmax(jnp.sum(key * query[:, :, None], axis=-1), axis=-1)
    mixed = jnp.moveaxis((share[:, :, None] @ value)[:, :, 0], 0, 1).reshape(len(batch["target"]), -1)
    output = jax.nn.relu(mixed @ weights["hidden"]) @ batch["votes"]
    return jnp.mean(jax.nn.relu(1 - batch["target"] * output))


def torch_loss(weights: Arrays, batch: Arrays) -> Any:
    import torch

    query = batch["query"] @ weights["query"].mT
    key, value = (batch["context"] @ weights[name][:, None].mT for name in ("key", "value"))
    share = torch.softmax((key * query[:, :, None]).sum(dim=-1), dim=-1)
    mixed = (share[:, :, None] @ value)[:, :, 0].transpose(0, 1).flatten(1)
    output = torch.relu(mixed @ weights["hidden"]) @ batch["votes"]
    return torch.relu(1 - batch["target"] * output).mean()


def work(prompts: int, contexts: int, neurons: int, heads: int) -> Work:
    """In r = 31 coordinates: the folded weights (once a batch, and twice for the derivative), for each prompt three products
    with the neurons, two rows of the folded weights for its query, and two passes over its contexts with their derivative, in
    the three coordinates that are not zero. Words for role, irrelevant pattern and strength of every context, for pattern and
    label of those that the task does not decide (a fifth), two for the query and one for the key."""
    reduced, rows = 31, 60
    folded = 3 * heads * (2 * reduced**3 + 2 * reduced * rows * neurons)
    each = heads * (6 * reduced * neurons + 8 * reduced + 30 * contexts)
    weights = heads * (2 * reduced**2 + rows * reduced + rows * neurons)
    words = 3 + 3 * contexts + 2 * contexts / 5
    return Work(folded + prompts * each, 4 * 2 * weights, prompts * words, prompts * heads * contexts)


def token_work(prompts: int, contexts: int, neurons: int, heads: int) -> Work:
    """In d = 60 coordinates: the folded weights as above, for each prompt three products with the neurons, the query with the
    folded weights and its derivative (d^2 each), and four passes over all numbers of its contexts; the same words."""
    dim = 60
    folded = 3 * heads * (2 * dim**3 + 2 * dim**2 * neurons)
    each = heads * (6 * dim * neurons + 4 * dim**2 + 8 * dim * contexts)
    weights = heads * (3 * dim**2 + dim * neurons)
    words = work(prompts, contexts, neurons, heads).words
    return Work(
        folded + prompts * each,
        4 * 2 * (weights + prompts * contexts * dim),
        words,
        prompts * heads * contexts,
    )


# The deep model ----------------------------------------------------------------------------------------------------------


def extra(paper: bool) -> dict[str, Measure]:
    deep = Stack()
    times = in_turns({"lab": deep_steps(deep), **deep_peers(deep)}, 5)
    ratios = {f"GPT-2 style, {name} over the lab": times[name].best / times["lab"].best for name in times}
    aims = {"eager, as usual": "1.5", "compiled, as usual": "1"}
    found = {
        what: Measure(ratio, "times", next((aim for word, aim in aims.items() if word in what), ""))
        for what, ratio in ratios.items()
        if "PyTorch" in what
    }
    return {"GPT-2 style model, a step of the lab's": Measure(1e3 * times["lab"].best, "ms"), **found}


def deep_steps(trial: Stack) -> Contestant:
    """Steps on one given batch."""
    one = with_precision(trial)
    state = jax.jit(lambda key: one.start(key))(random_key(trial, 0))
    batch = jax.jit(lambda: one.batch(new_key(1), state.step, None, state.world))()

    @jax.jit
    def train(fit: Any, count: Any) -> Any:
        def body(_: Any, now: Any) -> Any:
            return advance(one.descent, one.slope, now, batch, state.world, new_key(1))

        return jax.lax.fori_loop(0, count, body, fit)

    return Contestant(lambda count: jax.block_until_ready(train(state.fit, count)))


def deep_peers(trial: Stack) -> dict[str, Contestant]:
    import torch

    functional = torch.nn.functional
    one = with_precision(trial)
    state = jax.jit(lambda key: one.start(key))(random_key(trial, 0))
    batch = one.batch(new_key(1), state.step, None, state.world)
    context, query = (np.array(part, np.float32) for part in tokens(state.world.frame, batch))
    inputs = torch.from_numpy(np.concatenate([context, query[:, None]], axis=1))
    target = torch.from_numpy(np.array(batch.target, np.float32))
    width, heads = trial.width, trial.heads

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.attend, self.project = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x, last):
            asking = x[:, -1:] if last else x
            seen, weight, bias = self.first(x), self.attend.weight, self.attend.bias
            if last:
                asked = functional.linear(seen[:, -1:], weight[:width], bias[:width])
                parts = asked, *functional.linear(seen, weight[width:], bias[width:]).split(width, dim=-1)
            else:
                parts = self.attend(seen).split(width, dim=-1)
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

    def trained(compiled: bool, query_only: bool) -> Callable[[int], object]:
        model = Model()
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        run = torch.compile(model) if compiled else model

        def work(count: int) -> None:
            for _ in range(count):
                optimiser.zero_grad()
                torch.relu(1 - target * run(inputs, query_only)).mean().backward()
                optimiser.step()

        return work

    return {
        f"PyTorch {how}, {which}": Contestant(torch_on(1, trained(how == "compiled", which == "query only")))
        for which in ("as usual", "query only")
        for how in ("eager", "compiled")
    }


SIZES = {"prompts": 120, "contexts": 20, "neurons": 60, "heads": 1}
GROWTH = {
    "prompts": (120, 480, 1920),
    "contexts": (20, 80, 320),
    "neurons": (60, 240, 960),
    "heads": (1, 2, 4),
}

WORKLOAD = Workload(
    about=__doc__ or "",
    figure="in-context-learning/fig6-2",
    short=Command(("--scale", "quick", "--seeds", "1")),
    paper=Command(("--scale", "paper")),
    step=Step(
        trial=trial,
        sizes=SIZES,
        tiny={"prompts": 12, "contexts": 5, "neurons": 6, "heads": 2},
        plain=plain,
        jax_loss=jax_loss,
        torch_loss=torch_loss,
        work=work,
        growth=GROWTH,
        simulator="patterns",
        others={"tokens": Simulator(changed(trial, {"simulator": "tokens"}), SIZES, token_work, GROWTH)},
    ),
    extra=extra,
)
