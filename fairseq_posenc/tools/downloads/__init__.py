"""Downloads that are continued and verified, and archives."""
