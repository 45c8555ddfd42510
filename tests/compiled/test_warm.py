"""Compiling ahead of time, and what the commands say."""

import os
import subprocess
import sys

import numba
import pytest

import skstruct
from skstruct.__main__ import main
from skstruct.ahead import workload
from skstruct.compiled import cache

needs_numba = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


@pytest.mark.slow
@needs_numba
def test_a_second_process_finds_what_was_compiled_ahead(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    code = "import skstruct; print(skstruct.warm('SequenceVectorizer', n_jobs=1))"
    command = [sys.executable, "-c", code]
    first, second = (
        subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(2)
    )
    assert "compiler" in first
    assert "compiler" not in second
    assert "cache" in second


COMPILE = """
from skstruct.ahead.warm import number_symbols_from
from skstruct.ahead.workload import run_step, steps

number_symbols_from(10**9)
for step in steps():
    if step.estimator == "PerceptronReranker":
        run_step(step)
"""


@pytest.mark.slow
@needs_numba
@pytest.mark.skipif(
    numba.version_info.short < (0, 67),
    reason="no wheel has kernels of numba 0.61, whose private names differ from build to build",
)
def test_the_same_sources_compile_to_the_same_bytes(tmp_path):
    found = []
    for name in ("one", "two"):
        environment = {**os.environ, "PYTHONHASHSEED": "0", "SKSTRUCT_KERNELS": "local"}
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / name)
        subprocess.run([sys.executable, "-c", COMPILE], env=environment, check=True)
        paths = (tmp_path / name).glob("*/*.kernel")
        found.append({path.name: path.read_bytes() for path in paths})
    assert len(found[0]) > 5
    assert found[0] == found[1]


def test_an_unknown_estimator():
    with pytest.raises(ValueError, match="called 'NoTagger'; there are AROWTagger, "):
        skstruct.warm(["CRFTagger", "NoTagger"])
    with pytest.raises(ValueError, match=r"called 'CRFTaggerCV'.*: name those that they fit"):
        skstruct.warm("CRFTaggerCV")


def test_every_estimator_has_typical_steps():
    typical = {step.estimator for step in workload.steps() if step.typical}
    public = {
        name
        for name in skstruct.__all__
        if hasattr(getattr(skstruct, name), "fit") and name not in WITHOUT_KERNELS
    }
    assert typical == public


# These have none of their own.
WITHOUT_KERNELS = {
    *("CRFTaggerCV", "EmbeddingVectorizer", "NBestReranker", "SequenceUnion", "SpanTaggerCV"),
    *(
        "AnnotatorCRF",
        "ConformalTagger",
        "LabelStatistics",
        "TokenTransformer",
        "VectorScaler",
        "WordClusters",
    ),
}


def test_titles_tell_steps_apart():
    titles = [(step.estimator, step.title) for step in workload.steps()]
    assert len(set(titles)) == len(titles)


RUN_STEPS = """
from skstruct.ahead.workload import run_step, steps

for step in steps():
    if step.typical and not step.title.startswith("fit(max_iter=1, "):
        print(run_step(step) is not None, step.estimator, repr(step.title))
"""


@pytest.mark.slow
def test_typical_steps_run_as_plain_python(monkeypatch):
    """One is too long for that; builds of wheels run all, compiled."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    run = subprocess.run([sys.executable, "-c", RUN_STEPS], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = run.stdout.splitlines()
    typical = [f"True {step.estimator} {step.title!r}" for step in workload.steps() if step.typical]
    assert len(found) == len(typical) - 1
    assert set(found) < set(typical)


IDLE = """
from skstruct.ahead.workload import run_step, steps
from skstruct.compiled.cache import loaded_kernels

for step in steps():
    before = len(loaded_kernels)
    run_step(step)
    if not step.typical and len(loaded_kernels) == before:
        print(step.estimator, step.title)
"""


@pytest.mark.slow
@needs_numba
def test_each_step_calls_a_kernel_that_none_before_it_calls():
    """But for those with the usual parameters, which users choose by the name of the estimator."""
    run = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, text=True, check=True)
    assert not run.stdout


def test_command_warm(monkeypatch, capsys):
    calls = []

    def warm(names, **options):
        calls.append((names, options))
        return {"compiler": 3, "cache": 2, "x86-64-v3": 5}

    monkeypatch.setattr("skstruct.warm", warm)
    assert main(["warm", "CRFTagger", "--jobs", "2"]) == 0
    assert main(["warm", "--native"]) == 0
    assert calls == [
        (("CRFTagger",), {"n_jobs": 2, "native": False}),
        (None, {"n_jobs": -1, "native": True}),
    ]
    assert capsys.readouterr().out.startswith("3 kernels compiled, 7 found, ")


def test_command_warm_with_an_unknown_estimator(capsys):
    assert main(["warm", "NoTagger"]) == 2
    assert "called 'NoTagger'" in capsys.readouterr().err


@needs_numba
def test_versions(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    loaded = [
        cache.LoadedKernel(name, (), origin, None)
        for name, origin in (("a", "cache"), ("b", "any"))
    ]
    monkeypatch.setattr("skstruct.compiled.rules.loaded_kernels", loaded)
    main(["versions"])
    output = capsys.readouterr().out
    assert f"numba {numba.__version__}" in output
    assert str(tmp_path) in output
    assert "this process: 1 from the package, 1 cached, 0 compiled" in output


def test_versions_without_compilation(capsys, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    skstruct.show_versions()
    assert "NUMBA_DISABLE_JIT" in capsys.readouterr().out


def test_a_new_online_tagger_is_found(monkeypatch):
    """By its public name alone."""

    class NewTagger(skstruct.PerceptronTagger):
        pass

    monkeypatch.setattr(skstruct, "NewTagger", NewTagger, raising=False)
    monkeypatch.setattr(skstruct, "__all__", [*skstruct.__all__, "NewTagger"])
    titles = [step.title for step in workload.steps() if step.estimator == "NewTagger"]
    for part in ("fit()", "second_order", "many_labels", "predict_nbest", "transition_features"):
        assert any(part in title for title in titles)
