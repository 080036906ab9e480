//! What a placement costs: F, T, hop-bytes, dilation, link loads.
