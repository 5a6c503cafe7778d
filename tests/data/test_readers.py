"""Made archives in each official layout give the arrays that they were made from; damaged and crafted ones are refused."""

import gzip
import json
import pickle
import struct

import numpy as np
import pytest

from lemmata import data
from lemmata.data import graphs, images, sources, text
from lemmata.data.catalogue import CATALOGUE
from lemmata.data.sources import Source, open_source
from lemmata.errors import BadInput
from tests.data.layouts import (
    SEED,
    cifar_files,
    idx_files,
    made_images,
    picture,
    planetoid_files,
    safetensors,
    shrunk,
    tar_of,
    write_files,
    zip_of,
)


def same(found, made):
    assert set(found) == set(made)
    for name, array in made.items():
        assert found[name].dtype.kind == array.dtype.kind
        assert np.array_equal(found[name], array), name


# IDX -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
def test_idx_files_are_read_compressed_or_not(tmp_path, plain):
    files = idx_files(made_images())
    if plain:
        files = {name.removesuffix(".gz"): gzip.decompress(body) for name, body in files.items()}
    same(images.read_idx(open_source(write_files(tmp_path, files))), made_images())


def test_idx_files_are_found_in_nested_folders_and_under_their_other_name(tmp_path):
    files = {f"raw/{n}".replace("-idx", ".idx"): body for n, body in idx_files(made_images()).items()}
    same(images.read_idx(open_source(write_files(tmp_path, files))), made_images())


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-1],
        lambda raw: raw + b"x",
        lambda raw: b"\x00\x00\x0d" + raw[3:],
        lambda raw: raw[:4] + struct.pack(">I", 2**31) + raw[8:],
        lambda raw: b"",
    ],
)
def test_damaged_idx_files_are_refused(tmp_path, damage):
    files = idx_files(made_images())
    name = "t10k-labels-idx1-ubyte.gz"
    files[name] = gzip.compress(damage(gzip.decompress(files[name])))
    with pytest.raises(BadInput, match="t10k-labels-idx1-ubyte' is"):
        images.read_idx(open_source(write_files(tmp_path, files)))


def test_a_gzip_file_that_is_cut_off_is_refused(tmp_path):
    files = idx_files(made_images())
    files["t10k-images-idx3-ubyte.gz"] = files["t10k-images-idx3-ubyte.gz"][:-200]
    with pytest.raises(BadInput, match="is damaged"):
        images.read_idx(open_source(write_files(tmp_path, files)))


def test_a_small_file_that_unpacks_into_a_large_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "LARGEST_IDX", 1 << 16)
    files = idx_files(made_images()) | {"train-images-idx3-ubyte.gz": gzip.compress(bytes(1 << 20))}
    with pytest.raises(BadInput, match="more than the 65536 bytes"):
        images.read_idx(open_source(write_files(tmp_path, files)))


# CIFAR-10 --------------------------------------------------------------------------------------------------------------


def test_cifar_is_read_from_its_archive_and_from_its_folder(tmp_path):
    files, made = cifar_files()
    same(images.read_cifar(open_source(tar_of(tmp_path / "cifar-10-python.tar.gz", files))), made)
    same(images.read_cifar(open_source(write_files(tmp_path / "folder", files))), made)


@pytest.mark.parametrize(
    "batch",
    [
        {"data": np.zeros((2, 3072), np.uint8), "labels": [0]},
        {"data": np.zeros((1, 3072), np.uint8), "labels": [10]},
        {"data": np.zeros((1, 3071), np.uint8), "labels": [0]},
        {"data": np.zeros((1, 3072), np.float32), "labels": [0]},
        {"data": [0], "labels": [0]},
        {"labels": [0]},
        [],
    ],
)
def test_batches_of_wrong_counts_and_types_are_refused(tmp_path, batch):
    files, _ = cifar_files()
    files["cifar-10-batches-py/data_batch_3"] = pickle.dumps(batch, protocol=2)
    with pytest.raises(BadInput, match="data_batch_3"):
        images.read_cifar(open_source(write_files(tmp_path, files)))


# Archives --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "..\\evil"])
@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_archives_with_members_outside_of_themselves_are_refused(tmp_path, pack, name):
    path = pack(tmp_path / "archive", {name: b"x"})
    with pytest.raises(BadInput, match="outside of itself"):
        open_source(path)
    assert [one.name for one in tmp_path.iterdir()] == ["archive"]


