"""What can be wrong with a cluster template and its parameter file: the rules 20xx to 24xx."""

from __future__ import annotations

from ..problems.rule import Rule

_REFERENCE = "https://learn.microsoft.com/azure/cyclecloud/cluster-references"
_TEMPLATE = f"{_REFERENCE}/cluster-template-reference"
_PARSING = f"{_REFERENCE}/special-parsing"
_NODE = f"{_REFERENCE}/node-nodearray-reference"
_PARAMETER = f"{_REFERENCE}/parameter-reference"
_CLUSTER_INIT = f"{_REFERENCE}/cluster-init-reference"
_CONFIGURATION = f"{_REFERENCE}/configuration-reference"
_IMPORT = "https://learn.microsoft.com/azure/cyclecloud/how-to/cluster-templates"
_SLURM = "https://github.com/Azure/cyclecloud-slurm"


class TemplateRule(Rule):
    """A rule about a cluster template; `checks` and the reader find its problems."""

    stage = "template"
    source = _TEMPLATE


class ParameterRule(TemplateRule):
    source = _PARAMETER


class NodeRule(TemplateRule):
    source = _NODE


class SlurmRule(TemplateRule):
    source = _SLURM


class UnreadableLine(TemplateRule):
    id = "E2001"
    summary = "A line of the template is neither a section nor an attribute."
    why = "CycleCloud refuses the whole file at the first line that it cannot read."
    fix = "Write `[kind name]`, `Attribute = value` or `Attribute := expression`; a comment begins with #."


class BracketsDoNotMatch(TemplateRule):
    id = "E2002"
    summary = "The brackets of a section do not match."
    why = "The number of brackets is the rank of the section, so it is not known where it belongs."
    fix = "Close as many brackets as are open: [cluster NAME], [[node NAME]], [[[volume NAME]]]."


class WrongRank(TemplateRule):
    id = "E2003"
    summary = "A section is nested too deeply."
    why = "A section of rank 3 belongs to one of rank 2 above it; here there is none."
    fix = "Use as many brackets as the place needs, or write the missing section above it."


class OutsideOfSections(TemplateRule):
    id = "E2004"
    summary = "An attribute is outside of any section."
    why = "There is nothing that it could belong to."
    fix = "Move it below a section such as [cluster NAME]."


class BadExpression(TemplateRule):
    id = "E2005"
    summary = "An expression cannot be read."
    why = (
        "After := and inside ${…} CycleCloud expects a ClassAd expression; if a part of it cannot be read, "
        "the import fails."
    )
    fix = "Correct the marked value; texts are in double quotes, lists in {…}, records in […]."
    source = _PARSING


class OpenText(TemplateRule):
    id = "E2006"
    summary = "A text that begins with ''' has no end."
    why = "Everything to the end of the file would belong to it."
    fix = "Close it with ''' at the end of its last line."
    source = _PARSING


class NotText(TemplateRule):
    id = "E2007"
    summary = "The file is not UTF-8 text."
    why = (
        "Cluster templates and parameter files are text; any other encoding would silently turn characters "
        "into other ones."
    )
    fix = "Check that this is the right file, and save it as UTF-8."


class TemplateTooLarge(TemplateRule):
    id = "E2008"
    summary = "The file is too large."
    why = "The largest published template has 70 KiB; 4 MiB are a mistake, and checking them would take too long."
    fix = "Check that this is the right file."
    source = ""


class NothingInIt(TemplateRule):
    id = "E2009"
    summary = "The file holds no section."
    why = "Nothing can be imported from it."
    fix = "Begin with [cluster NAME]."


class ControlCharacter(TemplateRule):
    id = "E2010"
    summary = "The file holds a control character."
    why = "It is invisible, and names and values that contain it match nothing."
    fix = "Delete the marked character and type the place again."


class BadParameterFile(TemplateRule):
    id = "E2011"
    summary = "The parameter file is not a JSON object."
    why = "`cyclecloud import_cluster -p` reads a flat JSON object from parameter names to values."
    fix = 'Write {"Parameter": value, …}; null means undefined.'
    source = _IMPORT


class UnknownSection(TemplateRule):
    id = "E2101"
    summary = "A section is of a kind that CycleCloud does not know."
    why = "Everything below it is ignored, or the import fails."
    fix = (
        "Use one of the kinds of the reference: cluster, node, nodearray, parameters, parameter, configuration, "
        "cluster-init, volume, network-interface, input-endpoint."
    )


class MisplacedSection(TemplateRule):
    id = "E2102"
    summary = "A section is where CycleCloud does not look for it."
    why = "It is ignored there."
    fix = "Move it below the section that the message names; the number of brackets determines what contains it."


class DuplicateSection(TemplateRule):
    id = "E2103"
    summary = "Two sections have the same kind and name."
    why = "The second silently replaces or extends the first, and a reader sees only one of them."
    fix = "Merge them, or rename one."


