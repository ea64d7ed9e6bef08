"""The errors that Azure documents for deployments, for `State.breakages` and `State.refusals`.

arm.state.refusals.append(("*/virtualMachines/*", failures.sku_not_available(...)))   # validation says no
arm.state.breakages.append(("*/virtualMachines/*", failures.allocation_failed()))     # the deployment fails there
"""

from __future__ import annotations

import json

from .exchange import RefusedError


def quota_exceeded(family: str, location: str, *, limit: int, usage: int, required: int) -> RefusedError:
    """https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-resource-quota"""
    return RefusedError(
        400,
        "QuotaExceeded",
        f"Operation could not be completed as it results in exceeding approved {family} Cores quota. Additional "
        f"details - Deployment Model: Resource Manager, Location: {location}, Current Limit: {limit}, Current Usage: "
        f"{usage}, Additional Required: {required}, (Minimum) New Limit Required: {usage + required}. Setup Alerts "
        "when Quota reaches threshold. Learn more at https://aka.ms/quotamonitoringalerting .",
    )


def sku_not_available(resource: str, location: str, subscription: str) -> RefusedError:
    """https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-sku-not-available"""
    return RefusedError(
        409,
        "SkuNotAvailable",
        f"The requested size for resource '{resource}' is currently not available in location '{location}' zones '' "
        f"for subscription '{subscription}'. Please try another size or deploy to a different location or zones. See "
        "https://aka.ms/azureskunotavailable for details.",
    )


def disallowed_by_policy(resource: str, assignment: str, definition: str) -> RefusedError:
    """https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-policy-requestdisallowedbypolicy"""
    scope = "/providers/Microsoft.Management/managementGroups/landing-zones/providers/Microsoft.Authorization"
    identifiers = [
        {
            "policyAssignment": {"name": assignment, "id": f"{scope}/policyAssignments/{assignment}"},
            "policyDefinition": {"name": definition, "id": f"{scope}/policyDefinitions/{definition}"},
        }
    ]
    info = {
        "policyDefinitionDisplayName": definition, "policyDefinitionName": definition,
        "policyDefinitionId": f"{scope}/policyDefinitions/{definition}", "policyDefinitionEffect": "deny",
        "policyAssignmentName": assignment, "policyAssignmentDisplayName": assignment,
        "policyAssignmentId": f"{scope}/policyAssignments/{assignment}",
        "policyAssignmentScope": "/providers/Microsoft.Management/managementGroups/landing-zones",
        "evaluationDetails": {"evaluatedExpressions": [{"result": "True", "expressionKind": "Field", "path": "type"}]},
    }  # fmt: skip
    return RefusedError(
        403,
        "RequestDisallowedByPolicy",
        f"Resource '{resource}' was disallowed by policy. Policy identifiers: '{json.dumps(identifiers)}'.",
        target=resource,
        additional_info=[{"type": "PolicyViolation", "info": info}],
    )


def terms_not_accepted(publisher: str, offer: str, plan: str, subscription: str) -> RefusedError:
    """hashicorp/terraform-provider-azurerm#3122; https://learn.microsoft.com/azure/virtual-machines/linux/cli-ps-findimage"""
    inner = (
        f"Offer with PublisherId: '{publisher}', OfferId: '{offer}' cannot be purchased due to validation errors. For "
        "more information see details. Correlation Id: '00000000-0000-0000-0000-000000000000' You have not accepted "
        f"the legal terms on this subscription: '{subscription}' for this plan. Before the subscription can be used, "
        f"you need to accept the legal terms of the image. The plan is '{plan}'."
    )
    return RefusedError(
        400,
        "MarketplacePurchaseEligibilityFailed",
        "Marketplace purchase eligibilty check returned errors. See inner errors for details. ",
        [{"code": "BadRequest", "message": inner}],
    )


def allocation_failed(zone: str = "") -> RefusedError:
    """https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/allocation-failure"""
    where = f"zone '{zone}'" if zone else "this region"
    return RefusedError(
        409,
        "ZonalAllocationFailed" if zone else "AllocationFailed",
        f"Allocation failed. We do not have sufficient capacity for the requested VM size in {where}. Read more about "
        "improving likelihood of allocation success at http://aka.ms/allocation-guidance",
    )


def principal_not_found(principal: str, tenant: str) -> RefusedError:
    """https://learn.microsoft.com/azure/role-based-access-control/troubleshooting#symptom---assigning-a-role-to-a-new-principal-sometimes-fails"""
    return RefusedError(
        400,
        "PrincipalNotFound",
        f"Principal {principal.replace('-', '')} does not exist in the directory {tenant}. Check that you have the "
        "correct principal ID.",
    )


def in_text(refused: RefusedError, code: str = "Conflict") -> RefusedError:
    """The same error as some providers return it: as JSON in the text of another.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/quickstart-troubleshoot-arm-deployment
    (`"message": "{\\r\\n  \\"error\\": …}"`)
    """
    text = json.dumps({"status": "Failed", "error": refused.error}, indent=2).replace("\n", "\r\n")
    return RefusedError(refused.status, code, text)


def reached_failed(refused: RefusedError) -> RefusedError:
    """A resource that was accepted and ended in the state Failed.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
    (ResourceDeploymentFailure)
    """
    return RefusedError(
        409,
        "ResourceDeploymentFailure",
        "The resource write operation failed to complete successfully, because it reached terminal provisioning state "
        "'Failed'.",
        [refused.error],
    )
