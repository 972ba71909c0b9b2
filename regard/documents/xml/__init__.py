"""Files of XML, and packages of them in zip archives: read with limits, and edited in place."""
