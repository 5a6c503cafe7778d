"""Describes the real data sets: what they are, where they come from, and the counts and shapes that they must have.

A sha256 of None means that no checksum of the official file is known. Then only counts and shapes are checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lemmata.errors import unknown

Shapes = Mapping[str, tuple[str, tuple[int | None, ...]]]
"""For each array, the kinds of its dtype (`u`, `i`, `f`, `U`) and its shape, where None is any length."""


@dataclass(frozen=True)
class Official:
    """An official file.

    `name`: its name.
    `addresses`: where it can be downloaded, the official address first, then mirrors.
    `sha256`: its checksum, or None if it is not known.
    `limit`: the largest number of bytes that are accepted.
    """

    name: str
    addresses: tuple[str, ...]
    sha256: str | None
    limit: int


@dataclass(frozen=True)
class DataSet:
    """A data set.

    `name`: the name in `lemmata data get NAME`.
    `title`, `licence`, `citation`, `home`: for people.
    `meant_for`: studies, and the figures of their papers for which this data set is meant.
    `layout`: the name of the reader for the official files.
    `forms`: for each accepted form, the arrays with their shapes.
    `files`: the official files; empty if the owner wants users to download by hand.
    `megabytes`: how much the official files have, or None if it is not known.
    `archive`: the name of an official archive that `--from` looks for in a folder.
    `npz`: names of files with finished arrays that `--from` looks for in a folder, with their sha256 or None.
    `others`: the sha256 of other files that `--from` reads.
    `optional`: arrays that may be missing.
    """

    name: str
    title: str
    licence: str
    citation: str
    home: str
    meant_for: tuple[tuple[str, str], ...]
    layout: str
    forms: Mapping[str, Shapes]
    files: tuple[Official, ...]
    megabytes: float | None
    npz: Mapping[str, str | None]
    archive: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()


MEGABYTE = 1 << 20


def _images(train: int, test: int, *shape: int) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Return the shapes of images and labels for training and test."""
    return {
        "train_images": ("u", (train, *shape)),
        "train_labels": ("u", (train,)),
        "test_images": ("u", (test, *shape)),
        "test_labels": ("u", (test,)),
    }


def _idx(addresses: tuple[str, ...], checksums: Mapping[str, str]) -> tuple[Official, ...]:
    """Return the four files of an IDX data set."""
    return tuple(
        Official(name, tuple(f"{address}/{name}" for address in addresses), sha256, 40 * MEGABYTE)
        for name, sha256 in checksums.items()
    )


def _graph(nodes: int, features: int, edges: int) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Return the shapes of a graph. Features are a sparse matrix, and a mask is a row of packed bits."""
    shapes: dict[str, tuple[str, tuple[int | None, ...]]] = {
        "edges": ("i", (edges, 2)),
        "features_data": ("f", (features,)),
        "features_indices": ("i", (features,)),
        "features_indptr": ("i", (nodes + 1,)),
        "features_shape": ("i", (2,)),
        "labels": ("i", (nodes,)),
    }
    return shapes


def _planetoid(name: str) -> tuple[Official, ...]:
    """Return the eight files of a planetoid graph."""
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    at = "https://github.com/kimiyoung/planetoid/raw/master/data"
    return tuple(
        Official(f"ind.{name}.{part}", (f"{at}/ind.{name}.{part}",), None, 40 * MEGABYTE) for part in parts
    )


def _bert(pieces: int, positions: int) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Return the shapes of the weights of a BERT encoder with 6 layers and width 384, and of its vocabulary."""
    width, inner = 384, 1536
    shapes: dict[str, tuple[int | None, ...]] = {
        "embeddings/word_embeddings/weight": (pieces, width),
        "embeddings/position_embeddings/weight": (positions, width),
        "embeddings/token_type_embeddings/weight": (2, width),
    }
    norms, dense = ["embeddings/LayerNorm"], {}
    for i in range(6):
        layer = f"layer/{i}"
        norms += [f"{layer}/attention/output/LayerNorm", f"{layer}/output/LayerNorm"]
        dense |= {f"{layer}/attention/self/{part}": (width, width) for part in ("query", "key", "value")}
        dense |= {f"{layer}/attention/output/dense": (width, width)}
        dense |= {f"{layer}/intermediate/dense": (inner, width), f"{layer}/output/dense": (width, inner)}
    for norm in norms:
        shapes |= {f"{norm}/weight": (width,), f"{norm}/bias": (width,)}
    for name, (rows, columns) in dense.items():
        shapes |= {f"{name}/weight": (rows, columns), f"{name}/bias": (rows,)}
    return {f"w/{name}": ("f", shape) for name, shape in shapes.items()} | {"vocabulary": ("U", (pieces,))}


