"""Options, input lines and reporting shared by several verbs."""
