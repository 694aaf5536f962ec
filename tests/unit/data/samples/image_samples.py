"""Writes image_samples.h: small images as Pillow encodes them, and what Pillow makes of them; and
the images as files for the fuzzer (tests/fuzz/corpus/image).

  pip install pillow && python3 tests/unit/data/samples/image_samples.py
"""
import io
import pathlib
import random
import struct
import zlib

from PIL import Image

WIDTH, HEIGHT = 41, 31


def picture():
    draw = random.Random(1)
    image = Image.new("RGB", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            noise = draw.randrange(24)
            image.putpixel((x, y), ((4 * x + noise) % 256, 5 * y, 255 - 4 * x))
    return image


def encoded(image, **options):
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def palette(image):
    return image.quantize(16)


def with_opacity(image):
    image = image.convert("RGBA")
    image.putalpha(image.convert("L"))
    return image


def grey16(image):
    return Image.frombytes("I;16", image.size,
                           b"".join(bytes([p, p]) for p in image.convert("L").tobytes()))


def segment(data, marker):
    at = data.index(bytes([0xFF, marker]))
    return at, at + 2 + struct.unpack(">H", data[at + 2:at + 4])[0]


def without_adobe(data):
    begin, end = segment(data, 0xEE)
    return data[:begin] + data[end:]


def with_zero_scan(data):
    """The scan says that it holds no coefficients, as some phones write."""
    _, end = segment(data, 0xDA)
    assert data[end - 3:end] == b"\0\x3f\0"
    return data[:end - 3] + b"\0\0\0" + data[end:]


def with_stray_bytes(data):
    """Between two segments, as cameras that write over the size of a thumbnail leave them."""
    _, end = segment(data, 0xE0)
    return data[:end] + b"\0\x12\0" + data[end:]


def top_down(data):
    at, = struct.unpack("<I", data[10:14])
    row = (3 * WIDTH + 3) // 4 * 4
    rows = [data[at + row * y:at + row * (y + 1)] for y in range(HEIGHT)]
    return data[:22] + struct.pack("<i", -HEIGHT) + data[26:at] + b"".join(reversed(rows))


def bits16(image, compression):
    """5 bits a colour; with masks, 6 of green."""
    masks = struct.pack("<3I", 0xF800, 0x07E0, 0x001F) if compression else b""
    green, red = (6, 11) if compression else (5, 10)
    row = (2 * WIDTH + 3) // 4 * 4
    body = b""
    for y in reversed(range(HEIGHT)):
        line = b"".join(struct.pack("<H", r >> 3 << red | g >> (8 - green) << 5 | b >> 3)
                        for r, g, b in (image.getpixel((x, y)) for x in range(WIDTH)))
        body += line + bytes(row - len(line))
    at = 54 + len(masks)
    return (b"BM" + struct.pack("<IHHI", at + len(body), 0, 0, at)
            + struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, 16, compression, len(body), 0, 0, 0, 0)
            + masks + body)


def samples():
    image = picture()
    grey = image.convert("L")
    jpeg = {"format": "JPEG", "quality": 85}
    png = {"format": "PNG"}
    yield "jpeg_420", encoded(image, subsampling="4:2:0", **jpeg)
    yield "jpeg_422", encoded(image, subsampling="4:2:2", **jpeg)
    yield "jpeg_444", encoded(image, subsampling="4:4:4", **jpeg)
    yield "jpeg_progressive", encoded(image, progressive=True, **jpeg)
    yield "jpeg_grey", encoded(grey, **jpeg)
    yield "jpeg_cmyk", encoded(image.convert("CMYK"), **jpeg)
    yield "png_colours", encoded(image, **png)
    yield "png_grey", encoded(grey, **png)
    yield "png_palette", encoded(palette(image), **png)
    yield "png_opacity", encoded(with_opacity(image), **png)
    yield "png_grey_opacity", encoded(with_opacity(image).convert("LA"), **png)
    yield "png_grey16", encoded(grey16(image), **png)
    yield "jpeg_cmyk_plain", without_adobe(encoded(image.convert("CMYK"), **jpeg))
    yield "jpeg_zero_scan", with_zero_scan(encoded(image, subsampling="4:2:0", **jpeg))
    yield "jpeg_stray_bytes", with_stray_bytes(encoded(image, subsampling="4:2:0", **jpeg))
    yield "webp_lossy", encoded(image, format="WEBP", quality=80)
    yield "webp_lossless", encoded(image, format="WEBP", lossless=True)
    yield "webp_opacity", encoded(with_opacity(image), format="WEBP", lossless=True)
    yield "bmp_colours", encoded(image, format="BMP")
    yield "bmp_grey", encoded(grey, format="BMP")
    yield "bmp_palette", encoded(palette(image), format="BMP")
    yield "bmp_two_colours", encoded(grey.point(lambda p: 255 * (p > 99), mode="1"), format="BMP")
    yield "bmp_opacity", encoded(with_opacity(image), format="BMP")
    yield "bmp_top_down", top_down(encoded(image, format="BMP"))
    yield "bmp_16", bits16(image, 0)
    yield "bmp_16_masks", bits16(image, 3)


