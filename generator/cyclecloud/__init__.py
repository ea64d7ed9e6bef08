"""The living cluster: CycleCloud's server, the scheduler and the nodes, through its REST interface and ssh.

Who wants an answer of Azure asks the room beside this one; the two meet in the commands.
"""
