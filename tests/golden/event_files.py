"""Writes event_files.hex: a few events in a file of TensorBoard's own making.

  pip install tensorboard && python3 tests/golden/event_files.py
"""
import io
import pathlib

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


def scalar(tag, value):
    return Summary(value=[Summary.Value(tag=tag, simple_value=value)])


EVENTS = [
    Event(wall_time=1763704800.25, file_version="brain.Event:2"),
    Event(wall_time=1763704801.5, step=3, session_log=SessionLog(status=SessionLog.START)),
    Event(wall_time=1763704802.0, step=3, summary=scalar("train/loss", 2.302585)),
    Event(wall_time=1763704803.0, step=300, summary=scalar("train/loss", 0.125)),
    Event(wall_time=1763704803.0, step=5_000_000_000, summary=scalar("eval/accuracy", 0.0)),
    Event(wall_time=1763704804.0, step=5_000_000_001, summary=scalar("x" * 200, -1e-30)),
]

if __name__ == "__main__":
    out = io.BytesIO()
    out.close = lambda: None
    writer = RecordWriter(out)
    for event in EVENTS:
        writer.write(event.SerializeToString(deterministic=True))
    text = out.getvalue().hex()
    lines = [text[i:i + 96] for i in range(0, len(text), 96)]
    pathlib.Path(__file__).with_suffix(".hex").write_text("\n".join(lines) + "\n")
