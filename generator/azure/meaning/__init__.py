"""What Azure's answers about resources and network mean for a plan: no transport, only answers in and findings out."""
