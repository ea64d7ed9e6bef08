"""A deployment folder on disk: written whole, compared, told apart."""