def as_colours(data):
    image = Image.open(io.BytesIO(data))
    if image.mode.startswith("I"):  # Pillow cuts off what is above 255
        high = image.tobytes()[1::2]
        image = Image.frombytes("L", image.size, high)
    return image.convert("RGB")


def crc(image):
    return zlib.crc32(image.tobytes())


def scaled(image):
    """(box, size, first, count, CRC): the box scaled to the size, and of that a window."""
    for box, size in (((0, 0, WIDTH, HEIGHT), (20, 16)), ((0, 0, WIDTH, HEIGHT), (100, 80)),
                      ((7, 5, 37, 28), (24, 24)), ((0, 9, 41, 14), (8, 40)),
                      ((3, 3, 4, 4), (5, 5)), ((0, 0, WIDTH, HEIGHT), (WIDTH, HEIGHT))):
        made = image.crop(box).resize(size, Image.Resampling.BILINEAR)
        yield box, size, (0, 0, *size), crc(made)
        window = (size[0] // 4, size[1] // 3, size[0] // 4 + 3, size[1] // 3 + 4)
        yield box, size, window, crc(made.crop(window))


def framed(image, resize, size):
    """As torchvision's Resize and CenterCrop."""
    long_side = int(resize * WIDTH / HEIGHT)
    made = image.resize((long_side, resize), Image.Resampling.BILINEAR)
    x, y = round((long_side - size) / 2), round((resize - size) / 2)
    return crc(made.crop((x, y, x + size, y + size)))


def main():
    out = ["// Written by image_samples.py: do not edit.", "#pragma once", "", "#include <cstdint>",
           "", "namespace lockstep::data::image_samples {", "", "// clang-format off",
           f"inline constexpr uint32_t kWidth = {WIDTH};",
           f"inline constexpr uint32_t kHeight = {HEIGHT};", ""]
    names = []
    for name, data in samples():
        names.append((name, len(data), crc(as_colours(data))))
        hexed = data.hex()
        out.append(f"inline constexpr char {name}[] =")
        out += [f'    "{hexed[i:i + 368]}"' for i in range(0, len(hexed), 368)]
        out[-1] += ";"
        out.append("")
    out += ["struct Sample {", "  const char* name;", "  const char* hex;",
            "  uint32_t bytes;", "  uint32_t crc;  // of all pixels as colours", "};",
            "inline constexpr Sample kSamples[] = {"]
    out += [f'    {{"{n}", {n}, {size}, {value}U}},' for n, size, value in names]
    out += ["};", "", "// Of png_colours: a box, the size that it is scaled to, and a window of that.",
            "struct Scaled {", "  uint32_t box[4];  // left, top, right, bottom; so is the window",
            "  uint32_t size[2];", "  uint32_t window[4];", "  uint32_t crc;", "};",
            "inline constexpr Scaled kScaled[] = {"]
    image = picture()
    for box, size, window, value in scaled(image):
        numbers = [", ".join(map(str, part)) for part in (box, size, window)]
        out.append("    {{%s}, {%s}, {%s}, %dU}," % (*numbers, value))
    out += ["};", "", "// Of png_colours: resize, center_crop and the CRC of what they give.",
            "inline constexpr uint32_t kFramed[][3] = {"]
    for resize, size in ((24, 20), (HEIGHT, HEIGHT), (21, 16), (90, 33)):
        out.append(f"    {{{resize}, {size}, {framed(image, resize, size)}U}},")
    out += ["};", "// clang-format on", "", "}  // namespace lockstep::data::image_samples"]
    path = pathlib.Path(__file__).resolve().with_name("image_samples.h")
    path.write_text("\n".join(out) + "\n")
    corpus = path.parents[3] / "fuzz" / "corpus" / "image"
    corpus.mkdir(parents=True, exist_ok=True)
    for name, data in samples():
        (corpus / name).write_bytes(data)
    for name, mode, channels in (("raw_grey", "L", 1), ("raw_colours", "RGB", 3)):
        header = struct.pack("<4I", WIDTH, HEIGHT, channels, 1)  # data/image/raw_image.h
        pixels = picture().convert(mode).tobytes()
        (corpus / name).write_bytes(b"\x93PIXELS\n" + header + pixels)


main()
