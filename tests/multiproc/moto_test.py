"""A bucket of moto, which imitates Amazon's services, with authentication on: signatures, session
tokens, odd keys and lists in pages as a foreign server understands them; and weights from it."""
import contextlib
import json
import shutil
import subprocess
import unittest

from harness import installed, lockstep, synthetic_dataset
from sources_test import SourcesTest
from weight_files import STILL, assert_same_weights, newest_weights, tensors_in

PYTHON = installed("moto-python")


@unittest.skipUnless(PYTHON, "moto is not installed (deploy/install_deps.sh --for tests)")
@unittest.skipUnless(shutil.which("cjpeg"), "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
class Moto(SourcesTest):
    # Lists in pages of so many, far fewer than the bucket has.
    PAGE = 7

    SERVER = """
import os, sys
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"  # to make the user, its policy and key
os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = sys.argv[2]
import boto3, pathlib, json
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
host, port = server.get_host_and_port()
url = f"http://127.0.0.1:{port}"
def client(name, **keys):
    return boto3.client(name, endpoint_url=url, region_name="us-east-1", **keys)
start = dict(aws_access_key_id="x", aws_secret_access_key="x")
iam = client("iam", **start)
iam.create_user(UserName="u")
may = json.dumps({"Version": "2012-10-17",
                  "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=may)
key = iam.create_access_key(UserName="u")["AccessKey"]
keys = dict(aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
s3 = client("s3", **keys)
s3.create_bucket(Bucket="bucket")
root = pathlib.Path(sys.argv[1])
for path in root.rglob("*"):
    if path.is_file():
        s3.put_object(Bucket="bucket", Key=str(path.relative_to(root)), Body=path.read_bytes())
iam = client("iam", **keys)
role = iam.create_role(RoleName="r", AssumeRolePolicyDocument=may)["Role"]["Arn"]
iam.put_role_policy(RoleName="r", PolicyName="p", PolicyDocument=may)
passing = client("sts", **keys).assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
print(json.dumps([url, keys["aws_access_key_id"], keys["aws_secret_access_key"],
                  *(passing[name] for name in ("AccessKeyId", "SecretAccessKey", "SessionToken"))]),
      flush=True)
sys.stdin.read()
"""

    @contextlib.contextmanager
    def moto(self, root):
        """Serves the files below root as s3://bucket. Yields the environments of a user who may
        read them, and of a user with a role's token."""
        with subprocess.Popen([PYTHON, "-c", self.SERVER, root, str(self.PAGE)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, env=self.env) as server:
            told = next(line for line in server.stdout if line.startswith("["))  # after its own log
            url, key, secret, passing, its_secret, token = json.loads(told)
            env = {**self.env, "AWS_ENDPOINT_URL": url}
            try:
                yield ({**env, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret},
                       {**env, "AWS_ACCESS_KEY_ID": passing, "AWS_SECRET_ACCESS_KEY": its_secret,
                        "AWS_SESSION_TOKEN": token})
            finally:
                server.stdin.close()

    def test_reads_pages_of_odd_keys_with_the_right_secret_or_token_and_not_with_a_wrong_one(self):
        files = [path for path in self.bucket().rglob("*") if path.is_file()]
        self.assertGreater(len(files), 2 * self.PAGE)
        local = self.prints(self.bucket(), cache=self.scratch / "local")
        with self.moto(self.far / "bucket") as (env, role):
            self.assertEqual(self.prints("s3://bucket/a set", env=env), local)
            wrong = "wrong" + env["AWS_SECRET_ACCESS_KEY"][5:]
            self.assert_refused("s3://bucket/a set", 66, names="403",
                                env={**env, "AWS_SECRET_ACCESS_KEY": wrong})
            self.cache = self.scratch / "cache of a role"  # what was read is not read from there
            self.assertEqual(self.prints("s3://bucket/a set", env=role), local)
            turned = role["AWS_SESSION_TOKEN"][::-1]
            self.assert_refused("s3://bucket/a set", 66, names="InvalidToken",
                                env={**role, "AWS_SESSION_TOKEN": turned})

    def test_a_bucket_of_moto_could_hold_a_run(self):
        (self.far / "bucket").mkdir(parents=True)
        with self.moto(self.far / "bucket") as (env, role):
            for each in (env, role):
                done = lockstep("store", "check", "s3://bucket/run s", env=each)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual({line.split()[0] for line in done.stdout.splitlines()[:-1]},
                                 {"good"}, done.stdout)

    def test_weights_to_start_from_come_out_of_a_bucket(self):
        data = synthetic_dataset(self.scratch / "data", classes=10)

        def job(name, **more):
            return self.job(data, name=f"{name}.yaml", **{
                "model": {"name": "cnn"}, "train": {"global_batch": 60, "slots": 4, "max_steps": 2},
                "data": {"train": {"path": str(data)}, "cache_dir": str(self.cache)}, **more})

        first = self.finish(job("first"), "--workers", 1, name="first")
        place = self.far / "bucket/weights of a run/model.safetensors"
        place.parent.mkdir(parents=True)
        place.write_bytes(newest_weights(first).read_bytes())
        url = "s3://bucket/weights of a run/model.safetensors"
        begun = job("begun", model={"name": "cnn", "init": url}, optimizer=STILL)
        with self.moto(self.far / "bucket") as (env, _):
            run = self.finish(begun, "--workers", 2, name="begun", env=env)
            assert_same_weights(self, run, tensors_in(place)[0])
            nowhere = job("nowhere", model={"name": "cnn", "init": url + "x"})
            self.assert_fails(self.start(nowhere, name="nowhere", env=env), 66, names=url + "x")


if __name__ == "__main__":
    unittest.main()