def test_links_in_archives_are_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    path = tar_of(tmp_path / "archive", {"other": b"x"}, links=[("data_batch_1", str(tmp_path / "secret"))])
    with pytest.raises(BadInput, match="holds no file 'data_batch_1'"):
        open_source(path).read(100, "data_batch_1")


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_members_that_are_too_large_are_not_read(tmp_path, pack):
    source = open_source(pack(tmp_path / "archive", {"big": bytes(1001)}))
    with pytest.raises(BadInput, match="more than the 1000 bytes"):
        source.read(1000, "big")


def test_sizes_are_checked_before_anything_is_opened(tmp_path):
    opened = []
    source = Source(tmp_path, {"big": (1001, lambda: opened.append("big"))}, {})
    with pytest.raises(BadInput, match="more than the 1000 bytes"):
        source.read(1000, "big")
    assert opened == []


def test_a_tar_archive_that_unpacks_into_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_ARCHIVE", 1500)
    path = tar_of(tmp_path / "archive", {"one": bytes(1000), "two": bytes(1000)})
    with pytest.raises(BadInput, match="unpacks to more than 1500 bytes"):
        open_source(path)


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "file").write_text("text")
    for name in ("file", "nothing"):
        with pytest.raises(BadInput, match=name):
            open_source(tmp_path / name)


def test_a_damaged_zip_archive_is_refused(tmp_path):
    path = zip_of(tmp_path / "archive", {"train.tsv": bytes(range(256)) * 40})
    whole = bytearray(path.read_bytes())
    whole[60] ^= 255
    path.write_bytes(bytes(whole))
    with pytest.raises(BadInput, match="is damaged"):
        open_source(path).read(1 << 20, "train.tsv")


# Graphs ----------------------------------------------------------------------------------------------------------------


def full(graph):
    from scipy.sparse import csr_matrix

    parts = (graph["features_data"], graph["features_indices"], graph["features_indptr"])
    return csr_matrix(parts, shape=tuple(graph["features_shape"])).toarray()


def test_planetoid_files_give_features_labels_and_edges_in_the_order_of_the_nodes(tmp_path):
    files, features, labels, edges = planetoid_files("cora")
    graph = graphs.read_planetoid(open_source(write_files(tmp_path, files)), "cora")
    assert np.array_equal(full(graph), features)
    assert np.array_equal(graph["labels"], labels)
    assert [tuple(edge) for edge in graph["edges"]] == edges


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("test.index", b"9\n6\n"),
        ("test.index", b"9\n6\n6\n"),
        ("test.index", b"9\n6\n5\n"),
        ("test.index", b"9\n6\n999999999999\n"),
        ("test.index", b"nine\n"),
        ("graph", pickle.dumps({0: [10]}, 2)),
        ("graph", pickle.dumps({0: [-1]}, 2)),
        ("graph", pickle.dumps({0: "12"}, 2)),
        ("ty", pickle.dumps(np.eye(2), 2)),
        ("allx", pickle.dumps(np.eye(2), 2)),
    ],
)
def test_planetoid_files_that_do_not_fit_together_are_refused(tmp_path, part, body):
    files, *_ = planetoid_files("cora")
    with pytest.raises(BadInput):
        graphs.read_planetoid(open_source(write_files(tmp_path, files | {f"ind.cora.{part}": body})), "cora")


def test_a_sparse_matrix_with_indices_out_of_range_is_refused(tmp_path):
    from scipy.sparse import csr_matrix

    files, *_ = planetoid_files("cora")
    matrix = csr_matrix(np.ones((3, 5), np.float32))
    matrix.indices[2] = 100_000
    files["ind.cora.tx"] = pickle.dumps(matrix, 2)
    with pytest.raises(BadInput, match=r"ind\.cora\.tx"):
        graphs.read_planetoid(open_source(write_files(tmp_path, files)), "cora")


FILM = {
    "out1_node_feature_label.txt": b"node_id\tfeature\tlabel\n2\t3\t1\n0\t0,2,2\t4\n1\t1\t0\n",
    "out1_graph_edges.txt": b"node_id\tnode_id\n1\t0\n0\t1\n2\t2\n2\t1\n",
}


