"""Prompts of binary classification tasks, by the indices of their patterns: which pattern decides, which one disturbs, how
strongly, and the label.

Patterns are orthogonal, so that indices and strengths carry everything that a prompt holds; `tokens` makes the vectors.
"""

from itertools import combinations
from math import sqrt
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.errors import require
from lemmata.own import Taken, require_between, require_signs
from lemmata.parts.patterns import each, flat, orthonormal
from lemmata.trial import Key, fixed

Tasks = Int[Array, "tasks two members"]
"""`tasks[t]` holds the patterns that task t maps to +1, and those that it maps to -1."""

Selection = Literal["random", "exact", "opposed"]
Domain = Literal["partners", "apart", "sums"]


class Prompt(NamedTuple):
    """Contexts (`relevant`: j, `irrelevant`: k, `strength`: kappa of x = mu_j + kappa nu_k; `label`; `shown`: whether the
    place holds a context), then the query and its label `target`; standard normal numbers for `noise` n on all inputs, the
    query's last, or none."""

    relevant: Int[Array, "*n contexts"]
    irrelevant: Int[Array, "*n contexts"]
    strength: Float[Array, "*n contexts"]
    label: Float[Array, "*n contexts"]
    shown: Bool[Array, "*n contexts"]
    query: Int[Array, "*n"]
    query_irrelevant: Int[Array, "*n"]
    query_strength: Float[Array, "*n"]
    target: Float[Array, "*n"]
    noise: Float[Array, "*n columns m"] | None = None


class OwnPrompts(NamedTuple):
    """Prompts that a user hands in: `train(trial, data=OwnPrompts(...))`. Steps take them in order as batches, again and again.

    `task`: for each prompt the patterns that its task maps to +1 and to -1. These are the tasks that were trained on; tests in
    domain ask the others. `vectors`: with the simulator `tokens` the orthonormal vectors of the M_1 relevant patterns, the M_2
    irrelevant ones and the label, as rows; None with every other.
    """

    prompts: Prompt
    task: Int[Array, "prompts two members"]
    vectors: Float[Array, "reduced dim"] | None = None


class Frame(NamedTuple):
    """The vectors that prompts are made of: patterns as rows, padded to the length of a token, the label's direction, and rows
    along which noise is added, as long as its standard deviation (or None)."""

    relevant: Float[Array, "m1 dim"]
    irrelevant: Float[Array, "m2 dim"]
    label: Float[Array, " dim"]
    noise: Float[Array, "m dim"] | None = None


