"""What is wrong with a file somebody wrote: the finding, its place, how it is printed."""
