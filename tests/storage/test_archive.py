import dataclasses
import io
import json
import os
import sys

import archives
import numpy as np
import pytest
from instances import BARE, CAUCHIT, FTRLS, sphere

import noisewise as nw
from noisewise.bandits import POLICIES
from noisewise.regression import REGRESSORS


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
    assert header["format"] == "noisewise-3"
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
    with pytest.raises(ValueError, match=r"noisewise-99.*noisewise-3"):
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


@dataclasses.dataclass
class Holding:
    """A policy of a user's own, with an array."""

    held: np.ndarray

    def start(self, dim):
        return Holding(np.zeros(dim))


@pytest.mark.parametrize(
    ("spec", "state", "why"),
    [
        (nw.FTRL(), lambda s: s.array.__setitem__(60, np.nan), "not finite"),
        (nw.LinUCB(), lambda s: s.inverse.__setitem__((0, 0), 1e200), "above 1e"),
        (nw.SelfTunedUCB(), lambda s: s.numbers.__setitem__(0, 1.0), "another"),
        (Holding(np.zeros(2)), lambda s: setattr(s, "held", np.zeros(2, np.float32)), "float32"),
        (Holding(np.zeros(2)), lambda s: setattr(s, "held", np.array([{}, {}])), "object"),
    ],
    ids=["FTRL", "LinUCB", "SelfTunedUCB", "short floats", "objects"],
)
def test_what_could_not_be_loaded_does_not_replace_a_good_file(spec, state, why, tmp_path):
    path, broken = tmp_path / "a.npz", spec.start(2)
    nw.save(path, spec, broken)
    before = path.read_bytes()
    state(broken)
    with pytest.raises(ValueError, match=why):
        nw.save(path, spec, broken)
    assert path.read_bytes() == before
    nw.load(path, types=(Holding,))


def test_a_save_leaves_the_state_as_it_was(saved):
    """What is looked at before the file is written is a copy."""
    path, ftrl, state = saved
    before = {name: np.array(each) for name, each in arrays_of(state).items()}
    nw.save(path, ftrl, state)
    for name, each in arrays_of(state).items():
        np.testing.assert_array_equal(each, before[name])


def arrays_of(state):
    return {name: each for name, each in vars(state).items() if isinstance(each, np.ndarray)}


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


@pytest.mark.parametrize("name", archives.NUMBERS)
def test_archives_continue_to_the_same_numbers(name):
    found = archives.continue_from(name)
    np.testing.assert_allclose(found, archives.NUMBERS[name], rtol=1e-9, atol=1e-9)


def test_every_class_of_state_has_an_archive():
    paths = archives.FOLDER.glob("*.npz")
    held = {kind for path in paths for kind in archives.classes_in(path)}
    assert {path.stem for path in archives.FOLDER.glob("*.npz")} == archives.NUMBERS.keys()
    assert not {*POLICIES, *REGRESSORS, *archives.state_classes()} - held


def rewritten(path, edit):
    """Change the header of a file by a function."""
    with np.load(path) as file:
        members = {name: file[name] for name in file.files}
    header = json.loads(str(members["header"]))
    edit(header, members)
    np.savez(path, **{**members, "header": np.array(json.dumps(header))})


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda h, m: h.update(format="noisewise-4", version="9.1"), r"noisewise 9\.1.*update"),
        (lambda h, m: h.update(format="noisewise-2"), r"learn its rows again, or load it with"),
        (lambda h, m: h["state"]["fields"].update(new=1, **{}), "damaged.*new"),
        (
            lambda h, m: (h.update(version="9.1"), h["state"]["fields"].update(new=1)),
            r"9\.1.*update",
        ),
        (lambda h, m: h["state"]["fields"].pop("folded"), "damaged.*folded"),
        (lambda h, m: h.pop("state"), "damaged"),
        (lambda h, m: h["state"].update(type="ForwardState"), "damaged"),
        (lambda h, m: h.update(spec=h["state"]), "damaged"),
        (lambda h, m: h["spec"]["fields"].update(ridge=-1.0), "damaged.*ridge"),
        (lambda h, m: m.update({"state.gram": np.zeros((3, 3))}), "damaged.*gram"),
        (lambda h, m: m.update({"state.gram": np.zeros((2, 2), dtype="f4")}), "damaged.*gram"),
        (lambda h, m: m["state.array"].__setitem__(0, 1e9), "damaged"),
    ],
)
def test_a_crafted_header_gives_one_sentence(saved, edit, sentence):
    path, _, _ = saved
    rewritten(path, edit)
    with pytest.raises(ValueError, match=sentence) as error:
        nw.load(path)
    assert "\n" not in str(error.value)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        nw.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no file"):
        nw.load(tmp_path / "pipe")


@dataclasses.dataclass(frozen=True)
class Mine(nw.OFUL):
    """A policy of a user's own, with a field that is set after it is made."""

    extra: float = 2.0


@dataclasses.dataclass
class Foreign:
    """What no file may make unasked."""

    made: int = 0

    def __post_init__(self):
        type(self).count = getattr(type(self), "count", 0) + 1


def test_classes_of_your_own_are_passed(tmp_path):
    path, policy = tmp_path / "a.npz", Mine(extra=3.0)
    nw.save(path, policy, policy.start(2))
    with pytest.raises(ValueError, match=r"test_archive:Mine.*types=\(Mine,\)"):
        nw.load(path)
    assert nw.load(path, types=(Mine,))[0] == policy
    for types in ((3,), (int,), (Mine, Mine)):
        with pytest.raises(ValueError, match="types"):
            nw.load(path, types=types)
    agent = nw.Agent(policy, 2)
    agent.save(path)
    with pytest.raises(ValueError, match="types"):
        nw.Agent.load(path)
    assert nw.Agent.load(path, types=(Mine,)).policy == policy


def test_no_imported_class_is_made_unasked(saved):
    path, _, _ = saved
    before = getattr(Foreign, "count", 0)
    rewritten(
        path, lambda h, m: h.update(spec={"type": f"{__name__}:Foreign", "fields": {"made": 1}})
    )
    with pytest.raises(ValueError, match="Foreign"):
        nw.load(path)
    assert getattr(Foreign, "count", 0) == before
