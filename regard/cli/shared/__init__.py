"""Parts that several verbs share: options, examples for the help, input lines, and reports on stderr."""
