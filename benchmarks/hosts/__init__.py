"""Several hosts on one machine: network namespaces, each with an address of its own."""
