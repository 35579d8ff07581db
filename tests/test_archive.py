import io
import json
import sys

import numpy as np
import pytest
from instances import BARE, CAUCHIT, FTRLS, sphere

import noisewise as nw


def dumped(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


@pytest.fixture
def saved(tmp_path):
    ftrl = nw.FTRL(nw.GLM("logistic"), tolerance=0)
    state = ftrl.start(2)
    ftrl.update(state, [0.6, 0.8], 1.0)
    path = tmp_path / "state.npz"
    nw.save(path, ftrl, state)
    return path, ftrl, state


@pytest.mark.parametrize("ftrl", FTRLS, ids=lambda r: f"{r.glm.link.name}-{r.tolerance}")
def test_a_loaded_state_continues_to_the_same_numbers(ftrl, tmp_path):
    rng = np.random.default_rng(1)
    x, y = sphere(rng, 150, 3, ftrl.glm.feature_bound), rng.normal(size=150)
    state = ftrl.start(3)
    ftrl.update(state, x[:100], y[:100])
    nw.save(tmp_path / "a.npz", ftrl, state)
    spec, loaded = nw.load(tmp_path / "a.npz", link=ftrl.glm.link)
    assert spec == ftrl
    means = [each.update(s, x[100:], y[100:]) for each, s in ((ftrl, state), (spec, loaded))]
    np.testing.assert_array_equal(*means)
    np.testing.assert_array_equal(state.theta, loaded.theta)
    noise = nw.SubGaussian(sigma=0.5)
    if ftrl.glm.link.name != "exponential":
        sets = [ftrl.ellipsoid(s, noise) for s in (state, loaded)]
        assert sets[0].radius == sets[1].radius


def test_the_file_is_plain_arrays_with_a_json_header(saved):
    path, _, _ = saved
    with np.load(path, allow_pickle=False) as file:
        header = json.loads(str(file["header"]))
        assert all(file[name].dtype.kind in "fiU" for name in file.files)
    assert header["format"] == "noisewise-2"
    assert header["spec"]["type"] == "FTRL"


def test_a_users_link_is_passed_again(tmp_path):
    ftrl = nw.FTRL(nw.GLM(CAUCHIT), tolerance=0)
    nw.save(tmp_path / "a.npz", ftrl, ftrl.start(2))
    with pytest.raises(ValueError, match=r"cauchit.*link="):
        nw.load(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"'bare'.*'cauchit'"):
        nw.load(tmp_path / "a.npz", link=BARE)
    assert nw.load(tmp_path / "a.npz", link=CAUCHIT)[0] == ftrl


def test_truncated_files_give_one_sentence(saved):
    path, _, _ = saved
    whole = path.read_bytes()
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match=r"damaged|not written by") as error:
            nw.load(path)
        assert "\n" not in str(error.value)


def test_damaged_bytes_give_one_sentence(saved):
    path, _, _ = saved
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 3] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"damaged|not written by"):
        nw.load(path)


def test_foreign_files_give_one_sentence(saved, tmp_path):
    path = tmp_path / "other.npz"
    for write in (
        lambda: path.write_text("hello"),
        lambda: np.savez(path, a=np.ones(3)),
        lambda: np.savez(path, header=np.array("no json")),
        lambda: np.savez(path, header=np.array("[1]")),
        lambda: path.write_bytes(dumped(np.ones(3))),
        lambda: path.write_bytes(dumped(np.array([{}], dtype=object))),
    ):
        write()
        with pytest.raises(ValueError, match=r"not written by noisewise\.save"):
            nw.load(path)
    np.savez(path, header=np.array(json.dumps({"format": "noisewise-99"})))
    with pytest.raises(ValueError, match=r"noisewise-99.*noisewise-2"):
        nw.load(path)
    with pytest.raises(FileNotFoundError):
        nw.load(tmp_path / "absent.npz")


def test_a_file_without_one_of_its_arrays_gives_one_sentence(saved):
    path, _, _ = saved
    with np.load(path) as file:
        members = {name: file[name] for name in file.files}
    members.pop("state.array")
    np.savez(path, **members)
    with pytest.raises(ValueError, match=r"state\.array"):
        nw.load(path)


def test_a_failed_save_leaves_the_old_file(saved):
    path, ftrl, state = saved
    before = path.read_bytes()
    state.gram = object()
    with pytest.raises(ValueError, match="gram"):
        nw.save(path, ftrl, state)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    with pytest.raises(ValueError, match="folder"):
        nw.save(path.parent / "none" / "a.npz", ftrl, ftrl.start(1))


def test_a_file_never_decides_what_is_imported(saved):
    path, _, _ = saved
    with np.load(path) as file:
        members = {name: file[name] for name in file.files}
    for name, sentence in (
        ("antigravity:Flight", r"pass types=\(Flight,\)"),
        ("subprocess:Popen", r"pass types=\(Popen,\)"),
        ("Nonsense", "does not know"),
        ("Agent", "does not know"),
        ("__version__", "does not know"),
    ):
        header = json.loads(str(members["header"]))
        header["spec"]["type"] = name
        np.savez(path, **{**members, "header": np.array(json.dumps(header))})
        with pytest.raises(ValueError, match=sentence):
            nw.load(path)
    assert "antigravity" not in sys.modules
