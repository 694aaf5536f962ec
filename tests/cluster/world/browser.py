"""A headless Chromium, driven over a pipe (its DevTools protocol: JSON ended by a zero byte)."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

PROGRAM = shutil.which("chromium")
DEADLINE_S = 120


class Browser:
    """`directory`: for its profile and everything else that it writes."""

    def __init__(self, directory):
        directory.mkdir()
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        # It reads commands from descriptor 3 and writes answers to 4.
        shell = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        # Without a sandbox: the tests run as root, and open only pages of ours.
        argv = ["bash", "-c", shell, PROGRAM, "--headless", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                "--hide-scrollbars", f"--user-data-dir={directory}/profile",
                "--remote-debugging-pipe", "about:blank"]
        env = {**os.environ, "HOME": str(directory), "TMPDIR": str(directory), "TZ": "UTC"}
        with open(directory / "output", "wb") as output:
            self.process = subprocess.Popen(argv, pass_fds=(commands, answers), env=env,
                                            stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        os.close(commands)
        os.close(answers)
        self.received = b""
        self.number = 0
        self.session = None
        self.complaints = []  # of the console: errors, refused by policy, exceptions
        target = next(t for t in self.ask("Target.getTargets")["targetInfos"]
                      if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"],
                                flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        os.close(self.commands)  # it ends then
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)

    def message(self, deadline):
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.answers], [], [], deadline - time.monotonic())
            chunk = os.read(self.answers, 1 << 20) if ready else b""
            if not chunk:
                raise AssertionError("the browser " + ("has ended" if ready else "says nothing"))
            self.received += chunk
        text, _, self.received = self.received.partition(b"\0")
        return json.loads(text)

    def ask(self, method, /, **params):
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            message = self.message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def note(self, event):
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])

    def open(self, url, width, height, dark=False):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Page.navigate", url=url)

    def value(self, expression):
        """The value of a JavaScript expression in the page, as JSON."""
        answer = self.ask("Runtime.evaluate", expression=f"JSON.stringify({expression})")
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        text = answer["result"].get("value")
        return None if text is None else json.loads(text)

    def wait_for(self, expression):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            value = self.value(expression)
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"waited {DEADLINE_S} s for {expression}; the page says: "
                             + str(self.value("document.body.innerText"))[:2000])

    def screenshot(self):
        """The visible part of the page as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
