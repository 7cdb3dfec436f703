"""What the templates must never lose: least privilege, encryption, alarms, and that the transform leaves nothing out.

SAM drops colliding events without a word and `sam validate --lint` passes, so all of it is read from the transformed
template.
"""

import json
import re
import unittest

import stacks

# Statements that name everything, and why.
WILDCARDS = {
    ("template.yaml", "VariablesKey", "kms:*"): "The account's own policies say who may use the key.",
    ("template.yaml", "QueuesByTls", "sqs:*"): "It refuses.",
    ("infra/observability.yaml", "AlarmKey", "kms:*"): "The account's own policies say who may use the key.",
    ("infra/observability.yaml", "AlarmKey", "kms:GenerateDataKey*"): "What CloudWatch asks for; this account's alone.",
    ("infra/web.yaml", "PagesReaders", "s3:*"): "It refuses.",
    ("infra/network.yaml", "RefusedRole", "logs:DescribeLogGroups"): "It names no one group.",
}
# Managed policies that name everything, and why.
MANAGED = {
    "service-role/AWSLambdaBasicExecutionRole": "Writes logs; SAM gives it to every function.",
    "service-role/AWSLambdaVPCAccessExecutionRole": "Lambda itself joins the function to its network with it.",
    "service-role/AWSCodeDeployRoleForLambda": "What CodeDeploy needs to shift an alias.",
    "policy/AWSLambdaManagedEC2ResourceOperator": "Lambda starts and tags its own instances with it.",
}
ENCRYPTED = {
    "AWS::SQS::Queue": ("SqsManagedSseEnabled", True),
    "AWS::ElastiCache::ReplicationGroup": ("AtRestEncryptionEnabled", True),
    "AWS::RDS::DBCluster": ("StorageEncrypted", True),
}
KEEPS_DATA = {
    "AWS::SQS::Queue",
    "AWS::ElastiCache::ReplicationGroup",
    "AWS::RDS::DBCluster",
    "AWS::RDS::DBInstance",
    "AWS::S3::Bucket",
    "AWS::SecretsManager::Secret",
    "AWS::KMS::Key",
    "AWS::Logs::LogGroup",
    "AWS::CloudFormation::Stack",
}
# Functions that have the key that signs.
SIGNING = {"Join", "Poll", "PollOnInstances", "HoldSeat"}
# What makes the parameter PollInstances: these, and what SAM makes of them.
INSTANCES = ("PollOnInstances", "PollCapacity")
# Requests at once that Lambda gives a process on instances, for each of its vCPUs.
AT_ONCE = 64
# A stack may have no more dynamic references.
DYNAMIC_REFERENCES = 60
FUNCTIONS_VARIABLES_BYTES = 4096


def functions(template):
    return stacks.resources(template, "AWS::Lambda::Function")


