"""Kill a real server again and again while clients use it, and check afterwards that every promise held."""
