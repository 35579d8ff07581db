"""What an agent chooses from, and how it draws."""
