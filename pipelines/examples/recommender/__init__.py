"""A recommender of films: users and films as vectors."""