class Policy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.written = stacks.read("template.yaml")
        cls.templates = stacks.templates()
        cls.deployed = stacks.transformed()
        cls.all = {**cls.templates, "template.yaml": cls.deployed}

    def test_a_wildcard_has_a_reason(self):
        met = set()
        for path, template in self.all.items():
            for name, statement in stacks.statements(template):
                for action in stacks.listed(statement["Action"]):
                    texts = [action, *stacks.texts_in(statement.get("Resource", []))]
                    if not any(text == "*" or text.endswith((":*", "/*")) for text in texts):
                        continue
                    key = (path, name, action)
                    if key in WILDCARDS:
                        met.add(key)
                    elif self.is_narrowed(statement, action):
                        continue
                    else:
                        self.fail(f"{path}: {name} may {action} on {statement.get('Resource')} without a reason")
        self.assertEqual(met, {key for key in WILDCARDS if key[0] in self.all}, "a reason for what is not there")

    @staticmethod
    def is_narrowed(statement, action):
        """A named action on what lies below a named resource, or is this account's."""
        resources = list(stacks.texts_in(statement.get("Resource", [])))
        return not action.endswith("*") and (
            any("@connections/*" in text or text == "${Pages.Arn}/*" for text in resources)
            # Policies of a key or an endpoint, whose resource is itself.
            or "aws:PrincipalAccount" in json.dumps(statement.get("Condition", {}))
            or "aws:SourceAccount" in json.dumps(statement.get("Condition", {}))
        )

    def test_managed_policies_are_known(self):
        for path, template in self.all.items():
            for name, role in stacks.resources(template, "AWS::IAM::Role").items():
                for policy in role["Properties"].get("ManagedPolicyArns", []):
                    texts = list(stacks.texts_in(policy))
                    known = any(text.endswith(policy) for text in texts for policy in MANAGED)
                    self.assertTrue(known, f"{path}: {name} has {texts}")

    def test_each_function_has_a_role_of_its_own(self):
        roles = [next(stacks.names_in(body["Properties"]["Role"])) for body in functions(self.deployed).values()]
        self.assertEqual(len(roles), len(set(roles)))

    def test_stores_are_encrypted_and_private(self):
        for path, template in self.all.items():
            for name, body in stacks.resources(template).items():
                properties = body.get("Properties", {})
                if body["Type"] in ENCRYPTED:
                    key, value = ENCRYPTED[body["Type"]]
                    self.assertEqual(properties.get(key), value, f"{path}: {name}")
                if body["Type"] == "AWS::ElastiCache::ReplicationGroup":
                    self.assertEqual(properties["TransitEncryptionMode"], "required")
                    self.assertIn("AuthToken", properties)
                if body["Type"] == "AWS::RDS::DBInstance":
                    self.assertIs(properties["PubliclyAccessible"], False, f"{path}: {name}")
                if body["Type"] == "AWS::RDS::DBClusterParameterGroup":
                    self.assertEqual(properties["Parameters"]["rds.force_ssl"], "1")
                if body["Type"] == "AWS::S3::Bucket":
                    self.assertIn("BucketEncryption", properties)
                    self.assertEqual(set(properties["PublicAccessBlockConfiguration"].values()), {True})
                if body["Type"] == "AWS::EC2::SecurityGroupIngress":
                    self.assertIn("SourceSecurityGroupId", properties, f"{path}: {name} lets an address in")

    def test_data_outlives_a_mistake(self):
        for path, template in self.templates.items():
            for name, body in stacks.resources(template).items():
                if body["Type"] in KEEPS_DATA:
                    for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
                        self.assertIn(policy, body, f"{path}: {name} does not say what happens to it")
                if body["Type"] in ("AWS::ElastiCache::ReplicationGroup", "AWS::RDS::DBCluster"):
                    self.assertEqual(body["DeletionPolicy"], "Snapshot", f"{path}: {name}")
        for name in ("Bookings", "Line", "BookingsDeadLetters", "LineDeadLetters"):
            self.assertEqual(self.written["Resources"][name]["DeletionPolicy"], "Retain")

    def test_secrets_stay_secret(self):
        for path, template in self.all.items():
            for name, output in template.get("Outputs", {}).items():
                self.assertNotIn("resolve:", json.dumps(output), f"{path}: output {name}")
            for name, parameter in template.get("Parameters", {}).items():
                is_secret = re.search(r"Password|Token$|PrivateKey|MasterKey", name)
                self.assertFalse(is_secret and not parameter.get("NoEcho"), f"{path}: parameter {name}")
        count = json.dumps(self.deployed["Resources"]).count("{{resolve:")
        self.assertLessEqual(count, DYNAMIC_REFERENCES)

    def test_variables_are_known_and_no_function_has_more_than_it_reads(self):
        config = (stacks.ROOT / "crates/bootstrap/src/config.rs").read_text(encoding="utf-8")
        rows = [line.split("|") for line in config.splitlines() if line.startswith("//! | `")]
        known = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row[1])}
        for name, body in functions(self.deployed).items():
            variables = body["Properties"]["Environment"]["Variables"]
            self.assertIn("KmsKeyArn", body["Properties"], f"{name}'s variables are there to see")
            self.assertLessEqual(set(variables), known, f"{name} is given what nobody reads")
            size = sum(len(key) + len(json.dumps(value)) for key, value in variables.items())
            self.assertLess(size, FUNCTIONS_VARIABLES_BYTES, f"{name}'s variables")
            signs = "accessTokenKey" in json.dumps(variables)
            self.assertEqual(signs, name in SIGNING, f"{name} and the key that signs")
            has_database = "DATABASE_URL" in variables
            self.assertEqual(has_database, name in ("Persist", "Relay", "Admin"), f"{name} and PostgreSQL")

    def test_every_function_has_an_alarm(self):
        watched = set()
        for alarm in stacks.resources(self.deployed, "AWS::CloudWatch::Alarm").values():
            watched.update(stacks.names_in(alarm))
        for name, stack in stacks.resources(self.deployed, "AWS::CloudFormation::Stack").items():
            if name == "Observability":
                watched.update(stacks.names_in(stack))
        for name in functions(self.deployed):
            self.assertIn(name, watched, f"no alarm watches {name}")

    def test_every_event_is_there_after_the_transform(self):
        for name, body in stacks.resources(self.written, "AWS::Serverless::Function").items():
            for event, about in body["Properties"].get("Events", {}).items():
                resource = self.deployed["Resources"].get(f"{name}{event}")
                if about["Type"] == "ScheduleV2":
                    self.assertEqual(resource["Type"], "AWS::Scheduler::Schedule")
                    self.assertEqual(resource["Properties"]["Target"]["RetryPolicy"]["MaximumRetryAttempts"], 0)
                elif about["Type"] == "SQS":
                    self.assertEqual(resource["Type"], "AWS::Lambda::EventSourceMapping")
                else:
                    self.assertEqual(about["Type"], "HttpApi", f"{name}: {event}")
        concurrency = functions(self.deployed)["Admit"]["Properties"]["ReservedConcurrentExecutions"]
        self.assertGreaterEqual(concurrency, 3, "two runs overlap, and a third begins")

    def test_routes_are_those_of_the_contract(self):
        contract = stacks.read("openapi.yaml")
        documented = {
            (method.upper(), path)
            for path, item in contract["paths"].items()
            for method in item
            if method in ("get", "post", "delete", "put", "patch")
        }
        declared = set()
        for name, body in stacks.resources(self.written, "AWS::Serverless::Function").items():
            for event in body["Properties"].get("Events", {}).values():
                if event["Type"] == "HttpApi" and "Path" in event["Properties"]:
                    declared.add((event["Properties"]["Method"].upper(), event["Properties"]["Path"]))
        paths = self.deployed["Resources"]["Api"]["Properties"]["Body"]["paths"]
        routed = {(method.upper(), path) for path, item in paths.items() for method in item}
        routed.remove(("X-AMAZON-APIGATEWAY-ANY-METHOD", "/$default"))
        self.assertEqual(documented, declared)
        self.assertEqual(documented, routed)

    def test_everything_calls_the_alias(self):
        aliases = {
            next(stacks.names_in(body["Properties"]["FunctionName"])): name
            for name, body in stacks.resources(self.deployed, "AWS::Lambda::Alias").items()
        }
        self.assertEqual(set(aliases), set(functions(self.deployed)))
        callers = {}
        for path, item in self.deployed["Resources"]["Api"]["Properties"]["Body"]["paths"].items():
            for method, operation in item.items():
                callers[f"{method} {path}"] = operation["x-amazon-apigateway-integration"]["uri"]
        for name, body in stacks.resources(self.deployed, "AWS::ApiGatewayV2::Integration").items():
            callers[name] = body["Properties"]["IntegrationUri"]
        for name, body in stacks.resources(self.deployed, "AWS::Lambda::EventSourceMapping").items():
            callers[name] = body["Properties"]["FunctionName"]
        for name, body in stacks.resources(self.deployed, "AWS::Scheduler::Schedule").items():
            callers[name] = body["Properties"]["Target"]["Arn"]
        for name, body in stacks.resources(self.deployed, "AWS::Lambda::Permission").items():
            callers[name] = body["Properties"]["FunctionName"]
        for name, target in callers.items():
            named = set(stacks.names_in(target)) - {"AWS::Partition", "AWS::Region", "FunctionArn"}
            self.assertTrue(named and named <= set(aliases.values()), f"{name} calls {target}")

    def test_polls_lead_to_a_function_that_there_is_and_may_be_called(self):
        for given, function in (("false", "Poll"), ("true", "PollOnInstances")):
            with self.subTest(PollInstances=given):
                made = stacks.made(stacks.transformed(PollInstances=given), PollInstances=given)
                route = made["Api"]["Properties"]["Body"]["paths"]["/api/status/poll"]["get"]
                integration = route["x-amazon-apigateway-integration"]
                self.assertEqual((integration["type"], integration["payloadFormatVersion"]), ("aws_proxy", "2.0"))
                alias = f"{function}Aliaslive"
                self.assertEqual(set(stacks.names_in(integration["uri"])) & set(self.deployed["Resources"]), {alias})
                self.assertEqual(made[alias]["Properties"]["FunctionName"], {"Ref": function})
                self.assertIn(function, made)
                every = [body["Properties"] for body in made.values() if body["Type"] == "AWS::Lambda::Permission"]
                sources = [one["SourceArn"] for one in every if one["FunctionName"] == {"Ref": alias}]
                allows = [text for text in stacks.texts_in(sources) if text.endswith("/GET/api/status/poll")]
                self.assertEqual(len(allows), 1, "API Gateway may not call it")

    def test_nothing_of_instances_is_there_unless_asked_for(self):
        made = {given: stacks.made(self.deployed, PollInstances=given) for given in ("false", "true")}
        ours = {name for name in self.deployed["Resources"] if name.startswith(INSTANCES)}
        self.assertEqual(set(made["true"]) - set(made["false"]), ours)
        for given, there in made.items():
            for name, body in there.items():
                missing = set(stacks.names_in(body)) & set(self.deployed["Resources"]) - set(there)
                self.assertEqual(missing, set(), f"{name} names what is not made with PollInstances={given}")
        network, alarms = self.templates["infra/network.yaml"], self.templates["infra/observability.yaml"]
        self.assertEqual(set(stacks.made(network, CarriesLogs="true")) - set(stacks.made(network)), {"Logs"})
        more = set(stacks.made(alarms, PollOnInstancesFunction="poll")) - set(stacks.made(alarms))
        self.assertEqual(more, {"PollOnInstancesErrors", "PollOnInstancesThrottles"})

    def test_instances_answer_as_poll_does_and_are_bounded(self):
        poll, properties = (functions(self.deployed)[name]["Properties"] for name in ("Poll", "PollOnInstances"))
        self.assertEqual(properties["Environment"], poll["Environment"])
        self.assertNotIn("VpcConfig", properties, "the network is the instances'")
        config = properties["CapacityProviderConfig"]["LambdaManagedInstancesCapacityProviderConfig"]
        cpus = properties["MemorySize"] / 1024 / config["ExecutionEnvironmentMemoryGiBPerVCpu"]
        self.assertLessEqual(config["PerExecutionEnvironmentMaxConcurrency"], AT_ONCE * cpus)
        provider = self.deployed["Resources"]["PollCapacity"]["Properties"]
        self.assertEqual(provider["CapacityProviderScalingConfig"]["MaxVCpuCount"], {"Ref": "PollVCpus"})
        self.assertEqual(provider["VpcConfig"], poll["VpcConfig"])

    def test_a_release_publishes_every_function(self):
        def versions(template):
            return set(stacks.resources(template, "AWS::Lambda::Version"))

        first, second = versions(self.deployed), versions(stacks.transformed(Release="2"))
        self.assertEqual(len(first), len(functions(self.deployed)))
        self.assertEqual(first & second, set(), "functions that a release leaves as they are")
        self.assertEqual(first, versions(stacks.transformed()), "versions that change by themselves")

    def test_a_rollout_is_gradual_for_requests_alone(self):
        template = stacks.transformed(Rollout="Canary10Percent5Minutes")
        for name, group in stacks.resources(template, "AWS::CodeDeploy::DeploymentGroup").items():
            self.assertIn("Canary10Percent5Minutes", json.dumps(group["Properties"]["DeploymentConfigName"]), name)
            self.assertTrue(group["Properties"]["AlarmConfiguration"]["Alarms"], f"{name} does not go back")
        gradual = {
            next(stacks.names_in(alias["Properties"]["FunctionName"]))
            for alias in stacks.resources(template, "AWS::Lambda::Alias").values()
            if "UpdatePolicy" in alias
        }
        others = {"Authorizer", "Admit", "Relay", "Persist", "Push", "Admin"}
        self.assertEqual(gradual, set(functions(template)) - others)

    def test_queues_hand_back_what_failed(self):
        for name, body in stacks.resources(self.deployed, "AWS::Lambda::EventSourceMapping").items():
            properties = body["Properties"]
            self.assertIn("MaximumConcurrency", properties["ScalingConfig"], name)
            # A push that failed perishes: the next one has told more.
            if name != "PushPushes":
                self.assertEqual(properties["FunctionResponseTypes"], ["ReportBatchItemFailures"], name)
        for name in ("Bookings", "Line"):
            self.assertIn("RedrivePolicy", self.deployed["Resources"][name]["Properties"])

    def test_the_access_log_has_no_query_string(self):
        for name in ("ApiApiGatewayDefaultStage",):
            line = self.deployed["Resources"][name]["Properties"]["AccessLogSettings"]["Format"]
            self.assertIsInstance(json.loads(line), dict)
            for variable in re.findall(r"\$context\.([A-Za-z.]+)", line):
                self.assertNotIn(variable, ("path", "requestUri", "queryString", "authorizer.claims"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
