"""Writes unicode_ranges.cc: which code points are letters and which are numbers.

Uses the version of Unicode that Hugging Face's tokenizers 0.23 have. Python's own unicodedata has
it from 3.14 on.

  pip install unicodedata2==16.0.0 && python3 data/bpe/unicode_ranges.py
"""
import pathlib
import sys

import unicodedata2 as unicodedata


def ranges(major):
    found = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] != major:
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(name, pairs):
    cells = [f"{{0x{a:x}, 0x{b:x}}}" for a, b in pairs]
    lines = [", ".join(cells[i:i + 5]) for i in range(0, len(cells), 5)]
    return f"const CodeRange {name}[] = {{\n    " + ",\n    ".join(lines) + ",\n};\n"


def main():
    letters, numbers = ranges("L"), ranges("N")
    text = (f"// Of Unicode {unicodedata.unidata_version}; made by unicode_ranges.py.\n"
            '#include "data/bpe/unicode_ranges.h"\n\n'
            "namespace lockstep::data {\n\n// clang-format off\n"
            + table("kLetterRanges", letters)
            + f"const size_t kLetterRangesCount = {len(letters)};\n\n"
            + table("kNumberRanges", numbers)
            + f"const size_t kNumberRangesCount = {len(numbers)};\n"
            "// clang-format on\n\n}  // namespace lockstep::data\n")
    pathlib.Path(__file__).with_suffix(".cc").write_text(text)


if __name__ == "__main__":
    main()
