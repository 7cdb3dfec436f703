"""PostgreSQL's two users, made by the master user through the Data API: no way into the network is needed."""

import json
import time

import boto3
from botocore.exceptions import ClientError

WAKE_TIMEOUT_S = 120
# The owner makes tables; what it makes, the other may read and write, and nothing else. Repeating it changes nothing.
STATEMENTS = [
    "DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'jari_owner') THEN "
    "CREATE ROLE jari_owner LOGIN; END IF; END $do$",
    "DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'jari_rows') THEN "
    "CREATE ROLE jari_rows LOGIN; END IF; END $do$",
    "GRANT jari_owner TO CURRENT_USER",
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "GRANT CREATE, USAGE ON SCHEMA public TO jari_owner",
    "GRANT USAGE ON SCHEMA public TO jari_rows",
    "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO jari_rows",
    "ALTER DEFAULT PRIVILEGES FOR ROLE jari_owner IN SCHEMA public GRANT SELECT, INSERT, UPDATE ON TABLES TO jari_rows",
]
# Secrets Manager makes passwords of letters and digits alone; anything else is refused here, not quoted.
PASSWORD_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def password_statement(secret):
    """Gives a user the password that its secret has, unless it is a clone's turn."""
    values = json.loads(boto3.client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"])
    user, password = values["username"], values["password"]
    if user not in ("jari_owner", "jari_rows"):
        return None
    if not password or not set(password) <= PASSWORD_LETTERS:
        raise SystemExit(f"deploy: the password of {user} has other characters than letters and digits")
    return f"ALTER ROLE {user} LOGIN PASSWORD '{password}'"


def ensure_users(cluster, master, owner, rows):
    """Makes both users and gives them their passwords."""
    client = boto3.client("rds-data")
    passwords = [statement for secret in (owner, rows) if (statement := password_statement(secret))]
    for statement in [*STATEMENTS[:2], *passwords, *STATEMENTS[2:]]:
        run(client, cluster, master, statement)


def run(client, cluster, master, statement):
    """One statement. A database that sleeps is waited for."""
    deadline = time.monotonic() + WAKE_TIMEOUT_S
    while True:
        try:
            client.execute_statement(resourceArn=cluster, secretArn=master, database="jari", sql=statement)
            return
        except ClientError as error:
            if error.response["Error"]["Code"] != "DatabaseResumingException" or time.monotonic() > deadline:
                raise
            time.sleep(5)
