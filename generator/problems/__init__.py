"""What is wrong with a file someone wrote: the finding, its place, how it is printed."""
