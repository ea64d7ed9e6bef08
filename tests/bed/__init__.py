"""What tests are on: guards against hanging, machines, fakes, plans."""
