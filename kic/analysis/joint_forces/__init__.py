"""Forces and moments in the joints."""
