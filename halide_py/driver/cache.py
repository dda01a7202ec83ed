"""The caches on disk: shared objects by the digest of their C text, and in front of them pipelines by fingerprint.

    <C digest>.so          the shared object, followed by a seal: a digest of the bytes and of the key
    <fingerprint>.key      the name of the shared object that a pipeline compiles to, so that lowering can be skipped

Safe under concurrent writers (written aside, then renamed). An entry without a right seal (cut off, damaged, put there by something else)
is removed and built again. Bounded: the least recently used go first. `HL_CACHE_DIR` says where, `HL_CACHE=0` turns the caches off.
"""

from __future__ import annotations

import hashlib
import os
import tempfile

from .. import driver

LIMIT = 512 << 20  # bytes kept
_SEAL = 32


def cache_dir() -> str:
    """The folder, made if need be; '' when caching is off or the folder cannot be written."""
    if os.environ.get("HL_CACHE", "1") == "0":
        return ""
    folder = os.environ.get("HL_CACHE_DIR") or driver.cache_home.cache_home()
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return ""
    return folder


def digest(*parts: str | bytes) -> str:
    """The key of a content."""
    h = hashlib.blake2b(digest_size=20)
    for p in parts:
        data = p.encode() if isinstance(p, str) else p
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


def write_whole(path: str, data: bytes) -> None:
    """Write a file so that readers see all of it or nothing. Raises OSError, with nothing left behind, when that is not possible."""
    handle, part = tempfile.mkstemp(dir=os.path.dirname(path), prefix="part-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def write_atomically(path: str, data: bytes) -> bool:
    """The same; False when it is not possible (a full disk, a folder without permission)."""
    try:
        write_whole(path, data)
    except OSError:
        return False
    return True


def _seal(key: str, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_SEAL, key=key.encode()[:64]).digest()


def _path(key: str, kind: str) -> str:
    folder = cache_dir()
    return os.path.join(folder, key + kind) if folder else ""


def _read(path: str) -> bytes:
    """A file's bytes, and its time set to now; b'' when there is none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return b""
    try:
        os.utime(path)
    except OSError:
        pass  # a folder that cannot be written still serves
    return data


def lookup(key: str) -> str:
    """The path of the shared object under a key, '' when there is none that can be trusted."""
    path = _path(key, ".so")
    data = _read(path) if path else b""
    if not data:
        return ""
    if len(data) <= _SEAL or _seal(key, data[:-_SEAL]) != data[-_SEAL:]:
        _remove(path)
        return ""
    return path


def store(key: str, built: str) -> str:
    """Keep the shared object in file `built` under a key; gives its path, '' when it cannot be kept."""
    path = _path(key, ".so")
    if not path:
        return ""
    with open(built, "rb") as file:
        data = file.read()
    return path if write_atomically(path, data + _seal(key, data)) else ""


def pipeline_object(fingerprint: str) -> str:
    """The path of the shared object of a pipeline, '' when it is not known or not there."""
    path = _path(fingerprint, ".key")
    key = _read(path).decode("ascii", "replace").strip() if path else ""
    return lookup(key) if key.isalnum() else ""


def remember_pipeline(fingerprint: str, key: str) -> None:
    """Note which shared object a pipeline compiles to."""
    path = _path(fingerprint, ".key")
    if path:
        write_atomically(path, key.encode())


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # another process was faster


def trim(limit: int = LIMIT) -> None:
    """Drop the least recently used entries until `limit` bytes are left."""
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
            entries.append((stat.st_mtime, stat.st_size, f.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        _remove(path)
        total -= size
