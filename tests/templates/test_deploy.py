"""What make deploy does beside SAM, against moto."""

import contextlib
import io
import json
import os
import sys
import unittest
from unittest import mock

os.environ.setdefault("AWS_DEFAULT_REGION", "ap-northeast-2")
os.environ.update(AWS_ACCESS_KEY_ID="local", AWS_SECRET_ACCESS_KEY="local")

import boto3
from moto import mock_aws

import stacks

sys.path.insert(0, str(stacks.ROOT / "infra/deploy"))

import cost
import database
import deploy
import keys
import page

KEYGEN = json.dumps(
    {"masterKey": "m" * 64, "accessTokenKey": "-----A\nB-----\n", "accessTokenPublicKey": "-----P\nQ-----\n", "kid": "k"}
)


class Deploy(unittest.TestCase):
    def test_each_environment_names_parameters_that_there_are(self):
        declared = stacks.read("template.yaml")["Parameters"]
        for environment in ("dev", "prod"):
            stack, given = deploy.settings(environment)
            self.assertTrue(stack.startswith("jari"))
            self.assertLessEqual(set(given), set(declared))
            for name, value in given.items():
                allowed = declared[name].get("AllowedValues", [value])
                self.assertIn(value, [str(one) for one in allowed], name)
        with self.assertRaises(SystemExit):
            deploy.settings("nowhere")

    def test_it_never_builds_by_half(self):
        self.assertNotIn("cached = true\n", (stacks.ROOT / "samconfig.toml").read_text(encoding="utf-8"))

    def test_what_it_costs_is_told(self):
        _, dev = deploy.settings("dev")
        _, prod = deploy.settings("prod")
        total = {name: sum(dollars or 0 for _, dollars in cost.rows(given)) for name, given in (("dev", dev), ("prod", prod))}
        self.assertLess(total["dev"], total["prod"])
        brought = {"SubnetIds": "s", "RedisSecret": "r", "DatabaseSecret": "d"}
        self.assertLess(sum(dollars or 0 for _, dollars in cost.rows(brought)), total["dev"])
        instances = prod | {"PollInstances": "true"}
        self.assertGreater(sum(dollars or 0 for _, dollars in cost.rows(instances)), total["prod"] + 200)
        for line in cost.report(prod).splitlines() + cost.report(instances).splitlines():
            self.assertLessEqual(len(line), 84, line)
        self.assertIn("?", cost.report({"CacheNodeType": "cache.x9.huge"}))

    def test_without_an_account_it_tells_what_it_would_make_and_does_nothing(self):
        nobody = {**os.environ, "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CONFIG_FILE": "/dev/null"}
        nobody |= {"AWS_EC2_METADATA_DISABLED": "true"}
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del nobody[name]
        with (
            mock.patch.dict(os.environ, nobody, clear=True),
            mock.patch.object(deploy.subprocess, "run") as run,
            contextlib.redirect_stdout(io.StringIO()) as said,
            self.assertRaises(SystemExit) as ended,
        ):
            deploy.main(["dev", "--yes"])
        self.assertIn(cost.report(deploy.settings("dev")[1]), said.getvalue())
        self.assertRegex(str(ended.exception), "^deploy: nothing was done: no account")
        run.assert_not_called()

    @mock_aws
    def test_keys_are_made_once_and_whole(self):
        with mock.patch.object(keys.subprocess, "run", return_value=mock.Mock(stdout=KEYGEN)) as keygen:
            first = keys.ensure("jari/keys", "jari")
            again = keys.ensure("jari/keys", "jari")
        self.assertEqual(keygen.call_count, 1)
        self.assertEqual(first, again)
        self.assertEqual(first, (r"-----P\nQ-----", ""))
        values = json.loads(boto3.client("secretsmanager").get_secret_value(SecretId="jari/keys")["SecretString"])
        needed = (stacks.ROOT / "template.yaml").read_text(encoding="utf-8")
        for name in keys.FIELDS:
            self.assertIn(f"SecretString:{name}", needed + (stacks.ROOT / "infra/web.yaml").read_text(encoding="utf-8"))
            self.assertGreaterEqual(len(values[name]), 14)
        del values["originSecret"]
        boto3.client("secretsmanager").put_secret_value(SecretId="jari/keys", SecretString=json.dumps(values))
        with self.assertRaises(SystemExit):
            keys.ensure("jari/keys", "jari")

    @mock_aws
    def test_users_are_made_and_a_strange_password_is_refused(self):
        client = boto3.client("secretsmanager")
        arns = {}
        for user, password in (("jari_owner", "Secret1"), ("jari_rows", "Secret2")):
            made = client.create_secret(Name=user, SecretString=json.dumps({"username": user, "password": password}))
            arns[user] = made["ARN"]
        told = []
        with mock.patch.object(database, "run", lambda client, cluster, master, statement: told.append(statement)):
            database.ensure_users("cluster", "master", arns["jari_owner"], arns["jari_rows"])
        self.assertIn("ALTER ROLE jari_owner LOGIN PASSWORD 'Secret1'", told)
        self.assertIn("ALTER ROLE jari_rows LOGIN PASSWORD 'Secret2'", told)
        # After a change of passwords it is the clone that has the new one.
        clone = {"username": "jari_rows_clone", "password": "x"}
        client.put_secret_value(SecretId=arns["jari_rows"], SecretString=json.dumps(clone))
        self.assertIsNone(database.password_statement(arns["jari_rows"]))
        strange = {"username": "jari_rows", "password": "a'b"}
        client.put_secret_value(SecretId=arns["jari_rows"], SecretString=json.dumps(strange))
        with self.assertRaises(SystemExit):
            database.password_statement(arns["jari_rows"])

    @mock_aws
    def test_the_page_is_put_there_as_it_is_served(self):
        client = boto3.client("s3")
        client.create_bucket(
            Bucket="pages", CreateBucketConfiguration={"LocationConstraint": os.environ["AWS_DEFAULT_REGION"]}
        )
        client.put_object(Bucket="pages", Key="gone.js", Body=b"")
        count = page.upload(stacks.ROOT / "web", "pages")
        there = [found["Key"] for found in client.list_objects_v2(Bucket="pages")["Contents"]]
        self.assertEqual(len(there), count)
        self.assertIn("index.html", there)
        self.assertNotIn("gone.js", there)
        kinds = {key: client.head_object(Bucket="pages", Key=key)["ContentType"] for key in ("index.html", "jari.js")}
        self.assertEqual(kinds, {"index.html": "text/html; charset=utf-8", "jari.js": "text/javascript; charset=utf-8"})


if __name__ == "__main__":
    unittest.main(verbosity=1)
