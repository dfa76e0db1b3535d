"""What each row is compared with: the least that any program of this kind must do. Each runs in its own process."""
