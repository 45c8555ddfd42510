"""Released programs that import CRFsuite's packages say the same with skstruct in their place."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CLIENTS = {
    "usaddress": """
import usaddress
for text in ("123 Main St. Suite 100 Chicago, IL", "PO Box 12, Springfield 62701"):
    print(usaddress.tag(text), usaddress.parse(text))
""",
    "probablepeople": """
import probablepeople
for text in ("Mr George 'Gob' Bluth II", "Sitwell Housing Inc"):
    print(probablepeople.tag(text), probablepeople.parse(text))
""",
    # Its tagger of parts of speech needs data that do not come with it.
    "ingredient_parser.en.parser": """
import nltk
nltk.pos_tag = lambda tokens, **_: [(t, "CD" if t.isdigit() else "NN") for t in tokens]
import ingredient_parser._common, ingredient_parser.en.preprocess as preprocess
preprocess.pos_tag = nltk.pos_tag
from ingredient_parser.en.parser import parse_ingredient_en
found = parse_ingredient_en("2 cups of chopped onions")
print(found.name.text, [(a.text, round(a.confidence, 5)) for a in found.amount])
""",
    "eli5": """
import eli5, re
from sklearn_crfsuite import CRF
X, y = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]], [["A", "B"], ["B"]]
crf = CRF(c1=0.01, c2=0.1, epsilon=1e-9, delta=1e-9, max_iterations=1000).fit(X, y)
text = eli5.format_as_text(eli5.explain_weights(crf, top=4))
print(re.sub(r"(\\d\\.\\d\\d)\\d", r"\\1", text))
""",
}
INSTALL = "import skstruct.crfsuite\nskstruct.crfsuite.install()\n"


def output_of(program):
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    found = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize("client", CLIENTS)
def test_answers_do_not_change(client):
    try:
        installed = find_spec(client.partition(".")[0]) and find_spec(client)
    except ImportError as error:
        pytest.skip(f"{client} cannot be imported: {error}")
    if not installed or not find_spec("sklearn_crfsuite") or not find_spec("pycrfsuite"):
        pytest.skip(f"needs {client}, sklearn_crfsuite and pycrfsuite")
    served = output_of(INSTALL + CLIENTS[client])
    assert served == output_of(CLIENTS[client])
    assert served.strip()
