"""The caches on disk: content addressed, safe under concurrent writers (write aside, rename), bounded in size.

`HL_CACHE_DIR` says where (default: the user's cache folder), `HL_CACHE=0` turns them off. What cannot be loaded is rebuilt.
"""

from __future__ import annotations

import hashlib
import os
import tempfile

import platformdirs

LIMIT = 512 << 20  # bytes kept; the least recently used go first


def cache_dir() -> str:
    """The folder, made if need be; '' when caching is off or the folder cannot be made."""
    if os.environ.get("HL_CACHE", "1") == "0":
        return ""
    folder = os.environ.get("HL_CACHE_DIR") or os.path.join(platformdirs.user_cache_dir("halide_py"), "v1")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return ""
    return folder


def digest(*parts: str | bytes) -> str:
    """The key of a content."""
    h = hashlib.sha256()
    for p in parts:
        data = p.encode() if isinstance(p, str) else p
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()[:40]


def write_atomically(path: str, data: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    handle, part = tempfile.mkstemp(dir=os.path.dirname(path), prefix="part-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)


def lookup(key: str) -> str:
    """The path of the shared object stored under a key, '' when there is none."""
    folder = cache_dir()
    path = os.path.join(folder, key + ".so") if folder else ""
    if not path or not os.path.exists(path):
        return ""
    try:
        os.utime(path)
    except OSError:
        pass  # a read-only cache still serves
    return path


def link(key: str, target: str) -> None:
    """Store the existing shared object `target` under another key too."""
    folder = cache_dir()
    if not folder:
        return
    path = os.path.join(folder, key + ".so")
    part = f"{path}.part-{os.getpid()}"
    try:
        os.link(target, part)
        os.replace(part, path)
    except OSError:
        with open(target, "rb") as file:
            write_atomically(path, file.read())


def trim() -> None:
    """Drop the least recently used entries beyond LIMIT."""
    folder = cache_dir()
    if not folder:
        return
    entries = []
    with os.scandir(folder) as files:
        for f in files:
            try:
                stat = f.stat()
            except OSError:
                continue
            entries.append((stat.st_mtime, stat.st_size // max(stat.st_nlink, 1), f.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= LIMIT:
            break
        try:
            os.unlink(path)
            total -= size
        except OSError:
            continue
