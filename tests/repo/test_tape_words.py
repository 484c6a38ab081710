"""What stands in C and in Python is the same."""

import re
from pathlib import Path

from pylinop._programs.tape_words import What


def test_the_words_of_tapes():
    text = (Path(__file__).parents[2] / "src" / "c" / "exec" / "tape.h").read_text()
    listed = text[text.index("typedef enum lop_tape_what {") : text.index("} lop_tape_what;")]
    words = re.findall(r"^ {4}LOP_TAPE_(\w+)", listed, re.M)
    assert words.pop() == "FUNCTIONS"
    assert words == [w.name for w in What]
    assert [*What] == [*range(len(What))]
