"""Writes files of other libraries' making into a header, as texts of hex digits."""
import pathlib

WIDTHS = (92, 184, 368)  # hex digits of a line: the least with which a file is not too long
MOST_LINES = 350


def lines_of(data, width):
    hexed = data.hex()
    return [hexed[i:i + width] for i in range(0, len(hexed), width)] or [""]


def width_for(samples):
    fitting = (width for width in WIDTHS
               if sum(len(lines_of(data, width)) + 1 for data in samples.values()) <= MOST_LINES)
    return next(fitting, WIDTHS[-1])


def write(script, made_by, kind, samples):
    """`samples`: bytes by name, which KIND_sample(name) gives in the header next to the script."""
    width = width_for(samples)
    path = pathlib.Path(script).resolve().with_suffix(".h")
    text = (f"// Files that {made_by} wrote, in hex; made by {path.stem}.py.\n"
            "#pragma once\n\n#include <map>\n#include <string>\n\n"
            '#include "tests/unit/data/samples/sample_bytes.h"\n\n'
            "namespace lockstep::data {\n\n// clang-format off\n"
            f"inline const std::map<std::string, std::string> k{kind.capitalize()}Samples = {{\n")
    for name, data in samples.items():
        lines = lines_of(data, width)
        text += f'  {{"{name}",\n' + "\n".join(f'   "{line}"' for line in lines) + "},\n"
    text += ("};\n// clang-format on\n\n"
             f"inline std::string {kind}_sample(const std::string& name) {{\n"
             f"  return sample_bytes(k{kind.capitalize()}Samples, name);\n}}\n\n"
             "}  // namespace lockstep::data\n")
    path.write_text(text)
