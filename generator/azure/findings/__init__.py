"""From answers of Azure to findings about a plan: no transport, only answers in and findings out."""
