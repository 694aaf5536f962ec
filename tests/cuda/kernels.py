#!/usr/bin/env python3
"""Lists which kernels a program holds for which architecture, from its own fat binary.

  kernels.py PROGRAM ARCH...    e.g. kernels.py build/gpu/tests/test_cuda_launch 80 90 100

Fails if a kernel that the host code can launch is missing for one of the architectures, or if there
are no kernels at all. Needs no tool of the toolkit: cubins are ELF files (machine 190) that lie
uncompressed in the section .nv_fatbin (LockstepCuda.cmake: LOCKSTEP_CUDA_COMPRESS).
"""
import struct
import sys

CUDA_MACHINE = 190
SYMTAB, FUNCTION = 2, 2
KERNEL = 0x10  # in st_other: an entry point, not a function that kernels call
STUB = '__device_stub_'  # before the mangled name, which begins with an underscore


class Elf:
    """Sections and symbols of a 64-bit little-endian ELF file that begins at `start` of `data`."""

    def __init__(self, data, start=0):
        self.data, self.start = data, start
        self.machine = struct.unpack_from('<H', data, start + 18)[0]
        self.flags = struct.unpack_from('<I', data, start + 48)[0]
        offset = struct.unpack_from('<Q', data, start + 40)[0]
        size, count, names = struct.unpack_from('<HHH', data, start + 58)
        self.sections = [struct.unpack_from('<IIQQQQIIQQ', data, start + offset + i * size)
                         for i in range(count)]
        self.names = self.sections[names]

    def text(self, strings, at):
        begin = self.start + strings[4] + at
        return self.data[begin:self.data.index(b'\0', begin)].decode()

    def section(self, name):
        """Begin and end of the section in `data`."""
        for each in self.sections:
            if self.text(self.names, each[0]) == name:
                return self.start + each[4], self.start + each[4] + each[5]
        return None

    def functions(self):
        for table in self.sections:
            if table[1] != SYMTAB:
                continue
            for at in range(table[4], table[4] + table[5], 24):
                name, info, other, section, _, _ = struct.unpack_from('<IBBHQQ', self.data,
                                                                  self.start + at)
                if info & 15 == FUNCTION and section != 0:
                    yield self.text(self.sections[table[6]], name), other


def cubins(data, begin, end):
    """(architecture, names of kernels) of every cubin between begin and end."""
    at = data.find(b'\x7fELF\x02\x01', begin, end)
    while at >= 0:
        elf = Elf(data, at)
        if elf.machine == CUDA_MACHINE:
            yield elf.flags >> 8 & 0xff, {n for n, other in elf.functions() if other & KERNEL}
        at = data.find(b'\x7fELF\x02\x01', at + 6, end)


def main():
    path, wanted = sys.argv[1], [int(a) for a in sys.argv[2:]]
    with open(path, 'rb') as file:
        data = file.read()
    host = Elf(data)
    place = host.section('.nv_fatbin')
    if place is None:
        sys.exit(f'{path} holds no fat binary')
    found = {arch: set() for arch in wanted}
    for arch, kernels in cubins(data, *place):
        found.setdefault(arch, set()).update(kernels)
    known = set().union(*found.values())
    stubs = {name.split(STUB, 1)[1] for name, _ in host.functions()
             if STUB in name and not name.endswith('.cold')}
    if not stubs:
        sys.exit(f'{path} can launch no kernel')
    bad = [f'the host launches {stub}, which no architecture has' for stub in stubs
           if not any(stub.startswith(kernel) for kernel in known)]
    for arch in wanted:
        bad += [f'sm_{arch} lacks {kernel}' for kernel in sorted(known - found[arch])]
        print(f'sm_{arch}: {len(found[arch])} kernels')
    if len(known) < len(stubs):
        bad.append(f'{len(stubs)} kernels can be launched, {len(known)} are there')
    for kernel in sorted(known):
        print(' ', kernel)
    if bad:
        sys.exit('\n'.join(bad))


if __name__ == '__main__':
    main()
