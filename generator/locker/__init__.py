"""The locker: the blob container from which nodes take projects. One of the packages that talk to the outside.

What is where, and what nodes do with it: https://learn.microsoft.com/azure/cyclecloud/how-to/projects.

| module | holds |
|---|---|
| `address` | which container: a flag, the environment, or a definition |
| `credentials`, `signing` | how we sign in, and how a request is signed |
| `service` | requests to Azure's blob service, plain REST: signed, sent, tried again |
| `layout`, `listing` | names in the container, and what a listing of it means |
| `compare` | a package against what is in the locker; pure |
| `container` | the narrow interface to Azure's blob service: list, put, stage, commit, read, delete |
| `refusals` | what Azure's errors mean and what to do about them |
| `upload`, `replace` | a version into the locker, and another content under a version that is there |
| `pull`, `prune` | a version back, and old versions away |

A version becomes visible to nodes by its `manifest.json`, so that is always written last and removed first: whenever a
manifest is there, everything that belongs to it is.
"""
