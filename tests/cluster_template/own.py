"""Templates of our own, of several schedulers, that `template check` has nothing to say about."""

from __future__ import annotations

PBS = """\
# A PBS cluster with a file system of its own.
[cluster Queue]
FormLayout = selectionpanel
Category = Schedulers
Autoscale = $Autoscale

    [[node defaults]]
    Credentials = $Credentials
    Region = $Region
    SubnetId = $SubnetId
    KeyPairLocation = ~/.ssh/cyclecloud.pem
    ImageName = $Image
    UsePublicNetwork = false
    Azure.Identities = ${ifThenElse(UseIdentity, Identity, undefined)}

        [[[configuration]]]
        pbspro.version = 22
        site.owner = "research, physics"

        [[[cluster-init cyclecloud/pbspro:default]]]

        [[[volume boot]]]
        Size = ${ifThenElse(BootSize > 0, BootSize, 64)}
        SSD = true

        [[[configuration cyclecloud.mounts.shared]]]
        type = nfs
        mountpoint = /shared
        address = ${ifThenElse(ExternalAddress isnt undefined, ExternalAddress, strcat(ClusterName, "-filer"))}
        disabled = ${MountShared isnt true}

    [[node server]]
    MachineType = $ServerType
    IsReturnProxy = true
    AdditionalClusterInitSpecs = $ServerSpecs

        [[[cluster-init cyclecloud/pbspro:server]]]

        [[[network-interface eth0]]]
        AssociatePublicIpAddress = $PublicServer

        [[[input-endpoint ganglia]]]
        PrivatePort = 8652
        PublicPort = 8652

    [[nodearray base]]
    Abstract = true
    Interruptible = false

        [[[configuration]]]
        autoscale.enabled = true

        [[[cluster-init cyclecloud/pbspro:execute]]]

    [[nodearray execute]]
    Extends = base
    MachineType = $ExecuteType
    MaxCoreCount = $MaxCores
    Azure.MaxScalesetSize = 100
    ShutdownPolicy = terminate
    CloudInit = '''#!/bin/bash
echo "[not a section]" > /etc/motd
'''

        [[[cluster-init tools:execute:1.2.0]]]
        Order = 2000

[parameters About]
Order = 1

    [[parameters Introduction]]
        [[[parameter intro]]]
        HideLabel = true
        Config.Plugin = pico.widget.HtmlTemplateWidget
        Config.Template := "<p>A queue with [brackets] and $signs</p>"

[parameters Required Settings]
Order = 10

    [[parameters Machines]]
        [[[parameter Region]]]
        Label = Region
        ParameterType = Cloud.Region

        [[[parameter ServerType]]]
        ParameterType = Cloud.MachineType
        DefaultValue = Standard_D8as_v5

        [[[parameter ExecuteType]]]
        ParameterType = Cloud.MachineType
        DefaultValue = Standard_HB120rs_v3

        [[[parameter MaxCores]]]
        Label = Cores
        DefaultValue = 1200
        Config.Plugin = pico.form.NumberTextBox
        Config.MinValue = 1
        Config.MaxValue = 100000
        Config.IntegerOnly = true

        [[[parameter Autoscale]]]
        DefaultValue = true
        Widget.Plugin = pico.form.BooleanCheckBox
        Widget.Label = Start and stop nodes automatically

    [[parameters Network]]
        [[[parameter SubnetId]]]
        ParameterType = Azure.Subnet
        Required = true

        [[[parameter PublicServer]]]
        ParameterType = Boolean
        DefaultValue = false

[parameters Advanced]
    [[parameters Access]]
        [[[parameter Credentials]]]
        ParameterType = Cloud.Credentials

        [[[parameter UseIdentity]]]
        ParameterType = Boolean
        DefaultValue = false

        [[[parameter Identity]]]
        ParameterType = Azure.ManagedIdentity
        Conditions.Hidden := UseIdentity isnt true

        [[[parameter ServerSpecs]]]
        ParameterType = Cloud.ClusterInitSpecs
        DefaultValue = =undefined

    [[parameters Software]]
        [[[parameter Image]]]
        ParameterType = Cloud.Image
        Config.OS = linux
        Config.Filter := Package in {"cycle.image.ubuntu22", "almalinux8"}
        DefaultValue = almalinux8

        [[[parameter BootSize]]]
        DefaultValue = 128
        Config.Plugin = pico.form.NumberTextBox
        Config.IntegerOnly = true

        [[[parameter MountShared]]]
        ParameterType = Boolean
        DefaultValue = true

        [[[parameter ExternalAddress]]]
        Conditions.Excluded := MountShared isnt true || size(trim(toLower(ClusterName))) == 0
"""

FILER = """\
[cluster Filer]
[[node filer]]
MachineType = Standard_D8ds_v5
SubnetId = group/network/storage
Credentials = azure
Azure.Publisher = almalinux
Azure.Offer = almalinux-x86_64
Azure.Sku = 8-gen2
Azure.ImageVersion = latest
    [[[volume data]]]
    Size = 1024
    StorageAccountType = Premium_LRS
    Mount = data
    Persistent = true
    Azure.Lun = 3
    [[[configuration cyclecloud.mounts.data]]]
    mountpoint = /mnt/exports
    fs_type = xfs
    raid_level = 0
    [[[configuration cyclecloud.exports.data]]]
    type = nfs
    export_path = /mnt/exports/data
    options = no_root_squash
    [[[cluster-init cyclecloud/nfs:default:1.2.1]]]
"""
