# %% [markdown]
# # From a proof to an exact simulator
#
# Proofs about training dynamics rarely follow weights. They follow a few variables: an overlap, a norm, an attention score. If their
# recursion is exact, it is also the fastest simulator. This tutorial derives one for a layer of two numbers, checks it against automatic
# differentiation, and then does the same with a study of the lab.

# %%
import time

import jax
import jax.numpy as jnp
import numpy as np

import lemmata as lm
from lemmata.guard import double

# %% [markdown]
# ## The network and its loss
#
# A product of two layers, `f(x) = w2 w1 x`, learns the linear map `x -> 2x` from whitened data. The loss depends on the weights only
# through the product `p = w2 w1`. From a balanced start, where both layers are equal, they stay equal: then `w1 = w2 = sqrt(p)`.

# %%
TARGET, RATE, STEPS = 2.0, 0.01, 400


def loss(weights):
    product = weights[1] @ weights[0]
    return 0.5 * jnp.sum((product - TARGET * jnp.eye(len(product))) ** 2)


def direct(dim, start):
    """Train both layers by automatic differentiation; return the product's first entry at every step."""
    weights = (start * jnp.eye(dim), start * jnp.eye(dim))

    def step(weights, _):
        slopes = jax.grad(loss)(weights)
        moved = jax.tree.map(lambda w, slope: w - RATE * slope, weights, slopes)
        return moved, (moved[1] @ moved[0])[0, 0]

    return jax.lax.scan(step, weights, length=STEPS)[1]


# %% [markdown]
# ## The proof's own variable
#
# With `u` for the common weight of a mode, a step of descent is `u <- u - rate u (u^2 - 2)`. Modes do not talk to each other. So one number
# stands for a matrix of any size.


# %%
def reduced(start):
    """Follow the common weight of a mode; return its square at every step."""

    def step(u, _):
        u = u - RATE * u * (u**2 - TARGET)
        return u, u**2

    return jax.lax.scan(step, jnp.asarray(start), length=STEPS)[1]


with double():
    whole, short = direct(100, 0.01), reduced(0.01)
    print("largest difference:", float(jnp.abs(whole - short).max()))

# %% [markdown]
# They agree to rounding. That equality is a test, not a hope: every study of the lab has one for each of its reductions.

# %% [markdown]
# ## The same in a study
#
# The study of benign overfitting has four simulators. `direct` trains weights with automatic differentiation. `row`, the default, follows
# the variables of the proof. Both see the same random draw, as the field `simulator` leaves the random key alone.

# %%
study = lm.study("benign-overfitting")
print("simulator:", study.template().simulator)
print(lm.predict("benign-overfitting").sentence)

# %%
from lemmata.trial import put

small = study.template()
for path, value in {
    "network.key_dim": 32,
    "network.value_dim": 32,
    "data.dim": 200,
    "descent.steps": 200,
    "precision": "float64",
}.items():
    small = put(small, path, value)

curves, seconds = {}, {}
for name in ("direct", "row"):
    trial = put(small, "simulator", name)
    lm.train(trial, seed=0)  # compiles
    begin = time.perf_counter()
    curves[name] = lm.train(trial, seed=0).train_loss_curve
    seconds[name] = time.perf_counter() - begin

print("largest difference of the training loss:", float(np.abs(curves["direct"] - curves["row"]).max()))

# %%
lm.picture(lm.train(put(small, "simulator", "row"), seed=0))

# %% [markdown]
# ## What a reduction buys
#
# The reduced form does not hold the large dimension at all. The figure `asymptotic-boundary` has key dimension 1e12: as a matrix it would
# not fit any machine.

# %%
print({name: f"{value:.2f} s" for name, value in seconds.items()}, "for this small case, start included")
