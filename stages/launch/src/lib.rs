//! Mappings as the text files that launchers read.
