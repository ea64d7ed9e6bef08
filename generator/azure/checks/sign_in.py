"""Signed in, to a subscription that can be used, which has the region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...plan.deployment import Plan
from ..check import Check, Finding
from ..reader import Reader
from ..refusals import Refused
from ..requests import resource_manager
from ..requests.rights import ASSIGNMENTS

_STATES = "https://learn.microsoft.com/azure/cost-management-billing/manage/subscription-states"
_AT: tuple[str, ...] = ("azure", "subscription_id")
_RESTRICTION = "sys.regionrestriction"
"""An assignment of Azure's own, which nobody can change; az shows it:
az policy assignment show --name sys.regionrestriction --query parameters.listOfAllowedLocations.value"""
_OTHER_REGION = "choose one of these in the definition, or ask Azure's support for access to this one"
_OTHER_TENANT = "InvalidAuthenticationTokenTenant"


class NotSignedIn(Check):
    id = "E4001"
    summary = "Nobody is signed in to the cloud of the deployment."
    why = "Azure answers nobody without a token, so nothing else can be checked, and nothing deployed."
    fix = "`az login`; in a pipeline set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET."
    source = "https://learn.microsoft.com/azure/developer/python/sdk/authentication/credential-chains"
    question = "what Azure would say"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        del plan
        reader.session.get_token()
        yield from ()


class SubscriptionUnusable(Check):
    id = "E4002"
    summary = "The subscription does not exist for this login, or is disabled or deleted."
    why = "Azure refuses every resource of the deployment."
    fix = "Choose another subscription (`azure.subscription_id`, `az account set`), or have its owner enable it."
    source = _STATES
    question = "whether the subscription can be used"
    path = _AT

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        del plan
        try:
            state = str(reader.get(resource_manager.subscription())["state"])
        except Refused as refused:
            if refused.code != "SubscriptionNotFound":
                raise
            text = f"the subscription {reader.subscription} does not exist for this login"
            yield self.finding(_AT, text, "az account list --output table shows those that do")
            return
        if state not in ("Enabled", "Warned", "PastDue"):
            yield self.finding(_AT, f"the subscription {reader.subscription} is {state}", "its owner can enable it")


class SubscriptionWarned(Check):
    id = "W4003"
    summary = "The subscription will be disabled soon: it is past due, or was warned."
    why = "A disabled subscription stops all machines, also in the middle of a job."
    fix = "Its owner pays what is due, or gives it another way to pay."
    source = _STATES
    question = "whether the subscription stays"
    path = _AT

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        del plan
        state = str(reader.get(resource_manager.subscription())["state"])
        if state in ("Warned", "PastDue"):
            text = f"the subscription {reader.subscription} is {state} and will be disabled"
            yield self.finding(_AT, text, "ask its owner: portal, Cost Management + Billing")


class OtherTenant(Check):
    id = "E4004"
    summary = "The login belongs to a different tenant than the subscription."
    why = "Azure refuses the tokens of another tenant, also for what the deployment creates."
    fix = "`az login --tenant TENANT` with the tenant of the subscription."
    source = "https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference"
    question = "whether the login belongs to the subscription's tenant"
    path = _AT

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        del plan
        who = reader.session.who()
        try:
            tenant = str(reader.get(resource_manager.subscription())["tenantId"])
        except Refused as refused:
            if refused.code != _OTHER_TENANT:
                raise
            text = (
                f"the login of {who.name if who else 'this token'} belongs to a different tenant than the subscription"
            )
            hint = "az login --tenant TENANT; az account list --query '[].[id, tenantId]' --output tsv shows it"
            yield self.finding(_AT, text, hint)
            return
        if who is not None and who.tenant.casefold() != tenant.casefold():
            text = f"{who.name} is signed in to the tenant {who.tenant}; the subscription belongs to {tenant}"
            yield self.finding(_AT, text, f"az login --tenant {tenant}")


class NoMultiFactor(Check):
    id = "W4006"
    summary = "A user is signed in without multi-factor authentication (MFA)."
    why = (
        "Azure answers what only reads, and refuses every user without MFA who creates, changes or deletes: deploy and "
        "delete end at their first request."
    )
    fix = (
        "`az logout`, then `az login` with MFA; if it is not asked for, the line with `--claims-challenge` that the "
        "refusal prints (Azure CLI 2.76 or later). A service principal or a managed identity needs none."
    )
    source = "https://learn.microsoft.com/entra/identity/authentication/concept-mandatory-multifactor-authentication"
    question = "whether the login has MFA"
    path = _AT

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """What the token says of itself, once Azure has taken it; one that says nothing is none of a user."""
        del plan
        reader.get(resource_manager.subscription())
        who = reader.session.who()
        if who is not None and who.lacks_mfa:
            text = f"{who.name} is signed in without multi-factor authentication, and Azure refuses changes"
            yield self.finding(_AT, text, "az logout, then az login with MFA")


class RegionMissing(Check):
    id = "E4005"
    summary = "The subscription does not have the region of the deployment, or Azure has closed it to it."
    why = (
        "Some regions are open to some subscriptions only; Azure refuses every resource there. New, student and "
        "sponsored subscriptions have a short list of their own, the assignment `sys.regionrestriction`."
    )
    fix = "Choose another region, or ask for access to this one."
    source = "https://learn.microsoft.com/troubleshoot/azure/general/region-access-request-process"
    question = "whether the subscription has the region"
    path = ("location",)

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        names = {str(each["name"]).casefold() for each in reader.pages(resource_manager.locations())}
        if plan.location.casefold() not in names:
            text = f"the subscription does not have the region {plan.location}"
            yield self.finding(self.path, text, "az account list-locations --query '[].name' --output tsv")
            return
        scope = f"subscriptions/{reader.subscription}"
        for each in reader.pages(ASSIGNMENTS(scope=scope)):
            if str(each["name"]).casefold() == _RESTRICTION:
                yield from self._restricted(plan, each)

    def _restricted(self, plan: Plan, assignment: Mapping[str, Any]) -> Iterator[Finding]:
        allowed = [str(name) for name in assignment["properties"]["parameters"]["listOfAllowedLocations"]["value"]]
        if plan.location.casefold() not in {name.casefold() for name in allowed}:
            text = f"Azure lets this subscription deploy to {', '.join(allowed) or 'no region'}, not to {plan.location}"
            yield self.finding(self.path, text, _OTHER_REGION)
