"""What stands for Microsoft Entra ID: discovery, OpenID configuration and tokens of a service principal.

* discovery of the instance and its metadata, https://learn.microsoft.com/entra/identity-platform/authentication-national-cloud
  and AzureAD/microsoft-authentication-library-for-python:msal/authority.py, which reads them
* OpenID configuration: https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc
* client credentials, request and error: https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
* AADSTS codes: https://learn.microsoft.com/entra/identity-platform/reference-error-codes
* claims: https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference
"""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from .exchange import Answer, Asked, RefusedError

if TYPE_CHECKING:
    from .state import Caller, State

LIFETIME_S = 3599
HOSTS = ("login.microsoftonline.com", "login.microsoft.com", "login.windows.net", "sts.windows.net")
"""Hosts of the public cloud; `localhost` is one more alias, so that the real libraries take it for an instance."""


def answer(asked: Asked, state: State) -> Answer | None:
    """The answer to a request for Entra ID, None for one that is not."""
    parts = asked.path.strip("/").split("/")
    if asked.path.startswith("/v1.0/"):
        # Microsoft Graph, of which `az role assignment list` asks names: an application sees none unless it was given
        # a right. Source: https://learn.microsoft.com/graph/resolve-auth-errors
        refused = {
            "code": "Authorization_RequestDenied",
            "message": "Insufficient privileges to complete the operation.",
        }
        return Answer(403, {"error": refused})
    if asked.path == "/common/discovery/instance":
        return _instance(asked)
    if parts[1:] in (["v2.0", ".well-known", "openid-configuration"], [".well-known", "openid-configuration"]):
        return _configuration(asked, parts[0], state)
    if parts[1:] in (["oauth2", "v2.0", "token"], ["oauth2", "token"]) and asked.method == "POST":
        return _token(asked, parts[0], state)
    return None


def _instance(asked: Asked) -> Answer:
    endpoint = asked.query.get("authorization_endpoint", "")
    tenant = endpoint.removeprefix("https://").split("/")[1] if "/" in endpoint.removeprefix("https://") else "common"
    local = asked.headers.get("x-local-authority", asked.base)
    at = local if endpoint.startswith("https://localhost") else asked.base
    alias = {"preferred_network": "login.microsoftonline.com", "preferred_cache": "login.windows.net"}
    return Answer(
        200,
        {
            "tenant_discovery_endpoint": f"{at}/{tenant}/v2.0/.well-known/openid-configuration",
            "api-version": "1.1",
            "metadata": [
                alias | {"aliases": list(HOSTS)},
                {"preferred_network": "localhost", "preferred_cache": "localhost", "aliases": ["localhost"]},
            ],
        },
    )


def _refusal(status: int, error: str, code: int, text: str) -> Answer:
    return Answer(status, {"error": error, "error_description": f"AADSTS{code}: {text}", "error_codes": [code]})


def _no_tenant(tenant: str) -> Answer:
    return _refusal(400, "invalid_tenant", 90002, f"Tenant '{tenant}' not found.")


def _configuration(asked: Asked, tenant: str, state: State) -> Answer:
    if tenant not in (state.tenant, "common", "organizations"):
        return _no_tenant(tenant)
    at = f"{asked.base}/{tenant}"
    return Answer(
        200,
        {
            "token_endpoint": f"{at}/oauth2/v2.0/token",
            "authorization_endpoint": f"{at}/oauth2/v2.0/authorize",
            "device_authorization_endpoint": f"{at}/oauth2/v2.0/devicecode",
            "issuer": f"{asked.base}/{state.tenant}/v2.0",
            "jwks_uri": f"{at}/discovery/v2.0/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
            "response_types_supported": ["code", "id_token"],
            "subject_types_supported": ["pairwise"],
            "tenant_region_scope": "NA",
            "cloud_instance_name": "localhost",
        },
    )


