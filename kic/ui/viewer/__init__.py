"""Interactive viewer in a browser: solids, their motion, and replays as HTML; requires viser."""
