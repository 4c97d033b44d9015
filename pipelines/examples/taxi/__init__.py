"""Will this taxi ride be tipped well? Generated trips, the user's module, and a configuration."""
