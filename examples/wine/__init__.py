"""A random forest of scikit-learn, from `fit` to C on a board."""
