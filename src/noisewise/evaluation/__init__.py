"""What models and policies are worth, from data that others collected."""