class Contexts(eqx.Module):
    """Patterns, training tasks and training prompts (section 6.3.2).

    `relevant_fraction` alpha, `pattern_norm` beta, `noise_bound` K, `examples` l_tr (of at most `room` places), `relevant` M_1,
    `irrelevant` M_2. Training tasks: the cyclic set with `task_shifts` U, or the pairs (plus, minus) `given`, counted from 0;
    with `task_count` above 0 that many tasks by the protocol of figure E.2: drawn from the cyclic set, or the cyclic set and
    others, whether they cover every pattern or not. `per_class` patterns decide for each label (E.2.3). `extra_noise` is the
    standard deviation of a Gaussian n in every coordinate of every input x = mu_j + kappa nu_k + n, trained and tested
    (Definition E.4.8; the document says no more of it).
    """

    relevant_fraction: float = 0.8
    pattern_norm: float = 3.0
    noise_bound: float = 0.5
    examples: int = 20
    task_count: int = 0
    relevant: int = fixed(default=6)
    irrelevant: int = fixed(default=24)
    feature_dim: int = fixed(default=30)
    label_dim: int = fixed(default=30)
    room: int = fixed(default=20)
    task_shifts: int = fixed(default=1)
    per_class: int = fixed(default=1)
    extra_noise: float = fixed(default=0.0)
    given: tuple[tuple[int, ...], ...] = fixed(default=())

    def __check_init__(self):
        m, c = self.relevant, self.per_class
        require(c >= 1 and m >= 2 * c, f"a task needs {2 * c} relevant patterns, and there are M_1 = {m}.")
        require(
            self.irrelevant >= 1,
            f"every input holds an irrelevant pattern: M_2 must be at least 1, not {self.irrelevant}.",
        )
        require(
            m + self.irrelevant <= self.feature_dim,
            f"M_1 + M_2 = {m + self.irrelevant} orthogonal patterns need as many dimensions; feature_dim is "
            f"{self.feature_dim}.",
        )
        require(self.label_dim >= 1, f"labels need at least one dimension, not {self.label_dim}.")
        require(
            0 < self.relevant_fraction <= 1,
            f"the fraction alpha of decisive contexts lies in (0, 1], not {self.relevant_fraction}.",
        )
        require(
            m > 2 * c or self.relevant_fraction == 1,
            "with no pattern but the decisive ones every context is decisive: alpha must be 1.",
        )
        require(self.pattern_norm > 0, f"the pattern norm beta must be positive, not {self.pattern_norm}.")
        require(self.noise_bound >= 0, f"the noise bound K must not be negative, not {self.noise_bound}.")
        require(self.extra_noise >= 0, f"the extra noise must not be negative, not {self.extra_noise}.")
        require(
            not self.extra_noise or m + self.irrelevant == self.feature_dim,
            f"extra noise fills all dimensions, so that patterns must, too: M_1 + M_2 is {m + self.irrelevant}, and "
            f"feature_dim {self.feature_dim}.",
        )
        require(
            1 <= self.examples <= self.room,
            f"a prompt holds 1 to room = {self.room} contexts, not {self.examples}.",
        )
        require(
            1 <= self.task_shifts < m,
            f"the cyclic tasks have 1 to M_1 - 1 = {m - 1} shifts, not {self.task_shifts}.",
        )
        require(
            c == 1 or (self.task_shifts == 1 and not self.given),
            "with several patterns per class the training tasks are the cyclic set with one shift.",
        )
        if self.given:
            check_tasks(np.asarray(self.given), m)
        most = len(all_tasks(m, c))
        require(
            0 <= self.task_count <= most,
            f"there are {most} tasks, so that task_count = {self.task_count} cannot be.",
        )

    @property
    def trained(self) -> Int[np.ndarray, "tasks two members"]:
        """The training tasks; with `task_count` the cyclic set that the protocol begins with."""
        if self.given:
            return np.asarray(self.given)[:, :, None]
        return cyclic_tasks(self.relevant, self.task_shifts, self.per_class)

    def table(self, key: Key) -> tuple[Tasks, Int[Array, ""]]:
        """All tasks, those of the training first (both parts in random order), and how many are trained on."""
        first = self.trained
        seen = {task.tobytes() for task in first}
        rest = [t for t in all_tasks(self.relevant, self.per_class) if t.tobytes() not in seen]
        order = jax.random.permutation(jax.random.fold_in(key, 0), len(first))
        parts = [jnp.asarray(first)[order]]
        if rest:
            later = jax.random.permutation(jax.random.fold_in(key, 1), len(rest))
            parts.append(jnp.asarray(np.stack(rest))[later])
        count = jnp.where(jnp.asarray(self.task_count) > 0, self.task_count, len(first))
        return jnp.concatenate(parts), count

    def draw(self, key: Key, tasks: Tasks, trained: Int[Array, ""], count: int) -> Prompt:
        """Training prompts. Tasks and both labels are walked through in turn from a random place on, so that a batch of a
        multiple of 2 |T_tr| prompts has every pattern equally often as query."""
        offset = jax.random.randint(jax.random.fold_in(key, count), (), 0, 1 << 20)

        def one(own: Key, index: Int[Array, ""]) -> Prompt:
            at = index + offset
            task, side = tasks[(at // 2) % trained], at % 2
            fraction, bound = self.relevant_fraction, self.noise_bound
            found = prompt(
                own, task, side, fraction, bound, self.examples, self.relevant, self.irrelevant, self.room
            )
            return disturbed(found, own, self.relevant + self.irrelevant) if self.extra_noise else found

        return each(one, key, count)


# Tasks -----------------------------------------------------------------------------------------------------------------


def cyclic_tasks(patterns: int, shifts: int = 1, per_class: int = 1) -> Int[np.ndarray, "tasks two members"]:
    """Section 6.5: task (k - 1) M_1 + j maps pattern j to +1 and pattern j + k to -1, around the cycle. With several patterns
    per class each side is a run of neighbours.

    >>> cyclic_tasks(3)[:, :, 0].tolist()
    [[0, 1], [1, 2], [2, 0]]
    """
    step, members = np.arange(patterns), np.arange(per_class)
    sides = [
        np.stack([step[:, None] + members, step[:, None] + k * per_class + members], 1)
        for k in range(1, shifts + 1)
    ]
    return np.concatenate(sides) % patterns


def all_tasks(patterns: int, per_class: int = 1) -> list[Int[np.ndarray, "two members"]]:
    """Every ordered pair of disjoint classes (Definition 6.3.1): M_1 (M_1 - 1) of them with one pattern each."""
    if per_class == 1:
        return [np.array([[a], [b]]) for a in range(patterns) for b in range(patterns) if a != b]
    classes = [frozenset(one) for one in combinations(range(patterns), per_class)]
    return [np.array([sorted(a), sorted(b)]) for a in classes for b in classes if not a & b]


def coverage(tasks: Int[np.ndarray, "tasks two *members"], patterns: int) -> Int[np.ndarray, "two patterns"]:
    """How many tasks map each pattern to +1 (first row) and to -1 (second row).

    >>> coverage(np.array([[0, 1], [1, 0]]), 2).tolist()
    [[1, 1], [1, 1]]
    """
    return np.stack([np.bincount(tasks[:, side].ravel(), minlength=patterns) for side in (0, 1)])


def check_tasks(tasks: Int[np.ndarray, "tasks two"], patterns: int) -> None:
    """Refuse a set of training tasks that Condition 6.3.2 does not hold for."""
    require(
        tasks.ndim == 2 and tasks.shape[1] == 2 and bool(np.all(tasks[:, 0] != tasks[:, 1])),
        "a task is a pair of two different patterns, the one for +1 first.",
    )
    require(
        int(tasks.min()) >= 0 and int(tasks.max()) < patterns,
        f"patterns are counted from 0 to {patterns - 1}.",
    )
    require(len({tuple(one) for one in tasks.tolist()}) == len(tasks), "a training task is given twice.")
    counts = coverage(tasks, patterns)
    wanted = len(tasks) / patterns
    side, which = np.unravel_index(int(np.argmax(np.abs(counts - wanted))), counts.shape)
    require(
        bool(np.all(counts == wanted)),
        f"Condition 6.3.2 asks that every pattern is mapped to either label by |T_tr|/M_1 = {wanted:g} tasks; pattern {which} "
        f"is mapped to {'+1' if side == 0 else '-1'} by {counts[side, which]}.",
    )


# Prompts ---------------------------------------------------------------------------------------------------------------


def prompt(
    key: Key,
    task: Int[Array, "two members"],
    side: Int[Array, ""],
    fraction: float | Array,
    bound: float | Array,
    length: int | Array,
    relevant: int,
    irrelevant: int,
    room: int,
    selection: Selection = "random",
) -> Prompt:
    """One prompt whose query has a pattern of one side of the task (0: label +1).

    `random`: every context has either side of the task with probability `fraction`/2, otherwise another pattern.
    `exact`: a share of `fraction`/2, rounded up, has the query's own pattern, as many the other side's, the rest
    another. `opposed`: the same share has the query's pattern and all others the other side's: the worst allowed.
    """
    members = task.shape[1]
    dtype = jnp.result_type(float) if not isinstance(bound, Array) else bound.dtype
    u = jax.random.uniform(key, (5 * (room + 1),), dtype).reshape(5, room + 1)
    role_u, member_u, irrelevant_u, strength_u, sign_u = u

    def side_of(patterns: Array) -> Array:
        """+1 or -1 where the task decides, 0 elsewhere."""
        plus, minus = (jnp.any(patterns[..., None] == one, axis=-1) for one in task)
        return plus.astype(int) - minus

    own, opposite = task[side], task[1 - side]
    which = jnp.floor(member_u * members).astype(int)
    query = own[which[room]]
    place = jnp.arange(room)
    if selection == "random":
        role = jnp.where(role_u[:room] < fraction / 2, 0, jnp.where(role_u[:room] < fraction, 1, 2))
        same = own[which[:room]]
    else:
        many = jnp.ceil(fraction * length / 2 - 1e-4).astype(int)
        rest = 2 if selection == "exact" and relevant > 2 * members else 1
        role = jnp.where(place < many, 0, jnp.where(place < 2 * many, 1, rest))
        same = jnp.full(room, query)
    other = _others(side_of(jnp.arange(relevant)) == 0, member_u[:room], max(relevant - 2 * members, 1))
    pattern = jnp.where(role == 0, same, jnp.where(role == 1, opposite[which[:room]], other))
    coin = jnp.where(sign_u[:room] < 0.5, 1, -1)
    given = side_of(pattern)
    disturbing = jnp.floor(irrelevant_u * irrelevant).astype(int)
    strength = bound * (2 * strength_u - 1)
    return Prompt(
        pattern,
        disturbing[:room],
        strength[:room],
        jnp.where(given == 0, coin, given).astype(dtype),
        place < length,
        query,
        disturbing[room],
        strength[room],
        (1 - 2 * side).astype(dtype),
    )


def _others(free: Bool[Array, " m1"], u: Float[Array, " n"], count: int) -> Int[Array, " n"]:
    """For every `u` of [0, 1) one of the first `count` patterns, the free ones first. Places are counted and compared:
    sorting takes longer."""
    taken = ~free
    place = jnp.where(free, jnp.cumsum(free), jnp.sum(free) + jnp.cumsum(taken)) - 1
    found = jnp.floor(u * count).astype(int)[:, None] == place
    return jnp.sum(jnp.where(found, jnp.arange(len(free)), 0), axis=1)


def disturbed(prompt: Prompt, key: Key, dims: int) -> Prompt:
    """The prompt with noise on the inputs of all its columns."""
    columns, dtype = prompt.shown.shape[0] + 1, prompt.label.dtype
    return prompt._replace(noise=flat(jax.random.normal, jax.random.fold_in(key, 1), (columns, dims), dtype))


def tokens(frame: Frame, prompt: Prompt) -> tuple[Float[Array, "*n contexts dim"], Float[Array, "*n dim"]]:
    """The columns of (6.1): contexts (x_i; y_i) and the query (x; 0)."""

    def inputs(j: Array, k: Array, strength: Array) -> Array:
        return frame.relevant[j] + strength[..., None] * frame.irrelevant[k]

    x = inputs(prompt.relevant, prompt.irrelevant, prompt.strength)
    asked = inputs(prompt.query, prompt.query_irrelevant, prompt.query_strength)
    if frame.noise is not None:
        assert prompt.noise is not None
        noise = prompt.noise @ frame.noise
        x, asked = x + noise[..., :-1, :], asked + noise[..., -1, :]
    return x + prompt.label[..., None] * frame.label, asked


# Out of domain ---------------------------------------------------------------------------------------------------------

FIRST = 0.3  # the share of mu_1 - mu_2 in mu'_1
LARGEST = sqrt(2 * (1 - 2 * FIRST**2))
"""The largest coefficient sum of mu'_1: a = b."""


def mixing(
    kind: Domain, patterns: int, first: float | Array, sums: tuple[float, ...] = ()
) -> Float[Array, "three m"]:
    """The coefficients k_{j,i} of the out-of-domain patterns (section 6.5), orthonormal rows.

    mu'_1 = 0.3 (mu_1 - mu_2) + a mu_5 + b mu_6 with a + b = `first`, mu'_2 = (mu_1 + mu_2)/sqrt2, mu'_3 = (mu_3 + mu_4)/sqrt2:
    `partners`, since in the cyclic training tasks 1 and 2, 3 and 4, 5 and 6 meet. `apart` takes (1, 4), (2, 5), (3, 6),
    which do not. `sums`: rows with the given coefficient sums in otherwise arbitrary directions.
    """
    if kind == "sums":
        return with_sums(np.asarray(sums, float), patterns)
    pairs = ((0, 1), (2, 3), (4, 5)) if kind == "partners" else ((0, 3), (1, 4), (2, 5))
    (p1, p2), (p3, p4), (p5, p6) = pairs
    root = jnp.sqrt(jnp.maximum(LARGEST**2 - jnp.asarray(first) ** 2, 0))
    half = sqrt(0.5)
    rows = jnp.zeros((3, patterns))
    rows = rows.at[0, p1].set(FIRST).at[0, p2].set(-FIRST)
    rows = rows.at[0, p5].set((first + root) / 2).at[0, p6].set((first - root) / 2)
    return rows.at[1, jnp.array([p1, p2])].set(half).at[2, jnp.array([p3, p4])].set(half)


def with_sums(sums: Float[np.ndarray, " rows"], patterns: int) -> Float[Array, "rows m"]:
    """Orthonormal rows with given sums s: `s e^T / sqrt(M) + (I - s s^T/M)^(1/2) B` with e the unit vector along
    (1, ..., 1) and B orthonormal rows across it. They exist where |s|^2 <= M."""
    left = np.eye(len(sums)) - np.outer(sums, sums) / patterns
    values, vectors = np.linalg.eigh(left)
    require(
        bool(values.min() > -1e-9),
        f"rows with sums {sums.tolist()} cannot be orthonormal in {patterns} patterns.",
    )
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    mean = np.full(patterns, patterns**-0.5)
    turned = np.linalg.qr(
        np.column_stack([mean, np.random.default_rng(0).normal(size=(patterns, len(sums)))])
    )[0]
    return jnp.asarray(np.outer(sums, mean) / sqrt(patterns) + root @ turned[:, 1:].T)


# Prompts of one's own --------------------------------------------------------------------------------------------------


def own_form(data: Contexts, key: Key, vectors: jax.ShapeDtypeStruct | None = None) -> Taken:
    """Say which prompts a training takes: any number of those that `data` could draw. (It leaves the weights open.)"""

    def one() -> OwnPrompts:
        table, trained = data.table(key)
        return OwnPrompts(data.draw(key, table, trained, 1), table[:1])

    drawn = jax.eval_shape(one)
    return Taken(drawn._replace(vectors=vectors), None, OwnPrompts(True, True, False if vectors else None))  # pyright: ignore[reportArgumentType]  (answers in place of arrays)


def check_own(data: Contexts, own: OwnPrompts) -> None:
    """Refuse prompts whose numbers mean nothing, and vectors that are not orthonormal."""
    prompts = own.prompts
    for name, most in (
        ("relevant", data.relevant),
        ("query", data.relevant),
        ("irrelevant", data.irrelevant),
    ):
        require_between(f"data.prompts.{name}", getattr(prompts, name), 0, most - 1)
    require_between("data.prompts.query_irrelevant", prompts.query_irrelevant, 0, data.irrelevant - 1)
    require_signs("data.prompts.label", prompts.label)
    require_signs("data.prompts.target", prompts.target)
    require(
        bool(np.all(np.any(prompts.shown, axis=1))),
        "data.prompts.shown hides all contexts of a prompt; every prompt shows at least one.",
    )
    task = np.asarray(own.task)
    require_between("data.task", task, 0, data.relevant - 1)
    members = np.sort(task.reshape(len(task), -1), axis=1)
    require(
        bool(np.all(members[:, 1:] > members[:, :-1])),
        "data.task holds a pattern twice in one task; the patterns of a task differ.",
    )
    if own.vectors is not None:
        vectors = np.asarray(own.vectors, float)
        off = float(np.abs(vectors @ vectors.T - np.eye(len(vectors))).max())
        require(
            off < 1e-5, f"data.vectors takes orthonormal rows; a product of two of these is off by {off:.3g}."
        )


def own_table(data: Contexts, task: Int[Array, "prompts two members"]) -> tuple[Tasks, Int[Array, ""]]:
    """All tasks, those of the user's prompts first, and how many these are."""
    every = jnp.asarray(np.stack(all_tasks(data.relevant, data.per_class)))
    given = jnp.sort(task, axis=-1)
    seen = jnp.any(jnp.all(every[:, None] == given[None], axis=(2, 3)), axis=1)
    return every[jnp.argsort(~seen, stable=True)], jnp.sum(seen)


# Vectors ---------------------------------------------------------------------------------------------------------------


def pattern_frame(data: Contexts, dtype) -> Frame:
    """Patterns along the axes and one label coordinate: all that prompts can see."""
    m1, m2 = data.relevant, data.irrelevant
    rows = jnp.eye(m1 + m2 + 1, dtype=dtype)
    noise = data.extra_noise * rows[: m1 + m2] if data.extra_noise else None
    return Frame(data.pattern_norm * rows[:m1], data.pattern_norm * rows[m1 : m1 + m2], rows[-1], noise)


def turned_frame(data: Contexts, key: Key, dtype) -> tuple[Frame, Float[Array, "dim reduced"]]:
    """Patterns in random directions of R^{d_X}, q in a random direction of R^{d_Y}; and the matrix whose columns carry the axes
    of `pattern_frame` there."""
    x, y = data.feature_dim, data.label_dim
    m = data.relevant + data.irrelevant
    features = orthonormal(jax.random.fold_in(key, 0), m, x, dtype)
    label = orthonormal(jax.random.fold_in(key, 1), 1, y, dtype)
    carry = jnp.zeros((x + y, m + 1), dtype).at[:x, :m].set(features.T).at[x:, m].set(label[0])
    return carried(pattern_frame(data, dtype), carry), carry


def carried(frame: Frame, carry: Float[Array, "dim reduced"]) -> Frame:
    """The vectors of a frame in the space of tokens."""
    return jax.tree.map(lambda part: part @ carry.T, frame)
