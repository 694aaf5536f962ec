"""A bucket of moto, which imitates Amazon's services, with its authentication switched on. It is not
installed with the other tests' needs: python3 -m venv V; V/bin/pip install 'moto[s3,server]' boto3;
LOCKSTEP_MOTO_PYTHON=V/bin/python."""
import json
import os
import shutil
import subprocess
import unittest

from sources_test import SourcesTest


@unittest.skipUnless(os.environ.get("LOCKSTEP_MOTO_PYTHON"),
                     "LOCKSTEP_MOTO_PYTHON does not name a Python with moto[s3,server] and boto3")
@unittest.skipUnless(shutil.which("cjpeg"), "cjpeg is not installed (Debian: libjpeg-turbo-progs)")
class Moto(SourcesTest):

    SERVER = """
import os, sys
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"  # to make the user, its policy, key and bucket
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
iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps({"Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}))
key = iam.create_access_key(UserName="u")["AccessKey"]
keys = dict(aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
s3 = client("s3", **keys)
s3.create_bucket(Bucket="bucket")
root = pathlib.Path(sys.argv[1])
for path in root.rglob("*"):
    if path.is_file():
        s3.put_object(Bucket="bucket", Key=str(path.relative_to(root)), Body=path.read_bytes())
print(json.dumps([url, *keys.values()]), flush=True)
sys.stdin.read()
"""

    def test_reads_with_the_right_secret_and_not_with_a_wrong_one(self):
        local = self.prints(self.bucket(), cache=self.scratch / "local")
        with subprocess.Popen([os.environ["LOCKSTEP_MOTO_PYTHON"], "-c", self.SERVER,
                               self.far / "bucket"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, env=self.env) as moto:
            url, key, secret = json.loads(  # behind what the server says itself
                next(line for line in moto.stdout if line.startswith("[")))
            env = {**self.env, "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": key,
                   "AWS_SECRET_ACCESS_KEY": secret}
            self.assertEqual(self.prints("s3://bucket/a set", env=env), local)
            text = self.inspect("s3://bucket/a set", expect=66,
                                env={**env, "AWS_SECRET_ACCESS_KEY": "wrong" + secret[5:]})
            self.assertIn("403", text)
            moto.stdin.close()


if __name__ == "__main__":
    unittest.main()
