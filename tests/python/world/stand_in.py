"""Runs of scripts on a device that is not the CPU (device/lockstep_stand_in.py)."""
from harness import BIN
from script_runs import HERE

_TESTS = BIN.parent / "tests"
LIBRARY = _TESTS / "liblockstep_stand_in_device.so"
DRIVER = _TESTS / "unit" / "base" / "liblockstep_fake_driver.so"
GPUS = 4


def device_variables(scratch):
    """Variables for a run with cluster.device cuda on a machine without a GPU: a driver that shows
    GPUs, and the device."""
    for library in (LIBRARY, DRIVER):
        if not library.exists():
            raise AssertionError(f"{library} is not there: build lockstep_stand_in_device and "
                                 "lockstep_fake_driver")
    drivers = scratch / "driver"
    drivers.mkdir(exist_ok=True)
    if not (drivers / "libcuda.so.1").exists():
        (drivers / "libcuda.so.1").symlink_to(DRIVER)
    return {"FAKE_DRIVER_DEVICES": str(GPUS), "LD_LIBRARY_PATH": str(drivers),
            "MORE_LIBRARIES": str(drivers), "MORE_MODULES": str(HERE / "device"),
            "LOCKSTEP_STAND_IN_LIBRARY": str(LIBRARY), "LOCKSTEP_STAND_IN_DEVICE": "standin",
            "LOCKSTEP_STAND_IN_MODULE": str(LIBRARY)}


class OnDevice:
    """A base of ScriptTests that run on the device."""

    has_device = True

    def environment(self, env=None, slot_ms=None):
        more = device_variables(self.scratch) if self.has_device else {}
        return {**super().environment(env, slot_ms), **more}
