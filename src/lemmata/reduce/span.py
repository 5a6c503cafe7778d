"""Train in the span of the tokens.

Where the first weights act linearly on the tokens, x -> x^T W, every gradient with respect to W is a combination of
training tokens: W(t) - W(0) stays in their span. With B an orthonormal basis of it (dim x rank),

    x^T W(t) = (x^T B) (B^T W(t))           for every x in the span,
    W(t)     = W(0) + B (B^T W(t) - B^T W(0)),

so gradient descent on the small matrices B^T W with the small tokens x^T B is the same training. It is exact for plain
and momentum gradient descent, whose steps are combinations of gradients; not for Adam, whose steps are not.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float


def span_basis(vectors: Float[Array, "count dim"]) -> Float[Array, "dim rank"]:
    """Return an orthonormal basis whose span contains the given vectors; rank = min(count, dim)."""
    return jnp.linalg.qr(vectors.T)[0]


def into_span(basis: Float[Array, "dim rank"], weights: Float[Array, "dim out"]) -> Float[Array, "rank out"]:
    """Return the part of the weights that acts on the training tokens."""
    return basis.T @ weights


def out_of_span(
    basis: Float[Array, "dim rank"], start: Float[Array, "dim out"], trained: Float[Array, "rank out"]
) -> Float[Array, "dim out"]:
    """Return the full weights after training in the span. The part outside of the span keeps its initial value."""
    return start + basis @ (trained - into_span(basis, start))
