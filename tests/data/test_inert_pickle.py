"""A pickle is read, never run."""

import os
import pickle
import pickletools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.data import get_data
from attcem.data.inert_pickle import loads
from tests.data import tiny_archives as tiny

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.binary() | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)
PROTOCOLS = (2, 3, 4, 5)


@settings(max_examples=100)
@given(value=VALUES, protocol=st.sampled_from(PROTOCOLS))
def test_plain_values(value, protocol):
    data = pickle.dumps(value, protocol)
    assert loads(data) == pickle.loads(data) == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", ["u1", "i1", "<u2", ">i4", "<i8", ">u8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_integer_arrays(protocol, dtype, order):
    array = np.random.default_rng(0).integers(0, 100, (3, 5, 2)).astype(dtype, order=order)
    batch = {"data": array, b"again": [array, array], "labels": list(range(300)), "empty": array[:0], "none": b""}
    data = pickle.dumps(batch, protocol)
    ours, theirs = loads(data), pickle.loads(data)
    assert ours.keys() == theirs.keys() and ours["labels"] == theirs["labels"] and ours["none"] == b""
    for mine, original in zip([ours["data"], *ours[b"again"], ours["empty"]], [array] * 3 + [array[:0]], strict=True):
        assert mine.dtype.kind == original.dtype.kind and mine.itemsize == original.itemsize
        assert np.array_equal(mine, original) and mine.shape == original.shape
    assert np.array_equal(theirs["data"], ours["data"]) and theirs["data"].dtype == ours["data"].dtype


@pytest.mark.parametrize("package", [b"numpy.core", b"numpy._core"])
def test_names_of_older_and_newer_numpy(package):
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    data = pickle.dumps(array, 2).replace(b"numpy._core", b"numpy.core").replace(b"numpy.core", package)
    assert np.array_equal(loads(data), array)
    kind = pickle.dumps(array.dtype, 2)[2:-1]
    buffer = (
        b"\x80\x05c"
        + package
        + b".numeric\n_frombuffer\n(C\x06"
        + array.tobytes()
        + kind
        + b"K\x02K\x03\x86\x8c\x01CtR."
    )
    assert np.array_equal(loads(buffer), array)


def test_python_2_batch():
    x = tiny.pictures(3, 32, 32, 3)
    data = tiny.python2_batch(x, [5, 0, 255], b"labels")
    ours, theirs = loads(data), pickle.loads(data, encoding="bytes")
    assert ours[b"labels"] == theirs[b"labels"] == [5, 0, 255]
    assert np.array_equal(ours[b"data"], theirs[b"data"]) and np.array_equal(ours[b"data"], tiny.flat(x))


def test_protocol_0():
    value = {"names": ["a", "b"], "count": 3, "part": (1.5, None)}
    assert loads(pickle.dumps(value, 0)) == value


class Evil:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_command_is_not_run(protocol, tmp_path):
    trace = tmp_path / "trace"
    command = pickle.dumps({"data": Evil(os.system, f"touch {trace}"), "labels": []}, protocol)
    with pytest.raises(ValueError, match=r"it names .*system"):
        loads(command)
    archive = tiny.write_tar(
        tmp_path / "archive", {"data_batch_1": command, "test_batch": command, "batches.meta": command}
    )
    with pytest.raises(ValueError, match="data_batch_1: this pickle is refused"):
        get_data("cifar10", root=tmp_path / "cache", source=archive, checksum=tiny.sha256(archive))
    assert not trace.exists() and not (tmp_path / "cache").exists()
    pickle.loads(command)
    assert trace.exists(), "the pickle was harmless, so the test above proves nothing"


DTYPE = b"cnumpy\ndtype\n(X\x02\x00\x00\x00u1I0\nI1\ntR"
STATE = b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
ARRAY = b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
REFUSED = {
    "other global": b"cbuiltins\neval\n.",
    "array alone": b"cnumpy\nndarray\n.",
    "call of ndarray": b"cnumpy\nndarray\n)R.",
    "call of a text": b"X\x01\x00\x00\x00a)R.",
    "unfinished array": ARRAY + b".",
    "dtype alone": DTYPE + STATE + b".",
    "too few bytes": ARRAY + b"(K\x01(K\x05t" + DTYPE + STATE + b"\x89C\x02aatb.",
    "negative shape": ARRAY + b"(K\x01(J\xff\xff\xff\xffJ\xfe\xff\xff\xfft" + DTYPE + STATE + b"\x89C\x02aatb.",
    "byte order": ARRAY + b"(K\x01(K\x02t" + DTYPE + STATE.replace(b"|", b"X") + b"\x89C\x02aatb.",
    "build on a dictionary": b"}}b.",
    "instance": b"(ios\nsystem\n.",
    "object": b"(cos\nsystem\no.",
    "persistent": b"Pid\n.",
    "set": b"\x80\x04\x8f(K\x01\x90.",
    "new object": b"\x80\x02c_codecs\nencode\n)\x81.",
    "extension": b"\x82\x01.",
    "nested key": b"\x80\x02}(K\x01\x85K\x02u.",
    "contains itself": b"]q\x00h\x00a.",
    "key that takes forever to hash": b"}K\x01\x85q\x00"
    + b"".join(b"0h%ch%c\x86q%c" % (n, n, n + 1) for n in range(60))
    + b"K\x02s.",
    "a terabyte of nothing": b"\x8e\x00\x00\x00\x00\x00\x01\x00\x00.",
    "a terabyte to fill": b"\x96\x00\x00\x00\x00\x00\x01\x00\x00.",
    "state of a function": b"c_codecs\nencode\n}X\x01\x00\x00\x00aK\x01sb.",
    "array of other bytes": b"cnumpy._core.numeric\n_frombuffer\n(C\x02aa" + DTYPE + STATE + b"K\x05\x85\x8c\x01CtR.",
    "odd items": b"}(K\x01u.",
    "no stack": b"a.",
    "no mark": b"t.",
    "no memo": b"h\x07.",
    "nothing": b"",
    "truncated": pickle.dumps(list(range(1000)))[:-5],
    "floats": pickle.dumps(np.zeros(3), 2),
    "objects": pickle.dumps(np.array([{}], dtype=object), 2),
    "records": pickle.dumps(np.zeros(2, dtype=[("a", "u1")]), 2),
    "other codec": pickle.dumps(b"\xff", 2).replace(b"\x06\x00\x00\x00latin1", b"\x05\x00\x00\x00utf-7"),
    "out of band": pickle.dumps(np.zeros(3, np.uint8), 5, buffer_callback=[].append),
    "deep": b"(" * 100_000 + b"t" * 100_000 + b".",
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    with pytest.raises(ValueError, match="this pickle is refused"):
        loads(REFUSED[case])


def test_shared_values_do_not_explode():
    level = b"]q\x00(" + b"K\x01" * 10 + b"e"
    for memo in range(1, 60):
        level += b"]q" + bytes([memo]) + b"(" + (b"h" + bytes([memo - 1])) * 10 + b"e"
    assert sum(1 for _ in pickletools.genops(level + b".")) > 600
    value = loads(level + b".")
    assert len(value) == 10 and value[0] is value[9]


def test_a_memo_far_away_takes_no_memory():
    assert loads(b"K\x01r\xff\xff\xff\xff.") == 1