class NoCluster(TemplateRule):
    id = "E2104"
    summary = "The file has no [cluster] section."
    why = "`cyclecloud import_cluster` and `import_template` import a cluster by the name of its section."
    fix = "Write [cluster NAME] above the nodes."


class SeveralClusters(TemplateRule):
    id = "W2105"
    summary = "The file has more than one [cluster] section."
    why = "An import takes one of them, named with -c; parameters are shared by all."
    fix = "Give each cluster a file of its own."


class MisspeltAttribute(NodeRule):
    id = "E2106"
    summary = "An attribute is almost, but not quite, one that CycleCloud knows."
    why = "CycleCloud silently ignores what it does not know."
    fix = "Correct the name as the hint says."


class UnknownAttribute(NodeRule):
    id = "W2107"
    summary = "An attribute or configuration key that nothing is known to read."
    why = "CycleCloud and its projects silently ignore what they do not know."
    fix = "Correct or remove it. Keep it if one of your own projects reads it."


class MisplacedAttribute(TemplateRule):
    id = "E2108"
    summary = "A node attribute is in [[[configuration]]], or a configuration key is outside of it."
    why = "It is ignored there: configuration reaches the node's software, attributes reach CycleCloud."
    fix = "Move it as the hint says."
    source = _CONFIGURATION


class DuplicateAttribute(TemplateRule):
    id = "E2109"
    summary = "An attribute is set twice for the same object."
    why = "The last one silently wins."
    fix = "Remove one of the two."


class UnknownFunction(TemplateRule):
    id = "E2110"
    summary = "An expression calls a function that is not documented."
    why = "An unknown function makes the value undefined, or the import fails."
    fix = "Correct the name; the reference lists the documented functions."
    source = _PARSING


class SpecNamedTwice(TemplateRule):
    id = "W2111"
    summary = "A node has the same cluster-init spec twice."
    why = "It runs once, in the order of one of the two sections."
    fix = "Remove one of them."
    source = _CLUSTER_INIT


class DuplicateParameter(ParameterRule):
    id = "E2201"
    summary = "A parameter is declared twice."
    why = "The form shows one of them, with the settings of either."
    fix = "Remove or rename one of the two."


class UndeclaredParameter(ParameterRule):
    id = "E2202"
    summary = "A $Parameter is used that no [[[parameter]]] declares."
    why = "The import fails: `Parameter … is not known`."
    fix = "Declare it below [parameters …], or correct the name."


class UnusedParameter(ParameterRule):
    id = "W2203"
    summary = "A declared parameter is used nowhere."
    why = "Whoever fills in the form expects it to be used."
    fix = "Use it, or remove it."


class UnknownValue(TemplateRule):
    id = "E2204"
    summary = "The parameter file sets a parameter that the template does not declare."
    why = "Its value is lost."
    fix = "Correct the name, or remove the entry."
    source = _IMPORT


class MissingValue(ParameterRule):
    id = "E2205"
    summary = "A required parameter has no value."
    why = "The cluster cannot be started before someone fills it in."
    fix = "Give it a value in the parameter file, or a DefaultValue; write null for what is given at the import."


class ValueType(ParameterRule):
    id = "E2206"
    summary = "A value in the parameter file is not of the parameter's type."
    why = 'Forms and expressions expect the type; "100" is a text, not a number.'
    fix = "Write the value in the type that the message names."


class SecretValue(TemplateRule):
    id = "E2207"
    summary = "The parameter file contains a password."
    why = "The file is kept beside the template and read by everyone who imports it."
    fix = "Leave it out, and pass it with -P or in the form."
    source = _IMPORT


class LateValue(TemplateRule):
    id = "E2208"
    summary = "A parameter that is filled in on the server is not declared or already has a value."
    why = "What the server puts there would be lost or overwrite the value."
    fix = "Declare it, and leave its value null."
    source = ""


class UnknownParameterType(ParameterRule):
    id = "E2209"
    summary = "A ParameterType is almost, but not quite, one that CycleCloud knows."
    why = "The form shows a plain text field instead of the intended list."
    fix = "Correct the name as the hint says."


class UnknownPlugin(ParameterRule):
    id = "E2210"
    summary = "A plugin of the form is almost, but not quite, one that CycleCloud brings."
    why = "The form does not show the parameter as intended."
    fix = "Correct the name as the hint says."


class DefaultType(ParameterRule):
    id = "E2211"
    summary = "The default value of a parameter does not fit its type or its limits."
    why = "The form opens with a value that it does not accept."
    fix = "Write a default value as the message describes."


class EmptyRange(ParameterRule):
    id = "W2212"
    summary = "The smallest value of a parameter is larger than the largest."
    why = "No value fits."
    fix = "Swap Config.MinValue and Config.MaxValue."


class UnknownBase(NodeRule):
    id = "E2301"
    summary = "Extends names a node that does not exist."
    why = "The import fails, or the node starts without what it should inherit."
    fix = "Correct the name."


