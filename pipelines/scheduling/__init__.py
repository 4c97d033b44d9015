"""Runs that nobody starts by hand: schedules, backfill, notification, metrics."""
