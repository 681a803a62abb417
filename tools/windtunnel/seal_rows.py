#!/usr/bin/env python3
"""Gives made-up rows of a sweep the checksum that the sweep's own workers would: docs/sweep.md, "Resuming".
tools/windtunnel/seal_rows.py DIR <ROWS >SEALED, where DIR/manifest.json is the sweep's."""

import json
import sys
from pathlib import Path

OFFSET_BASIS = 0x6C62272E07BB014262B821756295C58D
PRIME = (1 << 88) + 0x13B


def fnv1a_128_hex(text: str) -> str:
    value = OFFSET_BASIS
    for byte in text.encode():
        value = (value ^ byte) * PRIME % (1 << 128)
    return f"{value:032x}"


def main() -> None:
    sweep_hash = json.loads(Path(sys.argv[1], "manifest.json").read_text())["sweep_hash"]
    for line in sys.stdin:
        row = line.rstrip("\n")
        print(f'{row[:-1]}, "checksum": "{fnv1a_128_hex(sweep_hash + row)}"}}')


if __name__ == "__main__":
    main()
