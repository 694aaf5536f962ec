"""What goes wrong in a bucket (bucket.py), and for which requests. Nothing is random: a fault that
strikes every Nth request counts them."""
import dataclasses
import json
import re
import threading
from collections.abc import Callable, Collection

from bucket_protocol import OPERATIONS


def refuse_unknown(names, known):
    if unknown := set(names) - set(known):
        raise ValueError(f"unknown to the bucket: {', '.join(sorted(unknown))}")


@dataclasses.dataclass(frozen=True)
class Only:
    """Limits a fault to the requests for which all that is given here is true."""
    methods: Collection[str] = ()
    operations: Collection[str] = ()  # of OPERATIONS: "PutObject", "UploadPart" ...
    key: str = ""  # a regular expression, found anywhere in the key or the prefix of a list

    def __post_init__(self):
        refuse_unknown(self.methods, {known.method for known in OPERATIONS.values()})
        refuse_unknown(self.operations, OPERATIONS)

    def __call__(self, request):
        return ((not self.methods or request.method in self.methods)
                and (not self.operations or request.operation in self.operations)
                and bool(re.search(self.key, request.key or request.query.get("prefix", ""))))


@dataclasses.dataclass(slots=True)
class Faults:
    """None by default. A test may change fields, or the whole object, while the bucket runs.

    `int` fields strike every Nth request of those that come as far: 1, or True, strikes each. The
    order is that of the fields.
    """
    # The connection is closed before anything of the request counts. Without a predicate of its own
    # it is closed as soon as it is accepted.
    away: bool = False
    slow_s: float = 0  # before anything is done
    stall: int = 0  # until Bucket.release(); then it takes effect, even if its sender has gone
    lose_request_every: int = 0  # nothing is done, and the connection is closed
    fail_every: int = 0  # nothing is done: 503 SlowDown
    deny: Collection[str] = ()  # actions such as "s3:GetObject": 403 AccessDenied
    conflict_every: int = 0  # of conditional puts: 409 ConditionalRequestConflict, nothing is done
    complete_error_in_body: int = 0  # 200 with an InternalError inside, and the upload stays open
    truncate_gets: int = 0  # half of the bytes that Content-Length names, then the end
    fail_after_every: int = 0  # it is done: 500 InternalError
    complete_answer_lost: int = 0  # the upload is completed, and the connection is closed
    lose_answer_every: int = 0  # it is done, and the connection is closed

    ignore_conditions: bool = False  # a put with If-None-Match overwrites, and answers 200
    ignore_checksums: bool = False  # CRC-32C, MD5 and SHA-256 of a body may be wrong
    refuse_checksums: bool = False  # 501 NotImplemented to any x-amz-checksum- header
    forget_completions: bool = False  # a repeated completion is answered 404 NoSuchUpload
    stale_list: int = 0  # a list misses so many of its keys, those that were created last
    clock_offset_s: float = 0  # of the server's clock

    # By the name of a fault, the requests that it may strike (not for clock_offset_s). A fault that
    # is not here may strike all.
    only: dict[str, Callable] = dataclasses.field(default_factory=dict)
    _counts: dict = dataclasses.field(default_factory=dict, init=False, repr=False)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, init=False,
                                              repr=False, compare=False)

    def __post_init__(self):
        refuse_unknown(self.deny, {known.action for known in OPERATIONS.values()})
        refuse_unknown(self.only, set(self.__slots__) - {"clock_offset_s"})

    def of(self, name, request):
        """The field if it may strike this request; else None."""
        may = self.only.get(name)
        return getattr(self, name) if may is None or may(request) else None

    def strikes(self, name, request):
        """Counts the request, if this fault is on and may strike it."""
        every = self.of(name, request)
        if not every:
            return False
        with self._lock:
            self._counts[name] = count = self._counts.get(name, 0) + 1
        return count % every == 0


def faults_of(text):
    """Reads JSON, such as {"fail_every": 3, "only": {"fail_every": {"methods": ["PUT"]}}}."""
    said = json.loads(text)
    only = {name: Only(**limits) for name, limits in said.pop("only", {}).items()}
    return Faults(**said, only=only)
