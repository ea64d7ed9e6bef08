"""Marketplace terms: every plan in use is known to the plan of the deployment and named in its README."""

from __future__ import annotations

import pytest

from generator import catalog
from generator.catalog.node_images import ImagePlan, image_plan, image_row
from generator.plan.effective import effective
from generator.plan.image_terms import ImageTerms
from tests.bed.plans import plan_from
from tests.bicep.variants import EXISTING_SERVER, OWN_IMAGE
from tests.readme.test_readme import rendered

NODES = """
slurm:
  scheduler: {image: almalinux8}
  partitions:
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true, image: "almalinux:almalinux-hpc:8_10-hpc-gen2:8.10.2024101801"}
    - {name: new, vm_size: Standard_D64ds_v5, max_nodes: 2, image: almalinux9}
    - {name: own, vm_size: Standard_D64ds_v5, max_nodes: 2, image: "somebody:some-offer:some-sku:1.2.3"}
"""  # noqa: E501
SERVER = ImageTerms("azurecyclecloud", "azure-cyclecloud", "cyclecloud8-gen2", ("the CycleCloud server",))


def test_each_plan_is_named_once_with_all_who_use_it() -> None:
    plan = plan_from(NODES)
    assert plan.image_terms == (
        SERVER,
        ImageTerms("almalinux", "almalinux-hpc", "8_10-hpc-gen2", ("the scheduler", "partition htc")),
        ImageTerms("almalinux", "almalinux-hpc", "9-hpc-gen2", ("partition new",)),
    )
    assert [(each.image, each.used_by) for each in plan.unknown_images] == [
        ("somebody:some-offer:some-sku:1.2.3", ("partition own",))
    ]
    assert "Microsoft.MarketplaceOrdering" in plan.providers


def test_the_readme_has_the_commands_and_effective_yaml_the_plans() -> None:
    plan = plan_from(NODES)
    text = rendered(plan)
    for each in plan.image_terms:
        arguments = f"--publisher {each.publisher} --offer {each.product} --plan {each.name}"
        assert f"az vm image terms accept {arguments} " in text
        assert f"az vm image terms show {arguments} " in text
    assert "az vm image show --location southcentralus --urn somebody:some-offer:some-sku:1.2.3" in text
    derived = effective(plan)["derived"]
    assert [each["name"] for each in derived["image_terms"]] == ["cyclecloud8-gen2", "8_10-hpc-gen2", "9-hpc-gen2"]


def test_without_a_server_of_its_own_a_deployment_names_the_nodes_plans() -> None:
    nodes = plan_from(EXISTING_SERVER, NODES)
    assert SERVER not in nodes.image_terms
    assert len(nodes.image_terms) == 2
    alone = plan_from(EXISTING_SERVER)
    assert alone.image_terms == ()
    assert "Microsoft.MarketplaceOrdering" not in alone.providers
    assert "az vm image terms" not in rendered(alone)


def test_an_own_server_image_may_have_kept_a_plan() -> None:
    plan = plan_from(OWN_IMAGE)
    assert plan.image_terms == ()
    assert [each.used_by for each in plan.unknown_images] == [("the CycleCloud server",)]
    assert "keeps its plan" in rendered(plan)
    assert "az vm image show" not in rendered(plan)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("cycle.image.ubuntu24", None),
        ("microsoft-dsvm:ubuntu-hpc:2204:22.04.2026010101", None),
        ("Canonical:ubuntu-24_04-lts:server:latest", None),
        ("almalinux:almalinux-hpc:9-hpc-gen2:latest", ImagePlan("almalinux", "almalinux-hpc", "9-hpc-gen2")),
        ("almalinux:almalinux-x86_64:9-gen2:9.6.1", ImagePlan("almalinux", "almalinux-x86_64", "9-gen2")),
        ("azure-hpc:azurelinux-hpc:3-v100:latest", "unknown"),
        ("/subscriptions/0/resourceGroups/r/providers/Microsoft.Compute/galleries/g/images/i", "unknown"),
        ("nonsense", "unknown"),
    ],
)
def test_what_is_known_of_an_image(image: str, expected: object) -> None:
    assert image_plan(image) == expected


def test_every_image_of_the_catalogue_says_whether_it_has_a_plan() -> None:
    """An `ImagePlan` needs all three names; whatever the table says must make one, none, or `unknown`."""
    for table in (catalog.images().node_images, catalog.images().hpc_marketplace):
        for name in table:
            assert image_row(name) is not None
            plan = image_plan(name)
            assert plan is None or plan == "unknown" or isinstance(plan, ImagePlan), name
            if isinstance(plan, ImagePlan) and ":" in name:
                assert name == f"{plan.publisher}:{plan.product}:{plan.name}:latest"