def test_the_tables_of_geom_gcn_give_a_graph(tmp_path):
    graph = graphs.read_actor(open_source(write_files(tmp_path, FILM)))
    assert np.array_equal(full(graph), [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    assert graph["labels"].tolist() == [4, 0, 1]
    assert graph["edges"].tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("line", [b"3\t1\n", b"-1\t1\n", b"1\n", b"a\tb\n", b"1\t1\t1\n"])
def test_edges_that_lead_nowhere_are_refused(tmp_path, line):
    files = FILM | {"out1_graph_edges.txt": FILM["out1_graph_edges.txt"] + line}
    with pytest.raises(BadInput):
        graphs.read_actor(open_source(write_files(tmp_path, files)))


def test_the_npz_of_heterophilous_graphs_becomes_the_same_graph_with_its_splits(tmp_path, home, monkeypatch):
    graph = graphs.read_actor(open_source(write_files(tmp_path / "film", FILM)))
    masks = np.array([[True, False, False], [False, True, True]])
    shrunk(monkeypatch, "actor", graph | {"train_masks": np.packbits(masks, axis=1)})
    arrays = {
        "node_features": full(graph),
        "node_labels": graph["labels"],
        "edges": np.array([[1, 0], [1, 2]]),
        "train_masks": masks,
    }
    np.savez(tmp_path / "actor.npz", **arrays)
    data.get("actor", tmp_path)
    found = data.load("actor")
    assert np.array_equal(np.unpackbits(found.pop("train_masks"), axis=1, count=3), masks)
    same(found, graph)


def test_a_stored_graph_gets_its_shape_upright_and_must_be_sound(tmp_path, home, monkeypatch):
    graph = graphs.read_actor(open_source(write_files(tmp_path / "film", FILM)))
    shrunk(monkeypatch, "cora", graph)
    np.savez(tmp_path / "cora.npz", **graph | {"features_shape": graph["features_shape"][::-1]})
    data.get("cora", tmp_path / "cora.npz")
    same(data.load("cora"), graph)
    np.savez(tmp_path / "cora.npz", **graph | {"edges": graph["edges"] + 1})
    with pytest.raises(BadInput, match="out of range"):
        data.get("cora", tmp_path / "cora.npz")


# Texts -----------------------------------------------------------------------------------------------------------------

GLUE = {
    "SST-2/train.tsv": b'sentence\tlabel\nhide new secretions \t0\nit \'s "fine" \t1\n',
    "SST-2/dev.tsv": b"sentence\tlabel\na caf\xc3\xa9 \t1\n",
    "SST-2/test.tsv": b"index\tsentence\n0\tuneasy mishmash\n1\tgood\n",
}
TABLES = {
    "train.tsv": b'0\thide new secretions\n1\tit \'s "fine"\n',
    "dev.tsv": b"1\ta caf\xc3\xa9\n",
    "test.tsv": b"0\tuneasy mishmash\n1\tgood\n",
}


def table(test_labels):
    return {
        "train_sentences": np.array(["hide new secretions", 'it \'s "fine"']),
        "train_labels": np.array([0, 1]),
        "dev_sentences": np.array(["a café"]),
        "dev_labels": np.array([1]),
        "test_sentences": np.array(["uneasy mishmash", "good"]),
        "test_labels": np.array(test_labels),
    }


def test_glue_gives_sentences_with_labels_but_for_the_test_set(tmp_path):
    same(text.read_sst2(open_source(zip_of(tmp_path / "SST-2.zip", GLUE))), table([-1, -1]))


def test_tables_are_read_with_either_column_first(tmp_path):
    same(text.read_sst2(open_source(write_files(tmp_path / "a", TABLES))), table([0, 1]))
    turned = {
        name: b"".join(b"\t".join(row.split(b"\t")[::-1]) + b"\n" for row in body.splitlines())
        for name, body in TABLES.items()
    }
    same(text.read_sst2(open_source(write_files(tmp_path / "b", turned))), table([0, 1]))


@pytest.mark.parametrize(
    "body", [b"", b"2\tgood\n", b"1 good\n", b"1\tgood\tmore\n", b"\xff\t1\n", b"1\t" + b"a" * 5000 + b"\n"]
)
def test_tables_that_are_no_sentences_with_labels_are_refused(tmp_path, body):
    with pytest.raises(BadInput, match=r"dev\.tsv"):
        text.read_sst2(open_source(write_files(tmp_path, TABLES | {"dev.tsv": body})))


def tensors():
    rng = np.random.default_rng(SEED)
    return {
        "embeddings.word_embeddings.weight": rng.normal(size=(5, 4)).astype(np.float32),
        "encoder.layer.0.attention.self.query.weight": rng.normal(size=(4, 4)).astype(np.float16),
        "embeddings.position_ids": np.arange(6)[None],
        "pooler.dense.bias": np.zeros(4, np.float32),
    }


VOCABULARY = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n##ing\n"


def test_weights_and_vocabulary_are_read_from_safetensors_and_word_pieces(tmp_path):
    made = tensors()
    files = {"model.safetensors": safetensors(made), "vocab.txt": VOCABULARY}
    same(
        text.read_minilm(open_source(write_files(tmp_path, files))),
        {
            "w/embeddings/word_embeddings/weight": made["embeddings.word_embeddings.weight"],
            "w/layer/0/attention/self/query/weight": made["encoder.layer.0.attention.self.query.weight"],
            "vocabulary": np.array(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "##ing"]),
        },
    )


def crafted(**changes):
    header = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}
    body = json.dumps(header).encode()
    return struct.pack("<Q", len(body)) + body + bytes(8)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(7),
        struct.pack("<Q", 2**60) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 2) + b"{x",
        crafted(shape=[3]),
        crafted(shape=[-2]),
        crafted(shape=[2**40, 2**40]),
        crafted(data_offsets=[0, 800]),
        crafted(data_offsets=[8, 0]),
        crafted(dtype="O"),
        crafted(shape=2),
    ],
)
def test_crafted_safetensors_are_refused(body):
    with pytest.raises(BadInput, match="file"):
        text.read_safetensors(body, "file")