class CircularBase(NodeRule):
    id = "E2302"
    summary = "A node inherits from itself, or through too many others."
    why = "There is no order in which the attributes could be merged."
    fix = "Remove one of the Extends attributes."


class MissingAttribute(NodeRule):
    id = "E2303"
    summary = "A node lacks one of the attributes without which it cannot start."
    why = "CycleCloud refuses to start it."
    fix = "Add the attribute, or put it into [[node defaults]]."


class NodeName(NodeRule):
    id = "W2304"
    summary = "The name of a node array does not fit into host names."
    why = "Host names have letters, digits and '-' only, and are the same in upper and lower case."
    fix = "Use a-z, 0-9 and '-'."


class UnknownSpec(TemplateRule):
    id = "E2305"
    summary = "A cluster-init reference that neither the folder nor CycleCloud can satisfy."
    why = "The nodes fail while they download it."
    fix = "Correct project, spec or version."
    source = _CLUSTER_INIT


class MissingVersion(TemplateRule):
    id = "W2306"
    summary = "A reference to one of your own projects names no version."
    why = "What a node then gets is not documented; two nodes may get different scripts."
    fix = "Write project:spec:version."
    source = _CLUSTER_INIT


class MixedVersions(TemplateRule):
    id = "W2307"
    summary = "References to the same built-in project name different versions."
    why = "Its specs are made for each other in one version."
    fix = "Name one version everywhere, or none."
    source = _CLUSTER_INIT


class UnknownBuiltIn(TemplateRule):
    id = "W2308"
    summary = "A reference to a built-in project that is not among the published ones."
    why = "The server has it only if someone registered it there."
    fix = "Check the name, or name the locker that holds it."
    source = _CLUSTER_INIT


class BadValue(NodeRule):
    id = "E2309"
    summary = "A number or a switch is not valid, or is out of range."
    why = "CycleCloud refuses it, or never starts a node."
    fix = "Write a value as the message describes."


class BadMount(TemplateRule):
    id = "W2310"
    summary = "A mount or export is of a type that no published template uses."
    why = "Where nothing knows the type, the node fails while it mounts."
    fix = "Correct the type; keep it if one of your own projects mounts it."
    source = _CONFIGURATION


class NodeOnly(TemplateRule):
    id = "E2311"
    summary = "A node array has an attribute that only single nodes may have."
    why = (
        "The nodes of an array are in scale sets, where CycleCloud refuses it: no node of the array starts "
        '("Public IPs cannot be specified on nodes in an array").'
    )
    fix = (
        "Remove the attribute from the array and from what it extends. For public addresses, Azure.AllocationMethod = "
        "StandAlone makes its nodes single VMs, which InfiniBand and notices of termination exclude."
    )
    source = "https://learn.microsoft.com/azure/cyclecloud/cluster-references/network-interface-reference"


class MissingRole(SlurmRule):
    id = "W2401"
    summary = "A node of a Slurm cluster has no slurm.role."
    why = "Nothing configures it: without Chef the Slurm project relies on the role."
    fix = "Set slurm.role to scheduler, login or execute."


class MissingSpec(SlurmRule):
    id = "W2402"
    summary = "A node lacks a spec of the Slurm project that its role needs."
    why = "Its Slurm is installed or configured only in part."
    fix = "Add the [[[cluster-init cyclecloud/slurm:…]]] section that the message names."


class MissingHpc(SlurmRule):
    id = "W2403"
    summary = "slurm.hpc is not set explicitly."
    why = "`azslurm scale` fails for the whole cluster where it is missing."
    fix = "Set slurm.hpc to true or false in [[[configuration]]]."


class ContradictingHpc(SlurmRule):
    id = "E2404"
    summary = "slurm.hpc = true contradicts autoscale.is_hpc = false."
    why = "`azslurm scale` fails for the whole cluster."
    fix = "Remove autoscale.is_hpc."


class HiddenPartition(SlurmRule):
    id = "W2405"
    summary = "An execute array is one that azslurm skips."
    why = "Its partition does not appear."
    fix = "Remove the key, or the node array."


class SharedPartition(SlurmRule):
    id = "E2406"
    summary = "Two static node arrays name the same partition."
    why = "azslurm disables both."
    fix = "Give each its own slurm.partition, or slurm.dynamic_feature."


class DefaultPartition(SlurmRule):
    id = "W2407"
    summary = "There is no default partition, or more than one."
    why = "Jobs without -p are refused, or go to an unexpected partition."
    fix = "Set slurm.default_partition = true for one of them."


class ScaleSetSize(NodeRule):
    id = "W2408"
    summary = "An array in one placement group may have more nodes than its scale set."
    why = "It cannot grow beyond Azure.MaxScalesetSize, 40 where that is not set."
    fix = "Raise Azure.MaxScalesetSize."
