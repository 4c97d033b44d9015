"""Notification of scheduled runs: letters, their outbox, and their delivery by webhook, mail or command."""
