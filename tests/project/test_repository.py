"""Files that run outside of Python: workflows, forms, hooks and the conda recipe.

Each is read by a linter that the extra ``checks`` installs; without it, the test is skipped.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
if not GITHUB.is_dir():
    pytest.skip("needs the repository", allow_module_level=True)

WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
# File, and name of its schema.
SCHEMAS = [
    *((path, "github-workflows") for path in WORKFLOWS),
    (GITHUB / "ISSUE_TEMPLATE" / "bug.yml", "github-issue-forms"),
    (GITHUB / "ISSUE_TEMPLATE" / "feature.yml", "github-issue-forms"),
    (GITHUB / "ISSUE_TEMPLATE" / "config.yml", "github-issue-config"),
    (GITHUB / "dependabot.yml", "dependabot"),
    (ROOT / "CITATION.cff", "citation-file-format"),
]
HOOKS = ROOT / ".pre-commit-config.yaml"
RECIPE = ROOT / "conda.recipe" / "recipe.yaml"
# Keys such as "on" are no booleans here.
YAML_RULES = (
    "{extends: default, rules: {line-length: disable, document-start: disable, braces: "
    "{max-spaces-inside: 1}, truthy: {check-keys: false}, "
    "comments: {min-spaces-from-content: 1}}}"
)


def lint(module, *arguments):
    """What a linter, which is a module, says; nothing if all is well."""
    if find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"needs {module}")
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda value: getattr(value, "name", ""))
def test_files_have_their_schema(path, schema):
    assert not lint("check_jsonschema", "--builtin-schema", f"vendor.{schema}", path)


def test_a_key_that_no_workflow_has_is_found(tmp_path):
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:"))
    arguments = ("--builtin-schema", "vendor.github-workflows", wrong)
    assert "run-on" in lint("check_jsonschema", *arguments)


def test_yaml_is_tidy():
    paths = [*GITHUB.rglob("*.yml"), HOOKS, RECIPE]
    assert not lint("yamllint", "--strict", "-d", YAML_RULES, *paths)


def test_hooks_are_valid_and_pinned():
    assert not lint("pre_commit", "validate-config", HOOKS)
    revisions = re.findall(r"^ +rev: (\S+)$", HOOKS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(revisions) > 2
    assert all(re.fullmatch(r"v?\d+(\.\d+)+", revision) for revision in revisions)


def test_actions_are_pinned_to_commits():
    uses = [line for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line]
    assert len(uses) > 5
    assert all(re.search(r"@[0-9a-f]{40} # v\d+(\.\d+)*$", line) for line in uses)


@pytest.mark.parametrize("tool", ["actionlint", "zizmor"])
def test_workflows_are_sound(tool):
    program = shutil.which(tool) or shutil.which(tool, path=Path(sys.executable).parent)
    if program is None:
        pytest.skip(f"needs {tool}")
    options = {"actionlint": [], "zizmor": ["--offline", "--quiet"]}[tool]
    command = [program, *options, *map(str, WORKFLOWS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_conda_recipe_is_that_of_the_project():
    rattler = pytest.importorskip("rattler_build")
    (variant,) = rattler.Stage0Recipe.from_file(RECIPE).render()
    recipe = variant.recipe.to_dict()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert recipe["package"] == {"name": project["name"], "version": project["version"]}
    needed = [f"python{project['requires-python']}", *project["dependencies"]]
    assert [item.replace(" ", "") for item in recipe["requirements"]["run"]] == needed
    assert recipe["about"]["summary"] == project["description"]
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script == f"skstruct = {project['scripts']['skstruct']}"
