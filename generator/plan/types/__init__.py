"""What the planner decides, once, for every renderer: plain frozen dataclasses.

Renderers print these values and decide nothing. Every field is final: names are checked and within their limits,
numbers carry their unit in the name, `None` means "does not apply" unless the docstring says otherwise.
Collections are tuples in the order in which they are printed.
"""

from .cleanup import CleanupPlan, ResourceId
from .deployment import Plan
from .egress import EgressPlan, EgressRule
from .jobs import BaselinePlan, CheckpointPlan, JobPlan, StepPlan, TablePlan
from .ledger import LedgerEntry, LedgerPlan
from .names import ResourceNames
from .network import HubPlan, NetworkPlan, ProxyPlan, RoutePlan, SecurityRule, SubnetPlan
from .nodes import LoginPlan, MigPlan, NodeArrayPlan, SchedulerPlan, SizeNodes, SpecRef, VmAttributes
from .parameters import Asked, PasswordRule, SecretPlan, Variable
from .policy import PolicyPlan, PolicyRow
from .projects import BlobPlan, ProjectPlan
from .quota import QuotaLimit, QuotaPlan, QuotaUse
from .security import SecurityPlan
from .server import (
    AdminPlan,
    ExistingServerPlan,
    ImageTerms,
    JumpboxPlan,
    LockerPlan,
    MarketplaceImage,
    ServerPlan,
    UnknownImage,
)
from .slurm import AccountingPlan, MonitoringPlan, SlurmPlan

__all__ = [
    "AccountingPlan",
    "AdminPlan",
    "Asked",
    "BaselinePlan",
    "BlobPlan",
    "CheckpointPlan",
    "CleanupPlan",
    "EgressPlan",
    "EgressRule",
    "ExistingServerPlan",
    "HubPlan",
    "ImageTerms",
    "JobPlan",
    "JumpboxPlan",
    "LedgerEntry",
    "LedgerPlan",
    "LockerPlan",
    "LoginPlan",
    "MarketplaceImage",
    "MigPlan",
    "MonitoringPlan",
    "NetworkPlan",
    "NodeArrayPlan",
    "PasswordRule",
    "Plan",
    "PolicyPlan",
    "PolicyRow",
    "ProjectPlan",
    "ProxyPlan",
    "QuotaLimit",
    "QuotaPlan",
    "QuotaUse",
    "ResourceId",
    "ResourceNames",
    "RoutePlan",
    "SchedulerPlan",
    "SecretPlan",
    "SecurityPlan",
    "SecurityRule",
    "ServerPlan",
    "SizeNodes",
    "SlurmPlan",
    "SpecRef",
    "StepPlan",
    "SubnetPlan",
    "TablePlan",
    "UnknownImage",
    "Variable",
    "VmAttributes",
]
