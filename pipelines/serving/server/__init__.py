"""An HTTP server for the model of a root: two protocols on one port."""
