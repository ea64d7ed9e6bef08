"""The locker: the blob container from which nodes take projects. One of the packages that talk to the outside.

What is where, and what nodes do with it: https://learn.microsoft.com/azure/cyclecloud/how-to/projects.

| module | holds |
|---|---|
| `address` | which container: a flag, the environment, or a definition |
| `credentials` | how we sign in |
| `client` | azure-storage-blob's client with our limits: signs, sends, tries again |
| `layout` | names in the container, and what a listing of it means |
| `container` | the narrow interface to Azure's blob service: list, put, stage, commit, read, delete |
| `refusals` | what Azure's errors mean and what to do about them |
| `look` | a package compared with what is in the locker |
| `upload` | a version into the locker, large files in blocks; or different content for a version that exists |
| `pull`, `prune` | a version back, and old versions away |

A version becomes visible to nodes by its `manifest.json`, so that is always written last and removed first: whenever a
manifest is there, everything that belongs to it is.
"""
