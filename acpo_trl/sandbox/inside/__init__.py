"""What runs inside a sandbox. These files are all of the package that a program can see; they import nothing else."""