def _token(asked: Asked, tenant: str, state: State) -> Answer:
    if tenant != state.tenant:
        return _no_tenant(tenant)
    form = {name: values[0] for name, values in parse_qs(asked.body.decode() if asked.body else "").items()}
    if form.get("grant_type") != "client_credentials":
        return _refusal(400, "unsupported_grant_type", 70003, f"The grant type {form.get('grant_type')} is not known.")
    caller = state.callers.get(form.get("client_id", ""))
    if caller is None:
        return _refusal(400, "unauthorized_client", 700016, f"Application '{form.get('client_id')}' was not found.")
    if form.get("client_secret") != caller.secret:
        return _refusal(401, "invalid_client", 7000215, "Invalid client secret provided.")
    audience = form.get("scope", form.get("resource", "")).split(" ")[0].removesuffix("/.default")
    fields = {"token_type": "Bearer", "expires_in": LIFETIME_S, "ext_expires_in": LIFETIME_S}
    return Answer(200, fields | {"access_token": token(caller, audience, state.tenant)})


def token(caller: Caller, audience: str, tenant: str, lifetime_s: int = LIFETIME_S) -> str:
    """A token for a caller; its signature is none."""
    now = int(time.time())
    claims = {
        "aud": audience, "iss": f"https://sts.windows.net/{tenant}/", "iat": now, "nbf": now, "exp": now + lifetime_s,
        "oid": caller.object_id, "sub": caller.object_id, "tid": tenant, "appid": caller.client_id, "ver": "1.0",
        "idtyp": "app",
    }  # fmt: skip
    if caller.methods is not None:
        claims |= {"idtyp": "user", "scp": "user_impersonation", "amr": list(caller.methods), "upn": "ann@example.org"}
    return ".".join((_part({"alg": "RS256", "typ": "JWT"}), _part(claims), "c2ln"))


CHALLENGE = "eyJhY2Nlc3NfdG9rZW4iOnsiYWNycyI6eyJlc3NlbnRpYWwiOnRydWUsInZhbHVlcyI6WyJwMSJdfX19"
"""As in https://github.com/Azure/azure-cli/pull/31699."""


def require_factors(caller: Caller, asked: Asked) -> None:
    """Refuse a change of a user without MFA.

    Sources: https://learn.microsoft.com/entra/identity/authentication/concept-mandatory-multifactor-authentication and,
    for the form of a challenge, https://learn.microsoft.com/entra/identity-platform/claims-challenge
    """
    if caller.methods is None or "mfa" in caller.methods or asked.method not in ("PUT", "PATCH", "DELETE"):
        return
    header = (
        'Bearer realm="", authorization_uri="https://login.microsoftonline.com/common/oauth2/authorize", '
        f'error="insufficient_claims", claims="{CHALLENGE}"'
    )
    raise RefusedError(
        401, "Unauthorized", "Multi-factor authentication is needed.", headers={"WWW-Authenticate": header}
    )


def _part(fields: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


def caller_of(header: str | None, audiences: tuple[str, ...], state: State) -> Caller:
    """Who sends a token, which must be ours, for us, and valid.

    Source of the codes: https://learn.microsoft.com/rest/api/azure/#error-response and
    https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
    """
    kind, _, text = (header or "").partition(" ")

    def refused(code: str, message: str) -> RefusedError:
        challenge = f'Bearer authorization_uri="{state.authority}/{state.tenant}"'
        return RefusedError(401, code, message, headers={"WWW-Authenticate": challenge})

    if kind != "Bearer" or not text:
        raise refused("AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
    try:
        payload = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        raise refused("InvalidAuthenticationToken", "The access token is invalid.") from None
    if claims["exp"] < time.time():
        raise refused(
            "ExpiredAuthenticationToken", "The access token expiry UTC time is earlier than current UTC time."
        )
    if claims["aud"].rstrip("/") not in audiences:
        text = f"The access token has been obtained for wrong audience or resource '{claims['aud']}'."
        raise refused("InvalidAuthenticationTokenAudience", text)
    caller = state.callers.get(claims.get("appid", ""))
    if caller is None:
        raise refused("InvalidAuthenticationToken", "The access token is of nobody known.")
    if state.subscription_tenant != claims["tid"]:
        text = f"The access token is from the wrong issuer '{claims['iss']}'."
        raise refused("InvalidAuthenticationTokenTenant", text)
    return caller
