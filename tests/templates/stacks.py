"""The templates as written, and the deployed one as SAM's own transform makes it, without AWS."""

import copy
import os
import re
from pathlib import Path

os.environ.setdefault("AWS_DEFAULT_REGION", "ap-northeast-2")

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

ROOT = Path(__file__).resolve().parents[2]
NESTED = ["network", "cache", "database", "web", "observability"]


class NoManagedPolicies:
    """No policy is named by its name alone: SAM has nothing to look up."""

    def load(self):
        return {}


def read(path):
    """A template, and its text."""
    return yaml_parse((ROOT / path).read_text(encoding="utf-8"))


def templates():
    """Every template of the deployment by its path."""
    paths = ["template.yaml", *(f"infra/{name}.yaml" for name in NESTED)]
    return {path: read(path) for path in paths if (ROOT / path).exists()}


def parameters(**given):
    """What a deployment passes: defaults, and values where there are none."""
    declared = read("template.yaml")["Parameters"]
    return {name: str(given.get(name, about.get("Default", "1"))) for name, about in declared.items()}


def transformed(**given):
    """The deployed template after the transform, by the parameters given."""
    template = copy.deepcopy(read("template.yaml"))
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # What `sam package` puts in place of the folder.
            resource["Properties"]["CodeUri"] = "s3://bucket/code"
    return transform(template, parameters(**given), NoManagedPolicies())


def resources(template, *types):
    """Resources of these types by their names; all where none is named."""
    found = template["Resources"].items()
    return {name: body for name, body in found if not types or body["Type"] in types}


def resolved(template, value, given):
    """A value as these parameters have it, where !If has chosen."""
    if isinstance(value, list):
        found = [resolved(template, inner, given) for inner in value]
        return [inner for inner in found if inner != {"Ref": "AWS::NoValue"}]
    if not isinstance(value, dict):
        return value
    if list(value) == ["Fn::If"]:
        condition, then, otherwise = value["Fn::If"]
        return resolved(template, then if holds(template, condition, given) else otherwise, given)
    return {key: resolved(template, inner, given) for key, inner in value.items()}


def holds(template, condition, given):
    """Whether a condition does, by its name or as it is written."""

    def text(value):
        if isinstance(value, dict) and "Fn::Join" in value:
            return text(value["Fn::Join"][1])
        return given[value["Ref"]] if isinstance(value, dict) else str(value)

    if isinstance(condition, str):
        return holds(template, template["Conditions"][condition], given)
    ((key, inner),) = condition.items()
    if key == "Fn::Equals":
        return text(inner[0]) == text(inner[1])
    if key == "Condition":
        return holds(template, inner, given)
    each = [holds(template, one, given) for one in inner]
    return {"Fn::Not": not each[0], "Fn::And": all(each), "Fn::Or": any(each)}[key]


def made(template, **parameters):
    """Resources that these parameters make, as they make them."""
    given = {name: str(about.get("Default", "1")) for name, about in template["Parameters"].items()} | parameters
    found = template["Resources"].items()
    return {
        name: resolved(template, body, given)
        for name, body in found
        if "Condition" not in body or holds(template, body["Condition"], given)
    }


def names_in(value):
    """Everything that a value refers to."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "Ref":
                yield inner
            elif key == "Fn::GetAtt":
                yield inner.split(".")[0] if isinstance(inner, str) else inner[0]
            elif key == "Fn::Sub":
                text = inner if isinstance(inner, str) else inner[0]
                yield from (name.split(".")[0] for name in re.findall(r"\$\{([^!}]+)\}", text))
                yield from names_in(inner if isinstance(inner, list) else [])
            else:
                yield from names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names_in(inner)


def texts_in(value):
    """Every text in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)


def listed(value):
    """A value that may stand for a list of one."""
    return value if isinstance(value, list) else [value]


def statements(template):
    """Every statement of every policy in a template, with the name of its resource."""
    for name, resource in resources(template).items():
        properties = resource.get("Properties", {})
        documents = [policy["PolicyDocument"] for policy in properties.get("Policies", []) if "PolicyDocument" in policy]
        documents += [properties[key] for key in ("PolicyDocument", "KeyPolicy") if key in properties]
        for document in documents:
            for statement in listed(document["Statement"]):
                yield name, statement
