"""Every verb that talks to Azure, ended at any request: the connection is gone, or the process is killed."""
