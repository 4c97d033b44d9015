"""The sections of a report: each file turns what is known into what its template shows."""
