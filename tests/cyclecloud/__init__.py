"""The client of CycleCloud's REST interface, and the verbs that use it."""
