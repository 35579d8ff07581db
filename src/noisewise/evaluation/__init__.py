"""How well a model predicts each row before it learns it."""
