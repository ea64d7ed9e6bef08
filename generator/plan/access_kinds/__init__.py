"""The kinds of access: one class per way in, each of which declares what its consumers need."""
