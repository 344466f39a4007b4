"""The rules: conditions with three truth values over facts, and the words in which a finding is told."""
