"""Answers with which Azure refuses, and Azurite never does.

Codes, status and words: https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes and
.../blob-service-error-codes. The body begins with a byte order mark, as Azure's does.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

REQUEST_ID = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True)
class Answer:
    """A whole answer, in place of the server's."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def after(self, seconds: int) -> Answer:
        """The same with Retry-After."""
        return Answer(self.status, self.code, self.message, {**self.headers, "Retry-After": str(seconds)})

    def body(self) -> bytes:
        """As Azure writes it."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
        return (
            '\ufeff<?xml version="1.0" encoding="utf-8"?>'
            f"<Error><Code>{self.code}</Code><Message>{self.message}\nRequestId:{REQUEST_ID}\nTime:{now}</Message></Error>"
        ).encode()


_UNAUTHENTICATED = (
    "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
)
_BEARER = {"WWW-Authenticate": "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize "
                               "resource_id=https://storage.azure.com"}  # fmt: skip

# The service has no time.
BUSY = Answer(503, "ServerBusy", "The server is busy.")
INTERNAL = Answer(500, "InternalError", "Server encountered an internal error. Please try again after some time.")
TIMED_OUT = Answer(500, "OperationTimedOut", "Operation could not be completed within the permitted time.")
TOO_MANY = Answer(429, "TooManyRequests", "The request is being throttled.")

# Who asks.
NO_ROLE = Answer(403, "AuthorizationPermissionMismatch",
                 "This request is not authorized to perform this operation using this permission.")  # fmt: skip
FIREWALL = Answer(403, "AuthorizationFailure", "This request is not authorized to perform this operation.")
KEYS_OFF = Answer(403, "KeyBasedAuthenticationNotPermitted",
                  "Key based authentication is not permitted on this storage account.")  # fmt: skip
WRONG_KEY = Answer(403, "AuthenticationFailed", "Server failed to authenticate the request. Make sure the value of "
                   "Authorization header is formed correctly including the signature.")  # fmt: skip
WRONG_TOKEN = Answer(401, "InvalidAuthenticationInfo", _UNAUTHENTICATED, _BEARER)
NO_TOKEN = Answer(401, "NoAuthenticationInformation", _UNAUTHENTICATED, _BEARER)
NO_SERVICE_IN_SAS = Answer(403, "AuthorizationServiceMismatch",
                           "This request is not authorized to perform this operation using this service.")  # fmt: skip
NO_TYPE_IN_SAS = Answer(
    403, "AuthorizationResourceTypeMismatch",
    "This request is not authorized to perform this operation using this resource type.",
)  # fmt: skip

# What is asked for.
DISABLED = Answer(403, "AccountIsDisabled", "The specified account is disabled.")
NO_CONTAINER = Answer(404, "ContainerNotFound", "The specified container does not exist.")
CONTAINER_GOES = Answer(409, "ContainerBeingDeleted", "The specified container is being deleted. Try operation later.")
PUBLIC = Answer(409, "PublicAccessNotPermitted", "Public access is not permitted on this storage account.")
IMMUTABLE = Answer(409, "BlobImmutableDueToPolicy",
                   "This operation is not permitted as the blob is immutable due to a policy.")  # fmt: skip
LEASED = Answer(412, "LeaseIdMissing",
                "There is currently a lease on the blob and no lease ID was specified in the request.")  # fmt: skip
NOT_HTTPS = Answer(400, "AccountRequiresHttps", "The account being accessed does not support http.")
