"""The status page in a real browser, of a real run in which a worker is killed."""
import json
import os
import pathlib
import signal
import unittest
import urllib.request

import browser
from browser import Browser
from harness import DEADLINE_S, LockstepTest
from picture import Picture

# The cause of a killed worker's death is the agent's, or its peers' if the agent reports late.
CAUSES = "SIGKILL|closed its connection"
HOSTILE = "<img src=x onerror=alert(1)>'\"&"
DESKTOP, PHONE = (1280, 900), (390, 844)
KEEP = os.environ.get("LOCKSTEP_SCREENSHOTS")  # a directory, to look at them


def texts(selector):
    return f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"


# Titles of sections that, with their neighbours, do not fill their row.
HOLES = """(() => {
  const main = document.querySelector('main'), style = getComputedStyle(main), rows = {};
  const full = main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  for (const section of document.querySelectorAll('main section:not([hidden])')) {
    const box = section.getBoundingClientRect();
    (rows[Math.round(box.top)] ||= []).push([section, box.width]);
  }
  const width = (row) => row.reduce((sum, [, w]) => sum + w, (row.length - 1) * 14);
  return Object.values(rows).filter((row) => Math.abs(width(row) - full) > 2)
    .map((row) => row[0][0].querySelector('h2, dl').textContent);
})()"""


