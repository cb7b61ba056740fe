"""The experiments: worlds to fine-tune in, shifts and corruptions to survive, methods to compare."""
