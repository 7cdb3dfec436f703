"""Checks access tokens as any service does that knows their issuer alone, by PyJWT.

usage: oidc.py ISSUER AUDIENCE <TOKENS, a line each
Prints a line for each token: its subject, or the name of the error.
"""

import json
import sys
import urllib.request

import jwt


def main(issuer: str, audience: str) -> None:
    with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=30) as answer:
        configuration = json.load(answer)
    assert configuration["issuer"] == issuer, configuration
    keys = jwt.PyJWKClient(configuration["jwks_uri"], timeout=30)
    for token in sys.stdin.read().splitlines():
        try:
            claims = jwt.decode(
                token,
                keys.get_signing_key_from_jwt(token),
                algorithms=configuration["id_token_signing_alg_values_supported"],
                audience=audience,
                issuer=issuer,
                options={"require": ["iss", "aud", "sub", "iat", "exp"]},
            )
            print(claims["sub"])
        except jwt.PyJWTError as error:
            print(type(error).__name__)


main(*sys.argv[1:])
