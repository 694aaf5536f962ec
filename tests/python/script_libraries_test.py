"""Libraries around a training loop: hydra, which reads its words; IPython, whose %run starts it; peft,
whose adapters it trains; torchmetrics, which counts. Skipped where the Python of the tests lacks them."""
import json
import re
import unittest

from examples import ExampleTest
from packages import MODULE, TRAIN, ModuleTest
from script_runs import SCRIPTS, ScriptTest

HYDRA = """
import hydra, sys
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config):
    from .train import main as train
    sys.argv = ["train", "--width", str(config.width)]
    train()
main()
"""


class Libraries(ModuleTest):
    def test_hydra_finds_its_configuration_beside_the_module(self):
        self.need("hydra")
        self.write("proj/jobs/conf/config.yaml", "width: 8\n")
        self.write("proj/jobs/app.py", TRAIN[:TRAIN.index("import")] + HYDRA)
        run = self.start_module("script.args=[width=6]", module="proj.jobs.app", workers=2)
        self.assert_done(run, self.weights_alone_of(MODULE, "--width", 6))

    def test_ipython_runs_scripts_again_and_again(self):
        """%run gives each script a __main__ of its own, in one process."""
        self.need("IPython")
        loop = self.write("loop.py", TRAIN.replace("from . import", "from proj.jobs import")
                          .replace("from ..common", "from proj.common"))
        broken = self.write("broken.py", loop.read_text().replace("run.backward(", "run.batches("))
        cells = (f"%run {loop}", f"%run {broken}", f"%run {loop} --width 6", f"%run -m {MODULE}")
        session = self.write("session.py", "".join(f"get_ipython().run_cell({cell!r})\n" for cell in cells))
        said = self.output_of("-m", "IPython", "--no-banner", "--colors=NoColor", session,
                              IPYTHONDIR=str(self.scratch / "ipython"))
        found = re.findall(r"weights_sha256 (\w{64})", said)
        plain = self.weights_alone_of(MODULE)
        self.assertEqual(found, [plain, self.weights_alone_of(MODULE, "--width", 6), plain], said[-3000:])
        self.assertIn("batches() was called before", said)
        self.assertNotIn("were made before lockstep.start()", said)


class Adapters(ExampleTest):
    def test_peft_trains_an_adapter(self):
        self.need("peft")
        adapters = [self.scratch / name for name in ("alone", "two")]
        alone = self.all_alone({"lora": ["--save", adapters[0]]})["lora"]
        self.assert_same_with_two_workers("lora", ["--save", adapters[1]], alone)
        one, two = ((path / "adapter_model.safetensors").read_bytes() for path in adapters)
        self.assertEqual(one, two)
        self.assertEqual(json.loads((adapters[1] / "adapter_config.json").read_text())["peft_type"], "LORA")


class Metrics(ScriptTest):
    script = SCRIPTS / "counted.py"

    def test_kept_ones_count_every_sample_once_whoever_dies_and_in_a_resume(self):
        self.need("torchmetrics")
        self.take_ms(0)
        # Compares with metrics that saw all.
        plain = self.start_script(self.script, [self.pace, "plain"], name="plain")
        self.assertEqual(plain.wait(), 0, plain.text()[-3000:])
        self.take_ms(150)
        run = self.start_script(self.script, [self.pace], workers=2)
        run.wait_for_step(6)
        self.kill_and_go_on(run, 1)
        self.stop(run)
        self.take_ms(0)
        again = self.start_script(self.script, [self.pace], overrides=["--resume"])
        self.assertEqual(again.wait(), 0, again.text()[-3000:])
        rows = self.rows_of(plain)
        self.assertEqual([row["samples"] for row in rows], [72] * 4)
        self.assertEqual(self.rows_of(run), rows)

    def rows_of(self, run):
        rows = map(json.loads, (run.run_dir / "script_log.jsonl").read_text().splitlines())
        return [{key: row[key] for key in ("step", "accuracy", "peak", "samples")} for row in rows]


if __name__ == "__main__":
    unittest.main()
