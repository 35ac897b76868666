"""What joints bear: the bodies set free, and the loads that put every joint back."""
