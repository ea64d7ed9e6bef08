"""The cluster template, its parameters, and the reader that checks them."""