def _sentences(train: int, dev: int, test: int) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Return the shapes of sentences with labels."""
    shapes: dict[str, tuple[str, tuple[int | None, ...]]] = {}
    for split, count in (("train", train), ("dev", dev), ("test", test)):
        shapes |= {f"{split}_sentences": ("U", (count,)), f"{split}_labels": ("i", (count,))}
    return shapes


def _tokens(**counts: tuple[int, int]) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Return the shapes of sentences that are already tokens."""
    shapes: dict[str, tuple[str, tuple[int | None, ...]]] = {}
    for split, (sentences, tokens) in counts.items():
        shapes[f"{split}/tokens"] = ("u", (tokens,))
        shapes[f"{split}/ends"] = ("i", (sentences,))
        shapes[f"{split}/labels"] = ("u", (sentences,))
    return shapes


_CIFAR_NAMES = {"class_names": ("U", (10,))}
_SST2_SENTENCES = (6920, 872, 1821)
_SST2 = "https://raw.githubusercontent.com/clairett/pytorch-sentiment-classification"
_SST2_AT = f"{_SST2}/457ffd83de90a9d6d472d8ffc31bbffe40a8b236/data/SST2"
_MINILM_AT = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve"
_MINILM_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"

_ALL = (
    DataSet(
        name="mnist",
        title="MNIST: 70,000 handwritten digits, 28 x 28 grey",
        licence="LeCun, Cortes and Burges; usually given as CC BY-SA 3.0",
        citation="LeCun, Bottou, Bengio, Haffner (1998): Gradient-based learning applied to document recognition",
        home="http://yann.lecun.com/exdb/mnist",
        meant_for=(("benign-overfitting", "2"), ("spatial-structure", "7")),
        layout="idx",
        forms={"whole": _images(60000, 10000, 28, 28)},
        files=_idx(
            (
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                "https://storage.googleapis.com/cvdf-datasets/mnist",
                "http://yann.lecun.com/exdb/mnist",
            ),
            {
                "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            },
        ),
        megabytes=11.6,
        npz={"mnist.npz": "39b9b1ffaa0ba4d8995a616551f0966941fe02a3fe79ba4a9db7373db16d53ad"},
    ),
    DataSet(
        name="fashion-mnist",
        title="Fashion-MNIST: 70,000 pictures of clothes, 28 x 28 grey",
        licence="MIT, Zalando SE",
        citation="Xiao, Rasul, Vollgraf (2017): Fashion-MNIST, arXiv:1708.07747",
        home="https://github.com/zalandoresearch/fashion-mnist",
        meant_for=(("spatial-structure", "7"),),
        layout="idx",
        forms={"whole": _images(60000, 10000, 28, 28)},
        files=_idx(
            (
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion",
            ),
            {
                "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            },
        ),
        megabytes=30.9,
        npz={
            "fashion-mnist.npz": None,
            "fashion_mnist.npz": "0b8ff0e3b709c3fd455824f1614f38914bdc7bc07a0eeb7d70ca917322511f1d",
        },
    ),
    DataSet(
        name="cifar10",
        title="CIFAR-10: 60,000 pictures of ten classes, 32 x 32 colour",
        licence="no stated licence; for research, with citation",
        citation="Krizhevsky (2009): Learning multiple layers of features from tiny images",
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        meant_for=(
            ("shallow-vit", "6a-c"),
            ("spatial-structure", "5, 7, 8"),
            ("group-imbalance", "4.1, 4.8"),
        ),
        layout="cifar",
        forms={
            "whole": _images(50000, 10000, 32, 32, 3) | _CIFAR_NAMES,
            "12k": _images(10000, 2000, 32, 32, 3)
            | _CIFAR_NAMES
            | {"train_index": ("u", (10000,)), "test_index": ("u", (2000,))},
        },
        files=(
            Official(
                "cifar-10-python.tar.gz",
                ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
                "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
                200 * MEGABYTE,
            ),
        ),
        megabytes=170.5,
        npz={
            "cifar10.npz": None,
            "cifar10_12k.npz": "ba1c9b3ca0f202680d4512498c2b7ab5d66fa934bd6adf0dd085071afc28e3d5",
        },
        archive="cifar-10-python.tar.gz",
    ),
    DataSet(
        name="celeba",
        title="CelebA: 202,599 faces with 40 attributes, here 32 x 32 colour",
        licence="for non-commercial research only; the agreement is on the home page",
        citation="Liu, Luo, Wang, Tang (2015): Deep learning face attributes in the wild, ICCV",
        home="https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
        meant_for=(("group-imbalance", "4.1, 4.8"),),
        layout="celeba",
        forms={
            "whole": {
                "images": ("u", (202599, 32, 32, 3)),
                "attributes": ("u", (202599, 40)),
                "attribute_names": ("U", (40,)),
                "partition": ("u", (202599,)),
            }
        },
        files=(),
        megabytes=None,
        npz={"celeba.npz": None},
    ),
    DataSet(
        name="sst2",
        title="SST-2: sentences of film reviews, negative or positive",
        licence="none stated",
        citation="Socher et al. (2013): Recursive deep models for semantic compositionality, EMNLP",
        home="https://nlp.stanford.edu/sentiment",
        meant_for=(("multihead", "6"),),
        layout="sst2",
        forms={"sentences": _sentences(*_SST2_SENTENCES), "glue": _sentences(67349, 872, 1821)},
        files=tuple(
            Official(f"{split}.tsv", (f"{_SST2_AT}/{split}.tsv",), None, 4 * MEGABYTE)
            for split in ("train", "dev", "test")
        ),
        megabytes=1.0,
        npz={"sst2.npz": None},
        archive="SST-2.zip",
        others={
            "SST-2.zip": "d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa",
            "sst2_train.tsv": "99c008aa187c95cd6c8f3190894decf667c79c29da492ce07d75107ae1fd8782",
            "sst2_dev.tsv": "68cba806d6099256e03379dd9dcc8fb6fdbf6191383200edf39e7b58ced180d8",
            "sst2_test.tsv": "a6050082a7e0a072722b19283d2e1098436870c282e3300da29a91df13dfaa7d",
        },
    ),
    DataSet(
        name="minilm",
        title="all-MiniLM-L6-v2: weights of a BERT encoder, 6 layers, width 384, 12 heads",
        licence="Apache-2.0",
        citation="Reimers, Gurevych (2019): Sentence-BERT, EMNLP; Wang et al. (2020): MiniLM, NeurIPS",
        home="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
        meant_for=(("multihead", "6"),),
        layout="minilm",
        forms={
            "whole": _bert(30522, 512),
            "sst2": _bert(12838, 128) | _tokens(train=(6920, 161526), dev=(872, 20599), test=(1821, 42298)),
        },
        files=(
            Official(
                "model.safetensors",
                (f"{_MINILM_AT}/{_MINILM_REVISION}/model.safetensors",),
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                100 * MEGABYTE,
            ),
            Official("vocab.txt", (f"{_MINILM_AT}/{_MINILM_REVISION}/vocab.txt",), None, MEGABYTE),
        ),
        megabytes=91.1,
        npz={
            "minilm.npz": None,
            "sst2_minilm.npz": "1f0b960fb4a62ad8141d5fadc1a07fc023b45d20ff10daeb2d1490ace231a473",
        },
    ),
    DataSet(
        name="cora",
        title="Cora: 2,708 papers in 7 classes with 5,278 citations",
        licence="MIT (planetoid)",
        citation="Yang, Cohen, Salakhutdinov (2016): Revisiting semi-supervised learning with graph embeddings, ICML",
        home="https://github.com/kimiyoung/planetoid",
        meant_for=(("graph-transformer", "3.8, 3.9, B.7, B.8, tables B.1, B.5"),),
        layout="planetoid",
        forms={"whole": _graph(2708, 49216, 5278)},
        files=_planetoid("cora"),
        megabytes=None,
        npz={"cora.npz": None},
    ),
    DataSet(
        name="citeseer",
        title="CiteSeer: 3,327 papers in 6 classes with 4,552 citations",
        licence="MIT (planetoid)",
        citation="Yang, Cohen, Salakhutdinov (2016): Revisiting semi-supervised learning with graph embeddings, ICML",
        home="https://github.com/kimiyoung/planetoid",
        meant_for=(("graph-transformer", "3.8, 3.9"),),
        layout="planetoid",
        forms={"whole": _graph(3327, 105165, 4552)},
        files=_planetoid("citeseer"),
        megabytes=None,
        npz={"citeseer.npz": None},
    ),
    DataSet(
        name="actor",
        title="Actor: 7,600 actors in 5 classes with 26,659 pairs on the same page",
        licence="MIT (heterophilous-graphs)",
        citation="Pei et al. (2020): Geom-GCN, ICLR; Platonov et al. (2023): heterophilous graphs, ICLR",
        home="https://github.com/yandex-research/heterophilous-graphs",
        meant_for=(("graph-transformer", "3.8, 3.9, B.7, B.8, tables B.3, B.5, B.6, B.8"),),
        layout="actor",
        forms={
            "whole": _graph(7600, 40977, 26659)
            | {f"{split}_masks": ("u", (10, 950)) for split in ("train", "val", "test")}
        },
        files=(
            Official(
                "actor.npz",
                ("https://github.com/yandex-research/heterophilous-graphs/raw/main/data/actor.npz",),
                None,
                200 * MEGABYTE,
            ),
        ),
        megabytes=None,
        npz={"actor.npz": None},
        optional=("train_masks", "val_masks", "test_masks"),
    ),
)

CATALOGUE: dict[str, DataSet] = {one.name: one for one in _ALL}
"""The data sets by name."""


def data_set(name: str) -> DataSet:
    """Return a data set by its name, or raise `BadInput` with the closest known name."""
    if name not in CATALOGUE:
        raise unknown("data set", name, CATALOGUE)
    return CATALOGUE[name]
