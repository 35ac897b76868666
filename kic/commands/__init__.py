"""Commands of the command line that belong to no other room, and what they share."""
