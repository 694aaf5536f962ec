"""Writes hue_samples.h: colours, and what Python's own colorsys makes of them with another hue.

  python3 tests/unit/data/samples/hue_samples.py
"""
import colorsys
import pathlib
import random

SIXTH = 65_536  # of the circle
# Odd ones, for which no channel is exactly between two bytes, and of a sixth or nothing whole ones.
TURNS = (0, 1, -1, SIXTH, -SIXTH, 2 * SIXTH, 3 * SIXTH, -3 * SIXTH, 12_345, -54_321, 100_001,
         -190_003)
COLOURS = 8  # a turn


def colours(draw):
    yield (255, 0, 0)
    yield (200, 200, 10)
    yield tuple(3 * [draw.randrange(256)])
    for _ in range(COLOURS - 3):
        yield tuple(draw.randrange(256) for _ in range(3))


def turned(colour, turn):
    hue, saturation, value = colorsys.rgb_to_hsv(*(byte / 255 for byte in colour))
    red, green, blue = colorsys.hsv_to_rgb((hue + turn / (6 * SIXTH)) % 1, saturation, value)
    return tuple(round(255 * channel) for channel in (red, green, blue))


def main():
    draw = random.Random(3)
    text = ("// Colours, a turn of the hue, and what Python's colorsys makes of it; made by "
            "hue_samples.py.\n#pragma once\n\n#include <array>\n#include <cstdint>\n\n"
            "namespace lockstep::data {\n\nstruct HueSample {\n"
            "  std::array<uint8_t, 3> colour;\n  int64_t turn;\n"
            "  std::array<uint8_t, 3> turned;\n};\n\n// clang-format off\n"
            "inline constexpr HueSample kHueSamples[] = {\n")
    for turn in TURNS:
        for colour in colours(draw):
            before, after = (", ".join(map(str, c)) for c in (colour, turned(colour, turn)))
            text += f"  {{{{{before}}}, {turn}, {{{after}}}}},\n"
    text += "};\n// clang-format on\n\n}  // namespace lockstep::data\n"
    pathlib.Path(__file__).with_suffix(".h").write_text(text)


if __name__ == "__main__":
    main()
