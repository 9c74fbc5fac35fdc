"""The model core: descriptions of a deployment and their readers, without any user interface."""
