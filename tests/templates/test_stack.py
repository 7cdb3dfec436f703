"""The transformed stack, made in moto's CloudFormation as far as that goes."""

import json
import os
import re
import unittest

os.environ.update(AWS_ACCESS_KEY_ID="local", AWS_SECRET_ACCESS_KEY="local")

import boto3
from moto import mock_aws

import stacks

# What moto makes nothing of, or not by an alias, which it does not know.
LEFT_OUT = {"AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping", "AWS::CloudFormation::Stack"}
# What must be there.
MADE = {
    "AWS::Lambda::Function",
    "AWS::Lambda::Version",
    "AWS::IAM::Role",
    "AWS::Logs::LogGroup",
    "AWS::SQS::Queue",
    "AWS::KMS::Key",
}
KEYS = ["masterKey", "previousMasterKey", "accessTokenKey", "paymentKey", "otherPaymentKey", "originSecret"]


def make_secret(name, **values):
    boto3.client("secretsmanager").create_secret(Name=name, SecretString=json.dumps(values))


def own_network():
    ec2 = boto3.client("ec2")
    subnets = [subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    return {"SubnetIds": ",".join(subnets[:2]), "SecurityGroupIds": group}


def create(name, template, parameters):
    """Makes a stack; what it is made of, by type."""
    client = boto3.client("cloudformation")
    client.create_stack(
        StackName=name,
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        Capabilities=["CAPABILITY_IAM"],
    )
    status = client.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
    pages = client.get_paginator("list_stack_resources").paginate(StackName=name)
    made = {}
    for page in pages:
        for resource in page["StackResourceSummaries"]:
            made.setdefault(resource.get("ResourceType"), []).append(resource["LogicalResourceId"])
    return status, made


@mock_aws
class Stack(unittest.TestCase):
    def test_it_is_made_with_a_network_redis_and_postgresql_of_ones_own(self):
        boto3.client("s3").create_bucket(
            Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": os.environ["AWS_DEFAULT_REGION"]}
        )
        boto3.client("s3").put_object(Bucket="bucket", Key="code", Body=b"code")
        make_secret("jari/keys", **{key: "k" * 32 for key in KEYS})
        make_secret("jari/redis", url="rediss://redis", readUrl="rediss://redis")
        make_secret("jari/database", rowsUrl="postgres://rows", ownerUrl="postgres://owner")
        given = {"RedisSecret": "jari/redis", "DatabaseSecret": "jari/database", **own_network()}
        template = stacks.transformed(**given)
        kept = {name: body for name, body in template["Resources"].items() if body["Type"] not in LEFT_OUT}
        declared = {}
        for name, body in kept.items():
            if "Condition" not in body:
                declared.setdefault(body["Type"], []).append(name)
        template = {**template, "Resources": kept}
        template.pop("Rules")
        # Of the nested stacks.
        template["Outputs"] = {
            name: output for name, output in template["Outputs"].items() if set(stacks.names_in(output)) <= set(kept)
        }
        status, made = create("jari", template, stacks.parameters(**given))
        self.assertEqual(status, "CREATE_COMPLETE")
        for kind in MADE:
            self.assertEqual(sorted(made[kind]), sorted(declared[kind]), kind)
        self.check_functions()

    def check_functions(self):
        functions = boto3.client("lambda").list_functions()["Functions"]
        self.assertEqual(len(functions), 15)
        for function in functions:
            name, variables = function["FunctionName"], function["Environment"]["Variables"]
            # Names of nothing stay as they are; the sockets are there, but not in moto.
            left = set(re.findall(r"\$\{(\w+)", json.dumps(variables)))
            self.assertLessEqual(left, {"Sockets"}, name)
            for key in re.findall(r"SecretString:(\w+)", json.dumps(variables)):
                self.assertIn(key, [*KEYS, "url", "readUrl", "rowsUrl", "ownerUrl"], name)


if __name__ == "__main__":
    unittest.main(verbosity=1)
