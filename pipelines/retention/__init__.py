"""What a root keeps, and what is removed from it by the rules of `[retention]`."""
