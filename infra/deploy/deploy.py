"""`make deploy`: says what a deployment will make and cost, then builds, deploys, and does what a template cannot.

Usage: deploy.py ENVIRONMENT (dev or prod, of samconfig.toml) [--yes] [NAME=VALUE…] (parameters of template.yaml)
"""

import os
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

import cost
import database
import keys
import page

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / os.environ.get("JARI_VENV_SAM", "target/venv-sam")
# The root certificates that RDS signs its servers' with, by region.
RDS_ROOTS = "https://truststore.pki.rds.amazonaws.com/{region}/{region}-bundle.pem"
FETCH_TIMEOUT_S = 20
# What fits into a function's variables beside everything else.
MAX_CA_CHARACTERS = 2_000


def settings(environment):
    """The stack's name and parameters of an environment."""
    config = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))
    if environment not in config or "deploy" not in config[environment]:
        raise SystemExit(f"deploy: samconfig.toml has no environment {environment}")
    parameters = config[environment]["deploy"]["parameters"]
    given = dict(one.split("=", 1) for one in parameters.get("parameter_overrides", []))
    return parameters["stack_name"], given


def root_certificate(bundle):
    """The one for RSA keys of 2048 bits, which Aurora's servers have unless told otherwise."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding

    for certificate in x509.load_pem_x509_certificates(bundle):
        key = certificate.public_key()
        if isinstance(key, rsa.RSAPublicKey) and key.key_size == 2048:
            pem = keys.one_line(certificate.public_bytes(Encoding.PEM).decode())
            if len(pem) <= MAX_CA_CHARACTERS:
                return pem
    raise SystemExit("deploy: RDS' bundle has no certificate for RSA of 2048 bits")


def rds_root(region):
    with urllib.request.urlopen(RDS_ROOTS.format(region=region), timeout=FETCH_TIMEOUT_S) as answer:
        return root_certificate(answer.read())


def account():
    """Whom it would be deployed for, and where."""
    try:
        return boto3.client("sts").get_caller_identity()["Account"], boto3.Session().region_name
    except (BotoCoreError, ClientError) as error:
        raise SystemExit(f"deploy: nothing was done: no account, for AWS says: {error}") from error


def outputs(stack):
    """What the stack tells, by name."""
    told = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
    return {output["OutputKey"]: output["OutputValue"] for output in told}


def invoke_admin(function, payload):
    answer = boto3.client("lambda").invoke(FunctionName=function, Payload=payload)
    body = answer["Payload"].read().decode()
    if answer.get("FunctionError") or '"reply"' not in body:
        raise SystemExit(f"deploy: the admin function failed: {body}")
    return body


def confirm(question):
    if not sys.stdin.isatty():
        raise SystemExit("deploy: no terminal to ask; say --yes")
    if input(f"{question} [y/N] ").strip().lower() != "y":
        raise SystemExit("deploy: nothing was done")


def sam_deploy(environment, parameters):
    overrides = [f'{name}="{value}"' for name, value in parameters.items()]
    command = [VENV / "bin/sam", "deploy", "--config-env", environment, "--parameter-overrides", *overrides]
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True)


def after(told):
    """Users, tables, page."""
    if "DatabaseClusterArn" in told:
        names = ("DatabaseClusterArn", "DatabaseMasterSecret", "DatabaseOwnerSecret", "DatabaseRowsSecret")
        database.ensure_users(*(told[name] for name in names))
    print("deploy: tables:", invoke_admin(told["AdminFunction"], b'{"command":"migrate"}'))
    if "PagesBucket" in told:
        print(f"deploy: {page.upload(ROOT / 'web', told['PagesBucket'])} files of the page")
        page.invalidate(told["Distribution"])


def main(arguments):
    environment = next((word for word in arguments if "=" not in word and not word.startswith("-")), "dev")
    stack, parameters = settings(environment)
    parameters |= dict(word.split("=", 1) for word in arguments if "=" in word and not word.startswith("-"))
    print(f"deploy: {environment}, the stack {stack}\n")
    print(cost.report(parameters))
    number, region = account()
    if "--yes" not in arguments:
        confirm(f"Deploy it in account {number}, {region}?")
    subprocess.run([ROOT / "infra/local/sam-build.sh"], cwd=ROOT, check=True)
    jari = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "local/jari"
    public, previous = keys.ensure(parameters["KeysSecret"], jari)
    parameters |= {"Release": str(int(time.time())), "AccessTokenPublicKey": public}
    if previous:
        parameters["PreviousAccessTokenKey"] = previous
    if "DatabaseSecret" not in parameters:
        parameters.setdefault("DatabaseCa", rds_root(region))
    sam_deploy(environment, parameters)
    told = outputs(stack)
    after(told)
    for name in ("PageUrl", "Url", "SocketUrl", "AdminFunction"):
        if name in told:
            print(f"{name}: {told[name]}")


if __name__ == "__main__":
    main(sys.argv[1:])
