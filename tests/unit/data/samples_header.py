"""Writes files of other libraries' making into a header, as texts of hex digits."""
import pathlib


def write(script, made_by, kind, samples):
    """`samples`: bytes by name, which KIND_sample(name) gives in the header beside the script."""
    path = pathlib.Path(script).resolve().with_suffix(".h")
    text = (f"// Files that {made_by} wrote, in hex; made by {path.stem}.py.\n"
            "#pragma once\n\n#include <map>\n#include <string>\n\n"
            '#include "tests/unit/data/sample_bytes.h"\n\n'
            "namespace lockstep::data {\n\n// clang-format off\n"
            f"inline const std::map<std::string, std::string> k{kind.capitalize()}Samples = {{\n")
    for name, data in samples.items():
        hexed = data.hex()
        lines = [hexed[i:i + 92] for i in range(0, len(hexed), 92)] or [""]
        text += f'  {{"{name}",\n' + "\n".join(f'   "{line}"' for line in lines) + "},\n"
    text += ("};\n// clang-format on\n\n"
             f"inline std::string {kind}_sample(const std::string& name) {{\n"
             f"  return sample_bytes(k{kind.capitalize()}Samples, name);\n}}\n\n"
             "}  // namespace lockstep::data\n")
    path.write_text(text)