def test_the_made_safetensors_of_these_tests_is_read():
    assert text.read_safetensors(crafted(), "file")["a"].tolist() == [0, 0]


def test_a_vocabulary_without_the_pieces_of_bert_is_refused(tmp_path):
    files = {"model.safetensors": safetensors(tensors()), "vocab.txt": b"the\nof\n"}
    with pytest.raises(BadInput, match="vocab"):
        text.read_minilm(open_source(write_files(tmp_path, files)))


# CelebA ----------------------------------------------------------------------------------------------------------------


def celeba_files(count=12):
    rng = np.random.default_rng(SEED)
    names, colours, values, files = [f"{i:06d}.jpg" for i in range(1, count + 1)], [], [], {}
    rows, parts = [], []
    for name in names:
        body, colour = picture(rng)
        files[f"img_align_celeba/{name}"] = body
        colours.append(colour)
        values.append(rng.integers(0, 2, 40))
        rows.append(" ".join([name, *("1" if value else "-1" for value in values[-1])]))
        parts.append(f"{name} {len(parts) % 3}")
    header = " ".join(f"Attribute_{i}" for i in range(40))
    files["Anno/list_attr_celeba.txt"] = "\n".join([str(count), header, *rows, ""]).encode()
    files["Eval/list_eval_partition.txt"] = "\n".join([*parts, ""]).encode()
    return files, np.array(colours), np.array(values)


def test_the_folder_of_celeba_gives_small_pictures_attributes_and_partitions(tmp_path, home, monkeypatch):
    files, colours, values = celeba_files()
    source = open_source(write_files(tmp_path / "celeba", files))
    found = images.read_celeba(source)
    assert found["images"].shape == (12, 32, 32, 3)
    assert (found["images"] == colours[:, None, None, :]).all()
    assert np.array_equal(found["attributes"], values)
    assert found["attribute_names"].tolist() == [f"Attribute_{i}" for i in range(40)]
    assert found["partition"].tolist() == [0, 1, 2] * 4
    assert set(source.used) == {"list_attr_celeba.txt", "list_eval_partition.txt"}
    with pytest.raises(BadInput, match="this is not celeba"):  # a dozen pictures are not 202,599
        data.get("celeba", tmp_path / "celeba")
    shrunk(monkeypatch, "celeba", found)
    data.get("celeba", tmp_path / "celeba")
    same(data.load("celeba"), found)


@pytest.mark.parametrize("broken", ["missing", "size", "no picture", "count", "partition"])
def test_a_folder_of_celeba_that_is_not_whole_is_refused(tmp_path, broken):
    files, *_ = celeba_files()
    first, listed = "img_align_celeba/000001.jpg", "Anno/list_attr_celeba.txt"
    if broken == "missing":
        del files[first]
    elif broken == "size":
        files[first] = picture(np.random.default_rng(0), (178, 217))[0]
    elif broken == "no picture":
        files[first] = b"no picture"
    elif broken == "count":
        files[listed] = b"13" + files[listed][2:]
    else:
        files["Eval/list_eval_partition.txt"] = files["Eval/list_eval_partition.txt"][13:]
    with pytest.raises(BadInput):
        images.read_celeba(open_source(write_files(tmp_path, files)))


def test_every_layout_of_the_catalogue_has_its_reader():
    from lemmata.data.store import READERS

    assert {one.layout for one in CATALOGUE.values()} == set(READERS)