@unittest.skipUnless(browser.PROGRAM, "there is no chromium here (package chromium)")
class Page(LockstepTest):
    slot_ms = 5

    def setUp(self):
        super().setUp()
        self.browser = Browser(self.scratch / "browser")
        self.addCleanup(self.browser.close)

    def long_run(self, **sections):
        job = self.job(self.small_data(), model={"name": "mlp"},
                       train={"global_batch": 64, "slots": 4, "max_steps": 1_000_000_000},
                       optimizer={"name": "adamw", "lr": 0.0002},
                       checkpoint={"every_steps": 200}, **sections)
        run = self.start(job, "--workers", 2)
        run.wait_for_workers(2)
        return run

    def url(self, run):
        return f"http://{run.coordinator()['http']}/"

    def open(self, url, size=DESKTOP, dark=False):
        self.browser.open(url, *size, dark=dark)
        self.browser.wait_for("document.body && document.body.dataset.shown === 'yes'")

    def look(self, name, size):
        """Takes a screenshot, checks its size and content, and returns how often it has each
        color."""
        png = self.browser.screenshot()
        if KEEP:
            pathlib.Path(KEEP, f"{name}.png").write_bytes(png)
        picture = Picture(png)
        self.assertEqual((picture.width, picture.height), size)
        colors = picture.colors()
        common = sum(count for _, count in colors.most_common(1))
        self.assertLess(common, 0.98 * size[0] * size[1], "the page is blank")
        self.assertGreater(len(colors), 20, "text has many shades")
        return colors

    def assert_fits(self, size):
        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), size[0],
                             "it scrolls sideways")

    def test_a_run_with_a_killed_worker_is_shown(self):
        run = self.long_run()
        run.wait_for_more_steps(100)
        killed = run.worker(1)
        os.kill(killed, signal.SIGKILL)
        run.wait_for(lambda: run.status()["generation"] >= 2 and len(run.workers()) == 2
                     and killed not in run.workers(), "another worker joined")
        run.wait_for_more_steps(100)
        self.open(self.url(run))
        value = self.browser.value
        self.assertEqual(value("document.getElementById('job').textContent"), "test")
        self.assertEqual(value("document.getElementById('state').textContent"), "training")
        ranks = value(texts("#ranks tbody tr td:nth-child(4)"))
        self.assertEqual(ranks, [str(pid) for pid in run.workers()], "the pids, by rank")
        deaths = value(texts("#events [data-event=member_died]"))
        self.assertEqual(len(deaths), 1)
        self.assertIn(f"pid {killed}", deaths[0])
        self.assertRegex(deaths[0], CAUSES)
        self.assertTrue(value(texts("#events [data-event=checkpoint_written]")))
        generations = value(texts("#generations li"))
        self.assertGreaterEqual(len(generations), 3, "start, death, the new worker")
        self.assertRegex(generations[-2], CAUSES, "why there is a second one")
        self.assertGreaterEqual(value("document.querySelectorAll('#loss .mark').length"), 2)
        for plot in ("loss", "throughput", "lr"):
            points = value(f"Number(document.querySelector('#{plot} svg').dataset.points)")
            self.assertGreater(points, 50, plot)
        self.assertEqual(value("document.querySelectorAll('#loss path.curve').length"), 2,
                         "training and test loss in one plot")
        self.assertEqual(value(HOLES), [])
        facts = dict(zip(value(texts("#facts dt")), value(texts("#facts dd"))))
        self.assertEqual(float(facts["learning rate"]), 0.0002)
        self.assertGreater(float(facts["test loss"]), 0)
        self.assertRegex(facts["test accuracy"], r"\d %")
        rate = value(texts("#settings [data-key='optimizer.lr'] td"))
        self.assertEqual((rate[0], float(rate[1])), ("optimizer.lr", 0.0002))
        self.assertEqual(value(texts("#defaults [data-key='optimizer.beta1'] td")),
                         ["optimizer.beta1", "0.9"])
        phases = value(texts("#phases .legend .value"))
        self.assertEqual(len(phases), 6)
        shares = sum(float(text.removesuffix(" %")) for text in phases)
        self.assertAlmostEqual(shares, 100, delta=1)
        self.assertEqual(self.browser.complaints, [])

        light = self.look("desktop-light", DESKTOP)
        self.assert_fits(DESKTOP)
        self.open(self.url(run), PHONE, dark=True)
        dark = self.look("phone-dark", PHONE)
        self.assert_fits(PHONE)
        brightness = [sum(map(sum, [c for c, _ in colors.most_common(1)])) for colors
                      in (light, dark)]
        self.assertGreater(brightness[0], 600, "light")
        self.assertLess(brightness[1], 150, "dark")
        self.open(self.url(run), PHONE)
        self.look("phone-light", PHONE)
        self.open(self.url(run), DESKTOP, dark=True)
        self.look("desktop-dark", DESKTOP)

        # The page lives on without a coordinator and says so.
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75)
        line = "document.getElementById('connection').textContent"
        self.assertIn("old", self.browser.wait_for(f"{line}.includes('disconnected') && {line}"))

    def test_names_that_are_markup_are_text(self):
        # One evaluation does it all, because the page redraws every second.
        self.open(self.url(self.long_run()))
        markup, nodes, events, title = self.browser.value(
            f"(lockstep.show({json.dumps(self.hostile())}), "
            "[document.querySelectorAll('body img, body b, main script').length, "
            f"{texts('#ranks td:nth-child(3)')}, {texts('#events span')}, "
            "document.getElementById('job').textContent])")
        self.assertEqual(markup, 0)
        self.assertEqual(nodes, [HOSTILE])
        self.assertIn(HOSTILE, events)
        self.assertEqual(title, HOSTILE)
        self.assertEqual(self.browser.complaints, [])

    def test_of_a_model_of_tokens_it_shows_perplexity_and_no_accuracy(self):
        self.open(self.url(self.long_run()))
        status = {"predicts": "tokens", "step": 9, "total_steps": 10, "loss": 3, "accuracy": 0.25,
                  "eval": {"loss": 2, "accuracy": 0.5},
                  "recent": {"60s": {"loss": 4, "samples_per_second": 7}}}
        history = {"first": [0, 1], "loss": [4, 3], "steps": 2, "width": 1, "lr": [1, 2],
                   "evals": {"step": [1, 2], "loss": [3, 2], "accuracy": [0.4, 0.5]}}
        names, values, hidden, points = self.browser.value(
            f"(lockstep.show({json.dumps({'status': status, 'history': history})}), "
            f"[{texts('#facts dt')}, {texts('#facts dd')}, "
            "['accuracy', 'perplexity'].map((id) => document.getElementById(`${id}-section`).hidden),"
            "document.querySelector('#perplexity svg').dataset.points])")
        facts = dict(zip(names, values))
        self.assertNotIn("test accuracy", facts)
        self.assertEqual(facts["test perplexity"], "7.389")
        self.assertEqual(facts["training loss"], "3 (60 s: 4)")
        self.assertEqual((hidden, points), ([True, False], "2"))

    @staticmethod
    def hostile():
        return {"status": {"run": HOSTILE, "state": HOSTILE, "message": HOSTILE,
                           "members": [{"node": HOSTILE, "rank": 0, "state": HOSTILE, "pid": 1}]},
                "events": {"events": [{"event": HOSTILE, "message": HOSTILE, "time": HOSTILE}],
                           "generations": [{"generation": HOSTILE, "what": HOSTILE, "why": HOSTILE,
                                            "time": HOSTILE, "step": 3}]}}

    def test_the_api_is_bounded_and_a_script_from_elsewhere_is_refused(self):
        run = self.long_run()
        run.wait_for_more_steps(100)

        def get(path):
            with urllib.request.urlopen(self.url(run) + path, timeout=DEADLINE_S) as answer:
                policy = answer.headers["Content-Security-Policy"]
                return policy, answer.read()

        policy, page = get("")
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn(b"http://", page)
        self.assertNotIn(b"https://", page)
        history = json.loads(get("api/v1/history?points=7")[1])
        self.assertIn(len(history["first"]), range(2, 8))
        columns = {len(history[name]) for name in ("loss", "loss_min", "loss_max", "lr",
                                                   "samples_per_second")}
        self.assertEqual(columns, {len(history["first"])})
        self.assertLessEqual(len(json.loads(get("api/v1/events?limit=2")[1])["events"]), 2)
        for odd in ("points=0", "points=-1", "points=x", "points=99999999999999999999", "&&="):
            self.assertLessEqual(len(json.loads(get(f"api/v1/history?{odd}")[1])["first"]), 2048)
        self.assertEqual(len(json.loads(get("api/v1/status?members=1")[1])["members"]), 1)


if __name__ == "__main__":
    unittest.main()
