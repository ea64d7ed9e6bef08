"""Azure's public price list: asked for what a plan is billed for, kept for a day, and put together into costs."""
