"""The endpoints of the cloud, as `az` reads them from ARM_CLOUD_METADATA_URL.

Source: `CloudEndpoints.ARM_METADATA_INDEX` and `CloudSuffixes.ARM_METADATA_INDEX` in
Azure/azure-cli:src/azure-cli-core/azure/cli/core/cloud.py, which name every field that is read; the values that the
stand-in does not replace are those of the public cloud there.
"""

from __future__ import annotations

from .exchange import Answer, Asked
from .state import State


def answer(asked: Asked, url: str, state: State) -> Answer:
    """One cloud, with the name of the public one."""
    cloud = {
        "name": "AzureCloud",
        "portal": "https://portal.azure.com",
        "authentication": {
            "loginEndpoint": state.authority,
            "audiences": ["https://management.core.windows.net/", "https://management.azure.com/"],
            "tenant": "common",
            "identityProvider": "AAD",
        },
        "resourceManager": f"{url}/",
        "media": "https://rest.media.azure.net",
        "graph": "https://graph.windows.net/",
        "graphAudience": "https://graph.windows.net/",
        "microsoftGraphResourceId": "https://graph.microsoft.com/",
        "gallery": "https://gallery.azure.com/",
        "batch": "https://batch.core.windows.net/",
        "sqlManagement": "https://management.core.windows.net:8443/",
        "vmImageAliasDoc": f"{url}/aliases.json",
        "activeDirectoryDataLake": "https://datalake.azure.net/",
        "logAnalyticsResourceId": "https://api.loganalytics.io",
        "appInsightsResourceId": "https://api.applicationinsights.io",
        "ossrdbmsResourceId": "https://ossrdbms-aad.database.windows.net",
        "suffixes": {
            "storage": "core.windows.net",
            "keyVaultDns": "vault.azure.net",
            "sqlServerHostname": "database.windows.net",
            "mysqlServerEndpoint": "mysql.database.azure.com",
            "acrLoginServer": "azurecr.io",
        },
    }
    return Answer(200, [cloud])
