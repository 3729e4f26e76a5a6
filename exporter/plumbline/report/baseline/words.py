"""Texts of a report for workloads and figures."""

from plumbline.baseline.arithmetic import depth_of, size_of
from plumbline.baseline.shown import Figure
from plumbline.config.workloads import (
    BlockWorkload,
    FileOps,
    Messages,
    Metadata,
    OsdBench,
    Pattern,
    RadosBench,
    RadosOps,
    RbdBench,
    RoundTrip,
    S3Ops,
    Sync,
    TcpThroughput,
    VolumeClaim,
    Workload,
)
from plumbline.core.units import base_text

LAYER_TITLES = {
    "network": "Network",
    "disk": "Disks",
    "osd": "OSDs",
    "rados": "RADOS pools",
    "rbd": "RBD images",
    "filesystem": "File systems",
    "object": "Object storage",
    "client": "Clients",
}

FIGURE_TITLES = {
    "iops": "Operations per second",
    "throughput": "Throughput",
    "latency.mean": "Mean latency",
    "latency.p50": "Median latency",
    "latency.p95": "95th percentile",
    "latency.p99": "99th percentile",
    "latency.p999": "99.9th percentile",
    "latency.max": "Highest latency",
}
# a longer printed figure has all digits of a program's output: ``485408333.33916885 B/s``
READABLE = 14
DOUBT = "in doubt: the document contradicts itself by more than a factor of two; shown, but not used to judge"
CONTRADICTS = "the document contradicts itself here; see the note"
BASE_UNITS = {"iops": "1/s", "throughput": "B/s"}

_PATTERNS = {
    Pattern.READ: "Sequential reads",
    Pattern.BACKREAD: "Backward reads",
    Pattern.STRIDEREAD: "Stride reads",
    Pattern.WRITE: "Sequential writes",
    Pattern.RANDREAD: "Random reads",
    Pattern.RANDWRITE: "Random writes",
}
_RADOS = {"write": "Sequential writes", "seq": "Sequential reads", "rand": "Random reads"}
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def layer_title(name: str) -> str:
    return LAYER_TITLES.get(name, name.capitalize() or "no layer")


def base_unit(figure: str) -> str:
    return BASE_UNITS.get(figure, "s")


def in_base(figure: Figure) -> str:
    """``29,569,843 B/s``; empty if the figure is printed in its base unit and short enough to read."""
    unit = base_unit(figure.figure)
    if figure.printed.endswith(f" {unit}") and len(figure.printed) <= READABLE:
        return ""
    if figure.figure == "iops" and figure.printed.replace(",", "").split()[0] == f"{figure.base:.0f}":
        return ""
    return base_text(figure.base, unit)


def figure_text(figure: Figure) -> str:
    """``28.20 MiB/s = 29,569,843 B/s``."""
    return " = ".join(filter(None, (figure.printed, in_base(figure))))


def bytes_text(size: int) -> str:
    """``4 KiB``; block sizes are powers of two, so binary units fit them."""
    rest, step = size, 0
    while rest and rest % 1024 == 0 and step < len(_BINARY) - 1:
        rest, step = rest // 1024, step + 1
    return f"{rest} {_BINARY[step]}"


def action(workload: Workload, operation: str) -> str:
    """The kind of operation: ``Random writes``; it names the group if one plot has several."""
    match workload:
        case BlockWorkload(pattern=Pattern.RANDRW):
            word = f"Random {operation}s of a mix with {workload.rwmix_read} % reads"
        case BlockWorkload():
            word = _PATTERNS[workload.pattern]
        case RadosBench():
            return _RADOS[workload.mode]
        case RbdBench():
            return f"{'Random' if workload.random else 'Sequential'} {workload.operation}s"
        case _:
            return operation.replace("-", " ").capitalize()
    if workload.sync is Sync.DSYNC and operation == "write":
        word += ", on stable media"
    return word if workload.direct else f"{word}, through the page cache"


def tool(workload: Workload) -> str:
    """The name of the experiment without its action; empty for block reads and writes."""
    match workload:
        case BlockWorkload():
            return ""
        case RadosBench():
            return "rados bench"
        case RbdBench():
            return "rbd bench"
        case OsdBench():
            return f"OSD bench of {bytes_text(workload.total_bytes)}"
        case RadosOps():
            return "Single objects"
        case FileOps():
            return "Single file operations" if workload.direct else "Single file operations, without O_DIRECT"
        case S3Ops():
            return "Single S3 requests"
        case TcpThroughput():
            return "TCP throughput"
        case RoundTrip():
            return f"Round trip ({workload.protocol.upper()})"
        case Metadata():
            return f"{workload.files:,} files"
        case VolumeClaim():
            return f"Claim of a volume of {bytes_text(workload.volume_bytes)}"
        case _:
            return workload.id


def shape(workload: Workload, *, size: bool = True, depth: bool = True) -> str:
    """The parameters in words: ``4 KiB, 4 in flight in each of 4 processes``, without those that a plot varies."""
    parts = []
    if size and (size_bytes := size_of(workload)):
        parts.append(bytes_text(size_bytes))
    jobs = workload.jobs if isinstance(workload, BlockWorkload) else 1
    if depth and (flight := depth_of(workload)):
        parts.append(f"{flight} in flight" + (f" in each of {jobs} processes" if jobs > 1 else ""))
    elif isinstance(workload, BlockWorkload):
        parts.append(f"{jobs} processes" if jobs > 1 else "one process")
    if isinstance(workload, TcpThroughput):
        parts.append("one stream" if workload.streams == 1 else f"{workload.streams} streams")
    if isinstance(workload, Messages):
        parts.append(bytes_text(workload.message_bytes))
    if isinstance(workload, RoundTrip) and workload.payload_bytes:
        parts.append(f"{workload.payload_bytes} bytes")
    return ", ".join(parts)


def described(workload: Workload, operation: str) -> str:
    """The whole experiment in words: ``rados bench, sequential reads, 4 MiB, 16 in flight``."""
    name, what = tool(workload), action(workload, operation)
    if name.lower().startswith(what.lower()):
        what = ""
    elif name:
        what = what[0].lower() + what[1:]
    return ", ".join(filter(None, (name, what, shape(workload))))
