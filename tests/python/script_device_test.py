"""Training loops in Python on a device whose memory the host cannot read, with copies that come late
(device/memory.h): same weights as on the CPU, alone and with workers, through a kill and a resume."""
import unittest

from fails_with import events
from script_runs import ScriptTest
from script_worlds_test import CASES, TRAIN, weights_in
from stand_in import OnDevice

# Cases that the device computes by the CPU's kernels. Attention and autocast are cut into others.
LIKE_ON_CPU = ("mlp-fp32", "cnn-fp32")
STEPS = 12  # a kernel of the device costs ten of the CPU's
MOVED = """
# /// lockstep
# train: {{global_batch: 8, slots: 2, epochs: 1}}
# ///
import lockstep, torch
run = lockstep.start()
model = torch.nn.Linear(3, 2)
run.keep(model=model.to({place}), optimizer=torch.optim.SGD(model.parameters(), 0.1))
"""


class Device(OnDevice, ScriptTest):
    on_cpu = {}  # the weights of the CPU, by case: once for all tests

    def keeps_the_weights_of_the_cpu(self, *overrides):
        """Through a kill, a stop, and a resume in another world; a step replays."""
        on_device = {override.split("=")[0].replace(".", "__"): override.split("=")[1]
                     for override in overrides}
        alone = self.alone(TRAIN, "all", "both", **on_device, train__max_steps=str(STEPS))
        weights = weights_in(alone)
        if not self.on_cpu:
            self.has_device = False
            self.on_cpu.update(weights_in(self.alone(TRAIN, "all", "both",
                                                     train__max_steps=str(STEPS))))
            self.has_device = True
        self.assertEqual([*weights], CASES)
        self.assertEqual([weights[case] for case in LIKE_ON_CPU],
                         [self.on_cpu[case] for case in LIKE_ON_CPU])
        self.take_ms(150)
        run = self.start_script(TRAIN, ["all", "both", 1, self.pace], 2,
                                overrides=[*overrides, "checkpoint.every_steps=5",
                                           f"train.max_steps={STEPS}"])
        run.wait_for_step(2)
        self.kill_and_go_on(run, 0)
        run.wait_for_workers(2)
        run.wait_for_step(6)
        self.stop(run)
        self.take_ms(0)
        again = self.start("--resume", "--workers", 3)
        self.assertEqual(again.wait(), 0, again.text()[-3000:])
        self.assertIn(f"weights_sha256 {again.summary()['weights_sha256']}", alone)
        self.audit(again)
        self.assertIn("bit for bit", self.replayed(again, 6))
        return again

    def test_sums_over_the_host_have_the_weights_of_the_cpu(self):
        self.keeps_the_weights_of_the_cpu("cluster.device=cuda")

    def test_sums_between_devices_have_them_too(self):
        run = self.keeps_the_weights_of_the_cpu("cluster.device=cuda", "comm.backend=nccl")
        self.assertTrue(events(run, "nccl", log="worker-*"))

    def test_what_lies_elsewhere_is_refused_by_name(self):
        for place, device, words in (('"cpu"', "cuda", ("weight", "lies on cpu", ".to(run.device)")),
                                     ('"standin"', "cpu", ("weight", "lies on standin:0",
                                                           "cluster.device: cuda"))):
            with self.subTest(device=device):
                said = self.alone(self.write_script(MOVED.format(place=place)), expect=1,
                                  cluster__device=device)
                for word in words:
                    self.assertIn(word, said)


if __name__ == "__main__":
    unittest.main()
