# SPDX-License-Identifier: Apache-2.0
"""ctypes_client.py LIBRARY TABLE: uses a libnccl.so.2 as Python programs do that load it by hand: every name is resolved at once,
the unique id goes by value, and calls are made through prototypes of their own. Two processes; prints "all good" or fails."""
import ctypes
import os
import re
import sys

WORLD = 2


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


COMM, STREAM, WINDOW, BUFFER = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
RESULT, TYPE, OP = ctypes.c_int, ctypes.c_int, ctypes.c_int
PROTOTYPES = {
    "ncclGetErrorString": (ctypes.c_char_p, [RESULT]),
    "ncclGetLastError": (ctypes.c_char_p, [COMM]),
    "ncclGetVersion": (RESULT, [ctypes.POINTER(ctypes.c_int)]),
    "ncclGetUniqueId": (RESULT, [ctypes.POINTER(UniqueId)]),
    "ncclCommInitRank": (RESULT, [ctypes.POINTER(COMM), ctypes.c_int, UniqueId, ctypes.c_int]),
    "ncclAllReduce": (RESULT, [BUFFER, BUFFER, ctypes.c_size_t, TYPE, OP, COMM, STREAM]),
    "ncclAllGather": (RESULT, [BUFFER, BUFFER, ctypes.c_size_t, TYPE, COMM, STREAM]),
    "ncclReduceScatter": (RESULT, [BUFFER, BUFFER, ctypes.c_size_t, TYPE, OP, COMM, STREAM]),
    "ncclReduce": (RESULT, [BUFFER, BUFFER, ctypes.c_size_t, TYPE, OP, ctypes.c_int, COMM, STREAM]),
    "ncclBroadcast": (RESULT, [BUFFER, BUFFER, ctypes.c_size_t, TYPE, ctypes.c_int, COMM, STREAM]),
    "ncclSend": (RESULT, [BUFFER, ctypes.c_size_t, TYPE, ctypes.c_int, COMM, STREAM]),
    "ncclRecv": (RESULT, [BUFFER, ctypes.c_size_t, TYPE, ctypes.c_int, COMM, STREAM]),
    "ncclCommDestroy": (RESULT, [COMM]),
    "ncclGroupStart": (RESULT, []),
    "ncclGroupEnd": (RESULT, []),
    "ncclCommWindowRegister": (RESULT, [COMM, BUFFER, ctypes.c_size_t, ctypes.POINTER(WINDOW), ctypes.c_int]),
    "ncclCommWindowDeregister": (RESULT, [COMM, WINDOW]),
}
FLOAT, SUM, AVG, SYMMETRIC = 7, 0, 4, 1


def load(path, table):
    library = ctypes.CDLL(path)
    with open(table) as lines:
        for name in re.findall(r"^SHOAL_EXPORT\((\w+)", lines.read(), re.M):
            getattr(library, name)
    functions = {}
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    return functions


def run(nccl, rank, world, unique_id):
    def call(name, *arguments):
        result = nccl[name](*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {nccl['ncclGetErrorString'](result).decode()}: {nccl['ncclGetLastError'](None).decode()}")

    version = ctypes.c_int()
    call("ncclGetVersion", ctypes.byref(version))
    text = str(version.value)  # sliced as it is where versions are compared as texts
    assert [text[0], text[1:3].lstrip("0"), text[3:].lstrip("0")] == ["2", "28", "9"], text
    comm = COMM()
    call("ncclCommInitRank", ctypes.byref(comm), world, unique_id, rank)
    values = (ctypes.c_float * 1000)(*[rank + i for i in range(1000)])
    result = (ctypes.c_float * 1000)()
    call("ncclAllReduce", values, result, 1000, FLOAT, SUM, comm, None)
    assert all(result[i] == sum(range(world)) + world * i for i in range(1000))
    gathered = (ctypes.c_float * (4 * world))()
    call("ncclAllGather", values, gathered, 4, FLOAT, comm, None)
    assert list(gathered) == [q + i for q in range(world) for i in range(4)]
    window = WINDOW()
    memory = ctypes.create_string_buffer(3 * 4096)
    start = (ctypes.addressof(memory) + 4095) // 4096 * 4096
    call("ncclCommWindowRegister", comm, start, 4096, ctypes.byref(window), SYMMETRIC)
    call("ncclCommWindowDeregister", comm, window)
    if world > 1:
        call("ncclGroupStart")
        call("ncclSend", values, 3, FLOAT, 1 - rank, comm, None)
        call("ncclRecv", result, 3, FLOAT, 1 - rank, comm, None)
        call("ncclGroupEnd")
        assert list(result[:3]) == [1 - rank, 2 - rank, 3 - rank]
    call("ncclCommDestroy", comm)


def main(library, table):
    reader, writer = os.pipe()
    child = os.fork()  # before the library is there
    rank = 1 if child == 0 else 0
    nccl = load(library, table)
    unique_id = UniqueId()
    if rank == 0:
        assert nccl["ncclGetUniqueId"](ctypes.byref(unique_id)) == 0
        os.write(writer, bytes(unique_id))
    else:
        unique_id = UniqueId.from_buffer_copy(os.read(reader, 128))
    run(nccl, rank, WORLD, unique_id)
    if rank == 1:
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert nccl["ncclGetUniqueId"](ctypes.byref(unique_id)) == 0
    run(nccl, 0, 1, unique_id)
    print("all good")


if __name__ == "__main__":
    main(*sys.argv[1:])
