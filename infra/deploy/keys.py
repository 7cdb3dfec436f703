"""The deployment's own secrets, in one secret of Secrets Manager."""

import json
import secrets
import subprocess

import boto3
from botocore.exceptions import ClientError

FIELDS = ["masterKey", "previousMasterKey", "accessTokenKey", "paymentKey", "otherPaymentKey", "originSecret"]


def one_line(pem):
    """As a variable of a function has it."""
    return pem.strip().replace("\n", "\\n")


def made(jari):
    """New ones. A predecessor that there never was is another random one: whatever it signs, nobody has."""
    keys = json.loads(subprocess.run([jari, "keygen", "--json"], check=True, capture_output=True, text=True).stdout)
    random = {name: secrets.token_hex(32) for name in ("paymentKey", "otherPaymentKey", "originSecret")}
    return {
        "masterKey": keys["masterKey"],
        "previousMasterKey": secrets.token_hex(32),
        "accessTokenKey": one_line(keys["accessTokenKey"]),
        "accessTokenPublicKey": one_line(keys["accessTokenPublicKey"]),
        "previousAccessTokenPublicKey": "",
        **random,
    }


def ensure(name, jari):
    """The secret as it is, made where it is missing. Answers the two public keys, current and previous."""
    client = boto3.client("secretsmanager")
    try:
        values = json.loads(client.get_secret_value(SecretId=name)["SecretString"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        values = made(jari)
        client.create_secret(Name=name, SecretString=json.dumps(values), Description="Keys of Jari; docs/keys.md")
        print(f"deploy: made the secret {name}")
    missing = [field for field in [*FIELDS, "accessTokenPublicKey"] if not values.get(field)]
    if missing:
        raise SystemExit(f"deploy: the secret {name} lacks {', '.join(missing)}")
    return values["accessTokenPublicKey"], values.get("previousAccessTokenPublicKey", "")
