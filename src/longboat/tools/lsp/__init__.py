"""Language servers: the programs that know a workspace's code, and how they are asked."""
