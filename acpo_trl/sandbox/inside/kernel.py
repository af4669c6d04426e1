"""System calls that the standard library does not have: namespaces, mounts, capabilities, system call filters."""

import ctypes
import os
import platform
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
ANY_NEW_NAMESPACE = 0x7E020080
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 4, 22, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_HEADER = struct.pack("=Ii", 0x20080522, 0)  # version 3, this process
_ZEROS = [ctypes.c_ulong(0)] * 3

# What a program without rights could still use against the kernel, against its limits, or to leave something behind,
# with the numbers of the system call on x86_64 and on aarch64.
DENIED = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # memory that belongs to no process, so that no limit counts it
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # keys outlive the process
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
_CLONE = (56, 220)
_CLONE3 = 435
_AUDIT_ARCHITECTURE = (0xC000003E, 0xC00000B7)
_MACHINES = ("x86_64", "aarch64")
_X32 = 0x40000000
_LOAD, _JUMP_EQUAL, _JUMP_ANY_BIT, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _FAIL_PERMISSION, _FAIL_MISSING = 0x7FFF0000, 0x00050001, 0x00050026

_libc = ctypes.CDLL(None, use_errno=True)
# Looked up here and not at each call: that would be in every fork anew.
_unshare, _setns, _mount, _prctl, _capset = _libc.unshare, _libc.setns, _libc.mount, _libc.prctl, _libc.capset


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unshare(namespaces: int) -> None:
    _check(_unshare(namespaces))


def setns(descriptor: int, namespace: int) -> None:
    _check(_setns(descriptor, namespace))


def mount(kind: bytes, target: bytes, flags: int, options: bytes = b"") -> None:
    _check(_mount(kind, target, kind, ctypes.c_ulong(flags), options))


def drop_privileges() -> None:
    """Give up all capabilities, for good, also over an exec."""
    _set(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    _set(_PR_SET_NO_NEW_PRIVS, 1)
    _check(_capset(_CAPABILITY_HEADER, bytes(24)))
    # A change of user hides the process's own files in /proc from itself; it has no secrets to hide.
    _set(_PR_SET_DUMPABLE, 1)


class SystemCallFilter:
    """Makes the system calls in `DENIED`, and new namespaces by any way, fail.

    Raises:
        OSError: the processor is none whose numbers are known.
    """

    def __init__(self) -> None:
        self._program = ctypes.create_string_buffer(filter_program(platform.machine()))
        self._header = struct.pack("HP", (len(self._program) - 1) // 8, ctypes.addressof(self._program))

    def install(self) -> None:
        """Filter the calls of this process and of its children from now on."""
        _check(_prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), self._header, *_ZEROS[:2]))


def filter_program(machine: str) -> bytes:
    """Give the filter as instructions of the classic Berkeley packet filter."""
    if machine not in _MACHINES:
        raise OSError(f"machine {machine!r}: its system call numbers are unknown; expected one of {_MACHINES}")
    column = _MACHINES.index(machine)
    permission = struct.pack("HBBI", _RETURN, 0, 0, _FAIL_PERMISSION)
    steps = [
        struct.pack("HBBI", _LOAD, 0, 0, 4),  # which architecture
        struct.pack("HBBI", _JUMP_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[column]) + permission,
        struct.pack("HBBI", _LOAD, 0, 0, 0),  # which call
        struct.pack("HBBI", _JUMP_AT_LEAST, 0, 1, _X32) + permission,
        # The flags of clone3 are behind a pointer that a filter cannot follow; the C library falls back to clone.
        struct.pack("HBBI", _JUMP_EQUAL, 0, 1, _CLONE3) + struct.pack("HBBI", _RETURN, 0, 0, _FAIL_MISSING),
    ]
    for numbers in DENIED.values():
        steps.append(struct.pack("HBBI", _JUMP_EQUAL, 0, 1, numbers[column]) + permission)
    steps += [
        struct.pack("HBBI", _JUMP_EQUAL, 0, 3, _CLONE[column]),
        struct.pack("HBBI", _LOAD, 0, 0, 16),  # its first argument
        struct.pack("HBBI", _JUMP_ANY_BIT, 0, 1, ANY_NEW_NAMESPACE) + permission,
        struct.pack("HBBI", _RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(steps)


def _set(option: int, value: int) -> None:
    _check(_prctl(option, ctypes.c_ulong(value), *_ZEROS))
