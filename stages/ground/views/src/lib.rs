//! Pictures of artifacts as SVG.
