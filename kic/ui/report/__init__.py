"""Report on a mechanism in one configuration: tables, data and an HTML page."""
