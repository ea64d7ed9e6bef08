"""What tests stand on: guards against hanging, machines, fakes, plans."""
